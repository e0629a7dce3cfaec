/* SPDX-License-Identifier: MIT */
/*
 * A command in a child of its own. The server must outlive whatever it is pointed at: commands end the
 * program when memory is short, keep choices in globals, print to standard output, and read files
 * that others damaged. So each call is a fork without exec: the child has the command's code already,
 * gets pipes for its output, a limit of time, of processor and of output, and is gone afterwards with
 * all that it did. Nothing is shared but the descriptor of the folder. Called from mcp_tools.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/mcp.h"
#include "model/xalloc.h"
#include "read/beneath.h"

#define LIMIT_SECONDS 120
#define LIMIT_OUT     (64u << 20) /* before it is made to fit */
#define LIMIT_SAID    16384u

struct stream {
	int fd;
	char *text;
	size_t length, room, most;
	bool over; /* more came than is kept */
};

static void limit(int resource, rlim_t most)
{
	struct rlimit rlimit = {most, most};

	setrlimit(resource, &rlimit);
}

static void run_child(const struct gt_mcp *mcp, int out, int said, int (*job)(void *ctx), void *ctx)
{
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, LIMIT_SECONDS);
	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(said, STDERR_FILENO) < 0 || fchdir(mcp->directory))
		_exit(127);
	gt_read_beneath(mcp->directory);
	/* A whole answer is one write then; a sanitizer's exit handlers are of no use here. */
	_exit(job(ctx) | (fflush(stdout) ? 127 : 0));
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What is too much is read and dropped, or the child would wait for ever. */
static void take(struct stream *stream)
{
	char buffer[65536];
	ssize_t n = read(stream->fd, buffer, sizeof(buffer));
	size_t kept;

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close(stream->fd);
		stream->fd = -1;
		return;
	}
	kept = stream->most - stream->length < (size_t)n ? stream->most - stream->length
							 : (size_t)n;
	stream->over |= kept < (size_t)n;
	if (stream->length + kept + 1 > stream->room) {
		stream->room = 2 * (stream->length + kept + 1);
		stream->text = gt_xrealloc(stream->text, stream->room, 1);
	}
	memcpy(stream->text + stream->length, buffer, kept);
	stream->length += kept;
}

/* Until both are at their end: NULL, or why the child has to go. */
static const char *collect(struct stream streams[2])
{
	const int64_t until = now_ms() + LIMIT_SECONDS * 1000;

	while (streams[0].fd >= 0 || streams[1].fd >= 0) {
		struct pollfd polled[2] = {{streams[0].fd, POLLIN, 0}, {streams[1].fd, POLLIN, 0}};
		int64_t left = until - now_ms();

		if (left <= 0)
			return "it took too long: ask for less, or of a part of the run";
		if (poll(polled, 2, (int)left) < 0 && errno != EINTR)
			return strerror(errno);
		for (int i = 0; i < 2; i++)
			if (streams[i].fd >= 0 && polled[i].revents)
				take(&streams[i]);
		if (streams[0].over)
			return "its answer is too large: ask for less, or of one device";
	}
	return NULL;
}

static void finish(pid_t child, const char *bad, struct gt_ran *ret)
{
	int status;

	ret->bad = bad;
	if (bad)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	ret->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (!bad && !WIFEXITED(status))
		ret->bad = "it ended in the middle: the file may be damaged, or memory short";
}

void gt_mcp_run(const struct gt_mcp *mcp, int (*job)(void *ctx), void *ctx, struct gt_ran *ret)
{
	int out[2] = {-1, -1}, said[2] = {-1, -1};
	struct stream streams[2];
	pid_t child = -1;

	*ret = (struct gt_ran){0};
	fflush(stdout);
	if (!pipe2(out, O_CLOEXEC) && !pipe2(said, O_CLOEXEC))
		child = fork();
	if (!child)
		run_child(mcp, out[1], said[1], job, ctx);
	close(out[1]);
	close(said[1]);
	streams[0] = (struct stream){.fd = out[0], .most = LIMIT_OUT, .text = gt_xstrdup("")};
	streams[1] = (struct stream){.fd = said[0], .most = LIMIT_SAID, .text = gt_xstrdup("")};
	if (child > 0)
		finish(child, collect(streams), ret);
	else
		ret->bad = strerror(errno);
	for (int i = 0; i < 2; i++) {
		if (streams[i].fd >= 0)
			close(streams[i].fd);
		streams[i].text[streams[i].length] = 0;
	}
	ret->out = streams[0].text;
	ret->length = streams[0].length;
	ret->said = streams[1].text;
}

void gt_ran_clear(struct gt_ran *ran)
{
	free(ran->out);
	free(ran->said);
	*ran = (struct gt_ran){0};
}
