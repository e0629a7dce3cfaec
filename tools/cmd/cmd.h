/* SPDX-License-Identifier: MIT */
/*
 * The commands of gputrace. Each parses its own options and returns the exit status: 0 fine, 1 a
 * check that was asked for failed, 2 usage, 3 unreadable input. argv[0] is the command's name.
 */
#ifndef GT_CMD_H
#define GT_CMD_H

struct gt_command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* one line; NULL: works, but is not listed */
};

int gt_cmd_dump(int argc, char **argv);

#endif
