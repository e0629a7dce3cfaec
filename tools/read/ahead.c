/* SPDX-License-Identifier: MIT */
/*
 * Units of a long walk, decoded on the other cores before the walk comes to them. Decoding is half
 * to four fifths of what a walk takes, and needs nothing from the extent before: each is a zstd
 * frame of its own, and its events refer to a limited number of those before them. So units are
 * handed out in the walk's order to whoever is free: the workers, and the walk too, rather than
 * wait for one that is not ready. They lie in a ring of parts, each a cursor of its own, which
 * belongs to whoever claimed it until it is ready, and then to the walk until that asks for the
 * next. Nothing else is shared but what never changes.
 *
 * What cannot be decoded is left to the walk, which stops this and comes to the same error at the
 * same event as it does on one core. Not for a trace that grows, nor for a short way. One walk
 * at a time has workers: they bound the memory, and the cores are taken. Called by cursor.c.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "read/reader.h"

#define WORKERS 3u	      /* at most: a walk keeps no more of them busy */
#define PARTS	(WORKERS + 2) /* one is looked at, one the walk may decode itself */
#define LEAST	(1ull << 18)  /* events to come: 15 ms, and workers and their memory take 1 */

struct part {
	struct gt_cursor cursor; /* its window holds the unit */
	struct gt_unit unit;
	bool ready;
	int rc;
};

struct gt_ahead {
	const struct gt_history *history;
	int direction;
	pthread_mutex_t lock; /* of what follows, but for parts that are claimed and not ready */
	pthread_cond_t changed;
	uint64_t next; /* an event of the first unit that is not claimed */
	size_t claimed,
		asked; /* how many units: by anybody, for by the walk; n is in part n % parts */
	bool stop;
	struct part part[PARTS];
	unsigned int parts, workers;
	pthread_t worker[WORKERS];
};

static atomic_flag taken = ATOMIC_FLAG_INIT;

/* Under the lock: the next unit. NULL: there is none, or all parts are in use. */
static struct part *claim(struct gt_ahead *a)
{
	struct part *part = &a->part[a->claimed % a->parts];

	/* The walk looks at the last one that it asked for. */
	if (a->claimed + 1 >= a->asked + a->parts || !gt_unit_of(a->history, a->next, &part->unit))
		return NULL;
	a->next = a->direction > 0 ? part->unit.to : part->unit.from - 1;
	a->claimed++;
	part->ready = false;
	return part;
}

/* With the lock, which is not held meanwhile. */
static void decode(struct gt_ahead *a, struct part *part)
{
	pthread_mutex_unlock(&a->lock);
	part->rc = gt_cursor_fill(&part->cursor, &part->unit);
	pthread_mutex_lock(&a->lock);
	part->ready = true;
	pthread_cond_broadcast(&a->changed);
}

static void *work(void *arg)
{
	struct gt_ahead *a = arg;
	struct part *part;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		part = claim(a);
		if (part)
			decode(a, part);
		else
			pthread_cond_wait(&a->changed, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static unsigned int other_cores(void)
{
	cpu_set_t set;
	unsigned int count;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	count = (unsigned int)CPU_COUNT(&set) - 1;
	return count < WORKERS ? count : WORKERS;
}

/* Signals are for the thread that their handlers know. */
static void start_workers(struct gt_ahead *a, unsigned int count)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (a->workers < count && !pthread_create(&a->worker[a->workers], NULL, work, a))
		a->workers++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static struct gt_ahead *make(const struct gt_cursor *like, uint64_t seq, int direction,
			     unsigned int parts)
{
	struct gt_ahead *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->history = like->history;
	a->direction = direction;
	a->next = seq;
	a->parts = parts;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	for (unsigned int i = 0; i < parts; i++) {
		gt_cursor_init(&a->part[i].cursor, like->source, like->history, &like->limits);
		a->part[i].cursor.added = like->added;
	}
	return a;
}

struct gt_ahead *gt_ahead_start(const struct gt_cursor *like, uint64_t seq, int direction)
{
	const struct gt_history *h = like->history;
	uint64_t left = direction < 0 ? seq - h->first_seq : h->last_seq - seq;
	unsigned int cores = left < LEAST ? 0 : other_cores();
	struct gt_ahead *a;

	if (!cores || atomic_flag_test_and_set(&taken))
		return NULL;
	a = make(like, seq, direction, cores + 2);
	if (a)
		start_workers(a, cores);
	else
		atomic_flag_clear(&taken);
	return a && !a->workers ? gt_ahead_stop(a) : a;
}

/* Under the lock: decodes what is to come until a part is ready that is the last one asked for. */
static bool wait_for(struct gt_ahead *a, const struct part *wanted)
{
	struct part *part;

	while (a->claimed < a->asked || !wanted->ready) {
		part = claim(a);
		if (part)
			decode(a, part);
		else if (a->claimed < a->asked)
			return false;
		else
			pthread_cond_wait(&a->changed, &a->lock);
	}
	return true;
}

int gt_ahead_get(struct gt_ahead *a, uint64_t seq, struct gt_window *ret)
{
	struct part *part;
	bool good;

	pthread_mutex_lock(&a->lock);
	part = &a->part[a->asked++ % a->parts];
	pthread_cond_broadcast(&a->changed);
	good = wait_for(a, part);
	pthread_mutex_unlock(&a->lock);
	if (!good || part->rc || !gt_unit_has(&part->unit, seq))
		return -1;
	*ret = part->cursor.window;
	return 0;
}

struct gt_ahead *gt_ahead_stop(struct gt_ahead *a)
{
	if (!a)
		return NULL;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	for (unsigned int i = 0; i < a->workers; i++)
		pthread_join(a->worker[i], NULL);
	for (unsigned int i = 0; i < a->parts; i++)
		gt_cursor_release(&a->part[i].cursor);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
	atomic_flag_clear(&taken);
	return NULL;
}
