/* SPDX-License-Identifier: MIT */
/*
 * What the recorder should know: a random program of recorder calls, made from a seed, and the
 * state of each lane after each of its events, found the simple way (at-peak bytes by copying all
 * sites at each new peak). The child that runs the program and the parent that judges its file make
 * it from the same seed.
 */
#ifndef GT_TEST_MODEL_H
#define GT_TEST_MODEL_H

#include "../../preload/preload.h"
#include "check.h"

#define FAKE_STACKS  100 /* nodes 1 .. of fake.c */
#define FAKE_STREAMS 5

enum call_kind { CALL_ALLOC, CALL_FREE, CALL_FREE_UNKNOWN, CALL_FREE_REFUSED, CALL_NOTE };

struct call {
	enum call_kind kind;
	int device;	 /* to which the call says the block belongs */
	uint32_t block;	 /* number of its address and space */
	uint32_t native; /* its site's stack */
	uint32_t stream;
	uint64_t size;
	uint64_t events[2]; /* events on lane 0 and 1 when it has returned */
};

struct program {
	uint32_t lanes, blocks, stacks;
	uint32_t grow; /* of 100: how much likelier allocations are than frees */
	struct call *calls;
	size_t count;
};

void program_make(struct program *p, uint64_t seed, size_t calls);
void program_free(struct program *p);
void program_call(const struct program *p, size_t i); /* for real */

struct m_event {
	uint32_t op, block, site, aux;
	uint64_t size;
	uint32_t stream;
	uint64_t birth_seq; /* event that made the block; its own for the rest */
};

struct m_block {
	bool live;
	uint32_t site, stream;
	uint64_t size, birth_seq;
};

struct m_site {
	uint32_t native, space, mask, api;
	uint64_t live, count, ever, ever_count;
	uint64_t at[GT_TOTALS];
};

struct m_lane {
	struct m_event *events; /* [q - 1] is event q */
	uint64_t event_count;
	/* after event seq: */
	uint64_t seq;
	struct gt_ctr ctr; /* times are not known here */
	struct m_block *blocks;
	uint64_t live_blocks;
	struct m_site *sites;
	uint32_t site_count;
	uint64_t *times; /* of event q, once seen in the file */
};

struct model {
	const struct program *p;
	struct m_lane lane[2];
};

void model_make(struct model *m, const struct program *p);
void model_free(struct model *m);
void model_rewind(struct model *m); /* to before the first event, times forgotten */
void model_advance(struct model *m, uint32_t lane, uint64_t seq);

/* Does the lane in the file say what the model says after the same event? NULL or what is wrong. */
const char *model_compare(struct model *m, uint32_t lane, const struct ck_lane *l);
/* Its counters and sites alone. */
const char *model_totals(struct model *m, uint32_t lane, const struct ck_lane *l);
/* One event alone. */
const char *model_event(struct model *m, uint32_t lane, const struct ck_event *e);
/* Live blocks undone event by event to the start of the history, and compared there. */
const char *model_backward(struct model *m, uint32_t lane, const struct ck_lane *l);

uint64_t model_key(uint32_t block);
uint64_t rnd(uint64_t *state);

#endif
