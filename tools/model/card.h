/* SPDX-License-Identifier: MIT */
/*
 * A card at a moment, as far as its processes tell: what each held, what its contexts took, when the free
 * memory was asked last, and whom NVML named. ledger.c makes rows of it.
 */
#ifndef GT_CARD_H
#define GT_CARD_H

#include "model/ledger.h"
#include "model/walk.h"

/* abs: on the monotonic clock, which all processes of a machine share; in microseconds. */

struct gt_cost { /* of a context */
	const struct gt_context_def *context;
	uint64_t abs; /* when */
	int64_t bytes;
	enum gt_measured measured;
};

struct gt_seat { /* a process at the card */
	const struct gt_ledger_process *process;
	const struct gt_trace_lane *lane;
	struct gt_moment moment;
	bool there; /* it lived then */
	bool lent;  /* the moment's blocks are somebody else's */
	struct gt_cost *costs;
	size_t cost_count;
};

struct gt_sample { /* of the card's free memory */
	uint64_t abs, seq, free;
	size_t seat;
	bool known;
};

struct gt_card {
	struct gt_seat *seats;
	size_t count;
	uint64_t total;			/* bytes; 0 = not known */
	uint64_t now;			/* the moment, as abs */
	struct gt_sample sample;	/* the last before it */
	const struct gt_report *others; /* the latest that names other processes */
	const struct gt_seat *told_by;
};

/* As gt_ledger_make. */
int gt_card_look(const struct gt_ledger_process *processes, size_t count, size_t lead, uint64_t seq,
		 uint64_t us, struct gt_card *ret, struct gt_error *err);
void gt_card_clear(struct gt_card *card);

/* All of the traced processes at a time; seat `exactly` after its event seq. -1 = not known. */
int gt_card_traced(const struct gt_card *card, uint64_t abs, size_t exactly, uint64_t seq,
		   int64_t *ret);

/* The traced process with this number; NULL = none. */
const struct gt_seat *gt_card_process(const struct gt_card *card, uint32_t pid);

/* Of the processes that NVML named, those without a trace. */
int64_t gt_card_others(const struct gt_card *card);

#endif
