/* SPDX-License-Identifier: MIT */
/*
 * gputrace metrics: counters of all traces as a file that node_exporter's textfile collector reads,
 * once or again and again. The traces may be growing: they are opened anew each time, read-only, and
 * their processes notice nothing. OUT is replaced by rename, so nobody reads half of it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/export.h"
#include "model/xalloc.h"

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/*
 * Readable for all, unlike what else we write: the collector is another user, and there is nothing in
 * it but numbers, the program's name and its rank.
 */
#define MODE 0644

static int failed(const char *path)
{
	return gt_message(GT_EXIT_UNREADABLE, "%s: cannot write: %s",
			  path ? path : "standard output", strerror(errno));
}

static int write_places(const struct gt_args *args, const struct gt_places *places)
{
	struct gt_export_place *list = gt_export_open(places);
	struct gt_file file;
	int status = 0;

	if (gt_file_create(&file, args->output, MODE))
		status = failed(args->output);
	if (!status)
		gt_export_metrics(file.file, list, places->count, true);
	if (!status && gt_file_finish(&file, true))
		status = failed(file.path);
	gt_export_close(list, places->count);
	return status;
}

static int once(struct gt_args *args)
{
	struct gt_session session;
	struct gt_places places;
	int status = gt_places_open(args, &session, &places);

	if (status)
		return status;
	status = write_places(args, &places);
	gt_places_close(&places);
	return status;
}

static int watch(struct gt_args *args)
{
	struct timespec pause = {(time_t)(args->every_us / 1000000),
				 (long)(args->every_us % 1000000) * 1000};
	struct sigaction action = {.sa_handler = stop};
	int status = 0;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	while (!stopped && !status) {
		status = once(args);
		if (!stopped && !status)
			nanosleep(&pause, NULL);
	}
	return status;
}

int gt_cmd_metrics(struct gt_args *args)
{
	if (!args->watch && !args->operand_count)
		return gt_message(GT_EXIT_USAGE,
				  "metrics: which traces? gputrace metrics TRACE|DIR...");
	if (!args->watch)
		return once(args);
	args->operands[args->operand_count++] = (char *)args->watch;
	if (!args->every_us)
		args->every_us = 15000000;
	return watch(args);
}
