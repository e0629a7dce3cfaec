/* SPDX-License-Identifier: MIT */
/*
 * gputrace: the table of commands. Everything that a command does is in cmd/.
 */
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"

static const struct gt_command commands[] = {
	{"dump", gt_cmd_dump, "raw events, definitions and lanes; --check: is the trace sound?"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help(FILE *to)
{
	fputs("Usage: gputrace COMMAND [OPTIONS] TRACE\n", to);
	for (size_t i = 0; i < COMMANDS; i++) {
		if (commands[i].help)
			fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help(stdout);
		return 0;
	}
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "gputrace: no command \"%s\"; see gputrace --help\n", argv[1]);
	return 2;
}
