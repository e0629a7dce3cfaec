/* SPDX-License-Identifier: MIT */
/*
 * Walks that other cores decode ahead of, beside the same walks on one core: the same events, the same
 * errors at the same place, and no thread where none pays. Built a second time to look for races. Prints "ok NAME", "not ok NAME: why" or "skip NAME: why".
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "writer.h"

#define EVENTS 500000 /* in extents of 220,000, of which each is two units */

struct walked {
	uint64_t hash, events;
	unsigned int threads; /* at most, beside those there were */
	struct gt_error err;
};

static cpu_set_t all;
static int status;

static void case_is(const char *name, const char *what, bool good)
{
	status |= !good;
	printf(good ? "ok %s-%s\n" : "not ok %s-%s: not as it must be\n", name, what);
}

static void use_cores(bool one)
{
	cpu_set_t set = all;

	for (int cpu = 0; one && CPU_COUNT(&set) > 1; cpu++)
		CPU_CLR(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static unsigned int threads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) ? 0 : (unsigned int)st.st_nlink;
}

static void look_at(struct walked *w, const struct gt_event *event)
{
	/* Behind the last field there is room that nobody fills. */
	w->hash = XXH64(event, offsetof(struct gt_event, space) + sizeof(event->space), w->hash);
	w->events++;
}

static void walk(struct walked *w, struct gt_cursor *cursor, bool forward, uint64_t most)
{
	const unsigned int before = threads();
	const struct gt_event *event;
	unsigned int now;

	while (most-- && (event = forward ? gt_cursor_next(cursor, &w->err)
					  : gt_cursor_prev(cursor, &w->err))) {
		look_at(w, event);
		now = w->events % 4096 ? 0 : threads();
		if (now > before + w->threads)
			w->threads = now - before;
	}
}

static struct walked go(const struct gt_trace *trace, const char *how, bool one)
{
	struct walked w = {0};
	struct gt_cursor *cursor = gt_cursor_new(trace, 0);

	use_cores(one);
	if (!strcmp(how, "turns")) {
		walk(&w, cursor, true,
		     250000); /* stops in the middle of a unit, with others in work */
		walk(&w, cursor, false, 30000);
		gt_cursor_seek(cursor, EVENTS);
		walk(&w, cursor, false, 220000);
		gt_cursor_seek(cursor, 400000);
	}
	walk(&w, cursor, !strcmp(how, "forward"), UINT64_MAX);
	gt_cursor_free(cursor);
	use_cores(false);
	return w;
}

static bool same(const struct walked *a, const struct walked *b)
{
	return a->hash == b->hash && a->events == b->events && a->err.status == b->err.status &&
	       !strcmp(a->err.text, b->err.text);
}

static void compare(const struct gt_trace *trace, const char *name, const char *how)
{
	struct walked one = go(trace, how, true), more = go(trace, how, false);
	char what[64];

	snprintf(what, sizeof(what), "%s-is-the-same-on-all-cores", how);
	case_is(name, what, one.events && same(&one, &more));
	snprintf(what, sizeof(what), "%s-has-threads-on-all-cores-only", how);
	case_is(name, what, !one.threads && more.threads);
}

static struct gt_trace *open_bytes(const struct written *w)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct gt_trace *trace = NULL;
	struct gt_error err;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, w->bytes, w->size) != (ssize_t)w->size ||
	    gt_trace_open(path, 0, &trace, &err))
		exit(1);
	close(fd);
	return trace;
}

static void whole(const struct written *w)
{
	struct gt_trace *trace = open_bytes(w);
	struct walked written = {0}, read;

	for (size_t i = 0; i < w->lanes[0].count; i++)
		look_at(&written, &w->lanes[0].events[i]);
	read = go(trace, "forward", false);
	case_is("whole", "is-what-was-written", same(&written, &read));
	compare(trace, "whole", "forward");
	compare(trace, "whole", "backward");
	compare(trace, "whole", "turns");
	gt_trace_close(trace);
}

/* The packed bytes of the chunk with an event; NULL: none. */
static uint8_t *chunk_of(const struct written *w, uint64_t seq)
{
	struct gt_chunk chunk;

	for (size_t at = GT_HEADER_SIZE; at + sizeof(chunk) < w->size; at += 8) {
		memcpy(&chunk, w->bytes + at, sizeof(chunk));
		if (chunk.magic == GT_CHUNK_MAGIC && seq - chunk.first_seq < chunk.events)
			return w->bytes + at + sizeof(chunk);
	}
	return NULL;
}

/* The first or the last extent, when the walk comes from the other end. */
static void damaged(const struct written *w, const char *how, uint64_t seq)
{
	uint8_t *packed = chunk_of(w, seq);
	struct gt_trace *trace;
	struct walked read;

	if (packed)
		packed[8] ^= 1;
	trace = open_bytes(w);
	read = go(trace, how, false);
	case_is("damaged", "is-said", packed && read.err.status == 3 && read.events);
	compare(trace, "damaged", how);
	gt_trace_close(trace);
	if (packed)
		packed[8] ^= 1;
}

static void small(void)
{
	struct written *w = writer_make(&(struct writer_options){.seed = 2,
								 .events = 30000,
								 .lanes = 1,
								 .cap = 256,
								 .extent = 1 << 16,
								 .ring = 1000,
								 .sites = 50,
								 .live = 300});
	struct gt_trace *trace = open_bytes(w);
	struct walked read = go(trace, "forward", false);

	case_is("small", "has-no-threads", read.events == w->lanes[0].count && !read.threads);
	gt_trace_close(trace);
	writer_free(w);
}

int main(void)
{
	struct written *w;

	sched_getaffinity(0, sizeof(all), &all);
	if (CPU_COUNT(&all) < 2) {
		puts("skip ahead: one core");
		return 0;
	}
	w = writer_make(&(struct writer_options){.seed = 1,
						 .events = EVENTS,
						 .lanes = 1,
						 .cap = 4096,
						 .extent = 7 << 19,
						 .ring = 1000,
						 .sites = 50,
						 .live = 300});
	whole(w);
	damaged(w, "forward", EVENTS - 20000);
	damaged(w, "backward", 20000);
	writer_free(w);
	small();
	return status;
}
