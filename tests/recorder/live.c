/* SPDX-License-Identifier: MIT */
/*
 * Reading while the process writes: two threads record on two lanes as fast as they can, with
 * extents and staging so small that both are overwritten all the time, beside a process that only
 * burns the processor. One reader follows every event by the rules of the format (cells while they
 * hold, then chunks); the other opens the trace over and over with the tool's own reader. Whatever
 * they get must be a state of the model: nothing torn, nothing mixed, nothing twice.
 *
 *   live MOMENTS	writes until the trace has been opened at so many different events
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../preload/recorder.h"
#include "model.h"
#include "read/trace.h"

#define FILE_MAX (64u << 20)
#define PACE	 128
#define CALLS	 3000000 /* at most */

static struct program program = {.lanes = 2, .blocks = 2000, .stacks = 60, .grow = 10};

static struct shared {
	char path[4096];
	uint32_t running, enough, ended;
} * shared;

/* ---- the writer ----------------------------------------------------------------------------- */

static void *run(void *arg)
{
	int lane = (int)(intptr_t)arg;

	for (size_t i = 0; i < program.count && !gt_load_relaxed(&shared->enough); i++) {
		if (program.calls[i].device == lane)
			program_call(&program, i);
		if (i % PACE == 0) /* or the follower would only ever see what is long sealed */
			sched_yield();
	}
	return NULL;
}

static void writer(void)
{
	pthread_t thread;

	if (!gt_recording())
		_exit(2);
	strcpy(shared->path, gt_file_path);
	gt_record_note(GT_OP_MARK, GT_DEVICE_HOST, 0, 0, 0, 0);
	gt_store(&shared->running, 1);
	pthread_create(&thread, NULL, run, (void *)1);
	run(NULL);
	pthread_join(thread, NULL);
	gt_store(&shared->ended, 1);
	pause();
}

static pid_t start(void (*what)(void))
{
	pid_t pid = fork();

	if (!pid) {
		what();
		_exit(0);
	}
	return pid;
}

static void hog(void)
{
	for (;;)
		__asm__ volatile("");
}

/* ---- following events ----------------------------------------------------------------------- */

struct follower {
	struct model model;
	const uint8_t *base;
	uint64_t next[2]; /* event wanted */
	uint64_t seen, from_cells, missed, tries;
};

static const struct gt_extent *find_extent(const struct follower *f, uint64_t *at, uint32_t kind,
					   uint32_t lane)
{
	uint64_t end = gt_load(&((const struct gt_header *)f->base)->end);

	while (*at < end) {
		const struct gt_extent *e = (const void *)(f->base + *at);

		*at += e->length;
		if (gt_load(&e->kind) == kind && gt_load_relaxed(&e->lane) == lane)
			return e;
	}
	return NULL;
}

/* The cell of event q if it holds it from the beginning of the copy to its end. */
static bool copy_cell(const struct gt_lane *l, uint64_t q, struct gt_cell *ret)
{
	const struct gt_cell *cells =
		(const void *)((const char *)l - sizeof(struct gt_extent) + GT_CELLS_OFFSET);

	*ret = cells[q & (l->cap - 1)];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (ret->seq_op >> 8 != q)
		return false;
	return gt_load(&l->sealed) < q || q + l->cap > gt_load(&l->seq) + 1;
}

/* A copy of the extent if it was not recycled meanwhile. */
static bool copy_extent(const struct gt_extent *e, struct gt_extent *head, uint8_t *bytes)
{
	uint64_t gen = gt_load(&e->gen);

	if (gen & 1)
		return false;
	*head = *e;
	head->used = gt_load(&e->used);
	if (head->used > head->length || head->length > 1 << 16)
		return false;
	memcpy(bytes, e, head->used);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return gt_load(&e->gen) == gen;
}

static const char *take(struct follower *f, uint32_t lane, const struct ck_event *e)
{
	f->seen++;
	f->next[lane] = e->seq + 1;
	return model_event(&f->model, lane, e);
}

/* Events from chunks, from the wanted one on; if it is gone, from the oldest there is. */
static const char *follow_chunks(struct follower *f, uint32_t lane)
{
	static uint8_t bytes[1 << 16];
	uint64_t at = GT_HEADER_SIZE, oldest = UINT64_MAX;
	const struct gt_extent *e;
	const char *why = NULL;

	while (!why && (e = find_extent(f, &at, GT_EXTENT_RING, lane))) {
		struct ck_lane l = {0};
		struct gt_extent head;
		struct ck_file copy;

		f->tries++;
		if (!copy_extent(e, &head, bytes) || head.lane != lane)
			continue;
		copy.base = bytes - head.offset;
		why = ck_ring_extent(&copy, &head, &l, lane);
		if (l.event_count && l.events[0].seq < oldest)
			oldest = l.events[0].seq;
		for (size_t i = 0; i < l.event_count && !why; i++)
			if (l.events[i].seq == f->next[lane])
				why = take(f, lane, &l.events[i]);
		ck_lane_free(&l);
	}
	if (!why && oldest != UINT64_MAX && oldest > f->next[lane]) {
		f->missed += oldest - f->next[lane];
		f->next[lane] = oldest;
	}
	return why;
}

static const char *follow_lane(struct follower *f, uint32_t lane, bool *at_end)
{
	uint64_t at = GT_HEADER_SIZE;
	const struct gt_extent *e = find_extent(f, &at, GT_EXTENT_LANE, lane);
	const struct gt_lane *l = (const void *)(e + 1);
	const char *why = NULL;

	if (!e || !gt_load(&l->cap))
		return NULL;
	while (!why && f->next[lane] <= gt_load(&l->seq)) {
		struct gt_cell cell;
		struct ck_event event;

		if (!copy_cell(l, f->next[lane], &cell)) {
			*at_end = false;
			return follow_chunks(f, lane);
		}
		event = ck_event_of(&cell);
		f->from_cells++;
		why = take(f, lane, &event);
	}
	return why;
}

static int follow(void)
{
	struct follower f = {.next = {1, 1}};
	int fd = open(shared->path, O_RDONLY);
	const char *why = NULL;
	bool ended, at_end;

	f.base = mmap(NULL, FILE_MAX, PROT_READ, MAP_SHARED, fd, 0);
	model_make(&f.model, &program);
	do {
		ended = gt_load(&shared->ended);
		at_end = true;
		for (uint32_t lane = 0; lane < 2 && !why; lane++)
			why = follow_lane(&f, lane, &at_end);
		sched_yield();
	} while (!why && !(ended && at_end));
	printf("# followed %lu events (%lu from cells), %lu too late, %lu extents copied\n", f.seen,
	       f.from_cells, f.missed, f.tries);
	if (!why && !f.from_cells)
		why = "no event was seen in its cell";
	printf(why ? "not ok live-events: %s\n" : "ok live-events\n", why);
	return why != NULL;
}

/* ---- whole states --------------------------------------------------------------------------- */

static void take_sites(struct ck_lane *l, const struct gt_trace_lane *from)
{
	l->sites = calloc(from->site_count, sizeof(*l->sites));
	for (; l->site_count < from->site_count; l->site_count++) {
		const struct gt_site_def *d = &from->site_defs[l->site_count];
		struct ck_site *s = &l->sites[l->site_count];

		s->line = from->sites[l->site_count];
		s->def.native = d->native;
		s->def.space = d->space;
		s->def.mask = d->mask;
		s->def.api = d->api;
	}
}

static const char *compare_lane(struct model *m, struct gt_trace *t, size_t index, uint64_t *events)
{
	const struct gt_trace_lane *from = &t->lanes[index];
	struct ck_lane l = {.head.seq = from->seq, .ctr = from->ctr};
	struct gt_cursor *cursor = gt_cursor_new(t, index);
	const struct gt_event *e;
	const char *why;

	l.blocks = calloc(from->block_count + 1, sizeof(*l.blocks));
	for (; l.block_count < from->block_count; l.block_count++) {
		const struct gt_block *b = &from->blocks[l.block_count];

		l.blocks[l.block_count] = (struct ck_block){GT_KEY(b->addr, b->space),
							    b->size,
							    b->birth_us,
							    b->stream,
							    b->thread,
							    b->site};
	}
	take_sites(&l, from);
	why = model_compare(m, from->lane, &l);
	while (!why && (e = gt_cursor_next(cursor, NULL))) {
		const struct ck_event c = {e->seq,	 e->us,		  e->birth_us, e->addr,
					   e->size,	 e->extra,	  e->op,       e->space,
					   e->thread,	 e->birth_thread, e->stream,   e->site,
					   e->free_site, e->aux};

		++*events;
		why = model_event(m, from->lane, &c);
	}
	gt_cursor_free(cursor);
	ck_lane_free(&l);
	return why;
}

/* The same by looking again, as gputrace live does: counters and sites of a trace kept open. */
static const char *look(struct model *m, struct gt_trace **kept, uint64_t *looks)
{
	int rc = *kept ? gt_trace_look(*kept, NULL) : 1;
	const char *why = NULL;

	if (rc > 0) { /* there are new sites */
		*kept = gt_trace_close(*kept);
		rc = gt_trace_open(shared->path, GT_OPEN_TOTALS, kept, NULL);
	} else {
		++*looks;
	}
	if (rc)
		return "it could not be looked at";
	for (size_t i = 0; i < (*kept)->lane_count && !why; i++) {
		const struct gt_trace_lane *from = &(*kept)->lanes[i];
		struct ck_lane l = {.head.seq = from->seq, .ctr = from->ctr};

		if (from->lane > 1)
			continue;
		take_sites(&l, from);
		why = model_totals(m, from->lane, &l);
		ck_lane_free(&l);
	}
	return why;
}

static int snapshots(uint64_t moments)
{
	uint64_t opens = 0, events = 0, last = 0, moved = 0, looks = 0;
	struct gt_trace *kept = NULL;
	struct gt_error err = {0};
	const char *why = NULL;
	struct model m;

	model_make(&m, &program);
	while (!why && moved < moments && !gt_load(&shared->ended)) {
		struct gt_trace *t;

		if (gt_trace_open(shared->path, 0, &t, &err)) {
			why = err.text;
			break;
		}
		for (size_t i = 0; i < t->lane_count && !why; i++)
			if (t->lanes[i].lane < 2)
				why = compare_lane(&m, t, i, &events);
		if (!why)
			why = look(&m, &kept, &looks);
		moved += m.lane[0].seq != last;
		last = m.lane[0].seq;
		opens++;
		gt_trace_close(t);
	}
	gt_trace_close(kept);
	printf("# %lu snapshots at %lu moments, %lu events compared, %lu looks\n", opens, moved,
	       events, looks);
	gt_store(&shared->enough, 1);
	if (!why && moved < moments)
		why = "too few moments";
	if (!why && looks < moments / 4)
		why = "too few looks";
	printf(why ? "not ok live-snapshots: %s\n" : "ok live-snapshots\n", why);
	return why != NULL;
}

int main(int argc, char **argv)
{
	size_t moments = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	pid_t pids[2], pid;
	int status = 0, rc;

	if (!moments)
		return 2;
	setenv("GPUTRACE_EXTENT", "16K", 1);
	setenv("GPUTRACE_CELLS", "128", 1);
	setenv("GPUTRACE_RING", "128K", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	program_make(&program, 9, CALLS);
	pids[0] = start(writer);
	pids[1] = start(hog);
	while (!gt_load(&shared->running))
		sched_yield();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		rc = follow();
		fflush(stdout);
		_exit(rc);
	}
	rc = snapshots(moments);
	waitpid(pid, &status, 0);
	for (int i = 0; i < 2; i++)
		kill(pids[i], SIGKILL);
	unlink(shared->path);
	return rc || status;
}
