/* SPDX-License-Identifier: MIT */
/*
 * gputrace metrics: counters of all traces as a file that node_exporter's textfile collector reads,
 * once or again and again. The traces may be growing: they are opened anew each time, read-only, and
 * their processes notice nothing. OUT is replaced by rename, so nobody reads half of it.
 */
#include <errno.h>
#include <fcntl.h>
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
static FILE *create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

static int failed(const char *path)
{
	return gt_message(GT_EXIT_UNREADABLE, "%s: cannot write: %s", path, strerror(errno));
}

static int replace(const char *path, const struct gt_export_place *list, size_t count)
{
	char *new = gt_xasprintf("%s.%d.new", path, (int)getpid());
	FILE *file = create(new);
	int status = 0, bad;

	if (!file) {
		status = failed(new);
		free(new);
		return status;
	}
	gt_export_metrics(file, list, count, true);
	bad = ferror(file);
	if (fclose(file) || bad || rename(new, path)) {
		status = failed(path);
		unlink(new);
	}
	free(new);
	return status;
}

static int write_places(const struct gt_args *args, const struct gt_places *places)
{
	struct gt_export_place *list = gt_export_open(places);
	int status = 0;

	if (args->output && strcmp(args->output, "-"))
		status = replace(args->output, list, places->count);
	else
		gt_export_metrics(stdout, list, places->count, true);
	if (fflush(stdout))
		status = failed("standard output");
	gt_export_close(list, places->count);
	return status;
}

static int once(struct gt_args *args)
{
	struct gt_session session;
	struct gt_places places;
	int status = gt_session_open(args, &session);

	if (status)
		return status;
	places = gt_places_of(args, &session);
	status = write_places(args, &places);
	free(places.places);
	gt_session_close(&session);
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
