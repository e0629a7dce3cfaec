/* SPDX-License-Identifier: MIT */
/*
 * See join.h. Both sides are the same sequence of allocations and frees, of which each may have only a
 * part, and now and then an event more. So first a place where both agree for long is looked for; from
 * there both are walked, forwards and backwards, and where they differ the nearest place at which they
 * agree again. A training repeats itself, addresses and all, and agrees with itself at every step: which
 * step it is, the clocks say, which both sides have read. Old snapshots have no times; there the last
 * place that agrees best is taken. Called from cmd/merge.c.
 */
#include "model/join.h"

#include <stdlib.h>
#include <string.h>
#include "model/keyed.h"
#include "model/walk.h"
#include "model/xalloc.h"

#define LONG   512 /* events in a row that are certainly no accident */
#define ENOUGH 16  /* and that are hardly one */
#define NEAR   128 /* events that one side may lack at a place, to be looked for in all ways */
#define FAR    64  /* how often further ones are looked for */
#define STARTS 8   /* places that are tried */
#define CLOCKS (UINT64_C(1) << 20) /* microseconds by which the two clocks may differ */

struct element { /* an event that both sides can have */
	uint64_t key, seq, us;
	size_t life;
	bool begins;
};

struct alive {
	uint64_t key;
	size_t life;
};

struct side {
	const struct gt_trace *trace;
	const struct gt_trace_lane *lane;
	size_t lane_index;
	struct gt_joined *lives;
	size_t life_count, held; /* the first ones are those that lived when the history began */
	struct element *elements;
	size_t count;
	struct gt_keyed alive;
};

struct pair {
	size_t trace, snapshot;
};

struct join {
	struct side trace, snapshot;
	struct pair *pairs;
	size_t pair_count;
};

/* ---- the two sides --------------------------------------------------------------------------- */

/* Driver memory counts where torch cuts it: then it is not in use as such. */
static bool is_torch(const struct side *side, unsigned int space, uint32_t site)
{
	if (space == GT_SPACE_DRIVER)
		return !(gt_site_mask(side->lane, site) & GT_MASK_IN_USE);
	return space == GT_SPACE_TORCH || space == GT_SPACE_MAPPING;
}

static void begin(struct side *side, const struct gt_block *block, uint64_t seq)
{
	const uint64_t key = GT_KEY(block->addr, block->space);
	struct alive *alive = gt_keyed_put(&side->alive, key);

	alive->life = side->life_count;
	*GT_PUSH(side->lives, side->life_count) = (struct gt_joined){
		.key = key,
		.size = block->size,
		.requested = block->requested,
		.pool = block->pool,
		.born = seq,
	};
}

static void add_element(struct side *side, const struct gt_event *event, size_t life)
{
	*GT_PUSH(side->elements, side->count) = (struct element){
		.key = GT_KEY(event->addr, event->space),
		.seq = event->seq,
		.us = side->trace->header.real_us + event->us,
		.life = life,
		.begins = gt_op_effect(event->op) > 0,
	};
}

/*
 * What ends without a free that was seen has none in the snapshot either. A block that the snapshot knows
 * only as freed before its history, and still pending, is no life of the trace's then.
 */
static void end(struct side *side, const struct gt_event *event)
{
	const bool told = event->op == GT_OP_FREE &&
			  !(side->trace->snapshot && event->aux == GT_FREE_EARLIER);
	/* Before the first life there is none to end. */
	struct alive *alive =
		!side->life_count ? NULL
				  : gt_keyed_find(&side->alive, GT_KEY(event->addr, event->space));

	if (!alive)
		return;
	side->lives[alive->life].died = event->seq;
	if (told)
		add_element(side, event, alive->life);
	else if (side->trace->snapshot)
		side->lives[alive->life].key = 0;
	gt_keyed_remove(&side->alive, alive);
}

static void take(struct side *side, const struct gt_event *event)
{
	const struct gt_block block = gt_block_of(event);

	if (gt_op_effect(event->op) < 0)
		end(side, event);
	if (gt_op_effect(event->op) <= 0)
		return;
	begin(side, &block, event->seq);
	if (event->op == GT_OP_ALLOC)
		add_element(side, event, side->life_count - 1);
}

static int take_held(struct side *side, struct gt_error *err)
{
	struct gt_moment moment;

	if (side->lane->history_first <= 1)
		return 0;
	if (gt_moment_get(side->trace, side->lane_index, side->lane->history_first - 1, UINT64_MAX,
			  &moment, err))
		return -1;
	for (size_t i = 0; i < moment.block_count; i++)
		if (is_torch(side, moment.blocks[i].space, moment.blocks[i].site))
			begin(side, &moment.blocks[i], 0);
	side->held = side->life_count;
	gt_moment_clear(&moment);
	return 0;
}

static int take_side(struct side *side, const struct gt_trace *trace, size_t lane_index,
		     struct gt_error *err)
{
	const struct gt_event *event;
	struct gt_cursor *cursor;

	side->trace = trace;
	side->lane = &trace->lanes[lane_index];
	side->lane_index = lane_index;
	side->alive.size = sizeof(struct alive);
	if (take_held(side, err))
		return -1;
	err->status = 0;
	cursor = gt_xchecked(gt_cursor_new(trace, lane_index));
	while ((event = gt_cursor_next(cursor, err)))
		if (is_torch(side, event->space, event->site))
			take(side, event);
	gt_cursor_free(cursor);
	gt_keyed_clear(&side->alive);
	return err->status ? -1 : 0;
}

static void clear_side(struct side *side)
{
	free(side->lives);
	free(side->elements);
}

/* ---- agreement ------------------------------------------------------------------------------- */

/* The snapshot's block sizes are worked out where it does not say them; what was asked fits in any case. */
static bool same(const struct join *join, size_t i, size_t j)
{
	const struct element *a = &join->trace.elements[i], *b = &join->snapshot.elements[j];
	const struct gt_joined *x = &join->trace.lives[a->life],
			       *y = &join->snapshot.lives[b->life];

	if (a->key != b->key || a->begins != b->begins)
		return false;
	if (GT_KEY_SPACE(a->key) == GT_SPACE_TORCH)
		return y->requested <= x->size;
	return GT_KEY_SPACE(a->key) == GT_SPACE_MAPPING || x->size == y->size;
}

/* How many agree in a row, from there on or back. */
static size_t agree(const struct join *join, size_t i, size_t j, int step, size_t most)
{
	size_t n = 0;

	while (n < most && i < join->trace.count && j < join->snapshot.count && same(join, i, j)) {
		n++;
		i += (size_t)(int64_t)step;
		j += (size_t)(int64_t)step;
	}
	return n;
}

static bool clocks_agree(const struct join *join, size_t i, size_t j)
{
	const uint64_t a = join->trace.elements[i].us, b = join->snapshot.elements[j].us;

	return !join->snapshot.trace->header.real_us || (a > b ? a - b : b - a) < CLOCKS;
}

struct start {
	size_t i, j, run;
	uint64_t apart; /* by the clocks */
};

static void consider(const struct join *join, size_t i, size_t j, struct start *best)
{
	const uint64_t a = join->trace.elements[i].us, b = join->snapshot.elements[j].us;
	const bool timed = join->snapshot.trace->header.real_us;
	const uint64_t apart = !timed ? 0 : a > b ? a - b : b - a;
	size_t run;

	if (!clocks_agree(join, i, j))
		return;
	run = agree(join, i, j, 1, LONG);
	if (run > best->run || (run && run == best->run && apart <= best->apart))
		*best = (struct start){i, j, run, apart};
}

/* Each place of one side against some of the other, the first of which comes first. */
static struct start find_start(const struct join *join)
{
	const size_t most = join->trace.count && join->snapshot.count ? STARTS : 0;
	struct start best = {0};

	for (size_t k = 0; k < most && best.run < ENOUGH; k++) {
		const size_t j = join->snapshot.count / STARTS * k;
		const size_t i = join->trace.count / STARTS * k;

		for (size_t n = 0; n < join->trace.count; n++)
			consider(join, n, j, &best);
		for (size_t n = 0; best.run < ENOUGH && n < join->snapshot.count; n++)
			consider(join, i, n, &best);
	}
	return best;
}

/* ---- the walk -------------------------------------------------------------------------------- */

struct walk {
	size_t i, j; /* beyond the end when walked back to before the first: sizes have no sign */
	int step;
	unsigned int far; /* searches that are left */
};

static size_t left(const struct walk *walk, size_t at, size_t count)
{
	return at >= count ? 0 : walk->step > 0 ? count - at : at + 1;
}

static size_t moved(const struct walk *walk, size_t at, size_t by)
{
	return walk->step > 0 ? at + by : at - by;
}

/* A few events were added on either side. */
static bool meet_near(const struct join *join, struct walk *walk)
{
	for (size_t apart = 1; apart <= NEAR; apart++) {
		for (size_t a = 0; a <= apart; a++) {
			const size_t i = moved(walk, walk->i, a),
				     j = moved(walk, walk->j, apart - a);

			if (agree(join, i, j, walk->step, 4) < 4)
				continue;
			walk->i = i;
			walk->j = j;
			return true;
		}
	}
	return false;
}

/* Many are missing on one side. */
static bool meet_far(const struct join *join, struct walk *walk)
{
	const size_t in_trace = left(walk, walk->i, join->trace.count);
	const size_t in_snapshot = left(walk, walk->j, join->snapshot.count);

	for (size_t n = NEAR; n < in_trace || n < in_snapshot; n++) {
		const size_t i = moved(walk, walk->i, n), j = moved(walk, walk->j, n);

		if (n < in_trace && agree(join, i, walk->j, walk->step, ENOUGH) == ENOUGH) {
			walk->i = i;
			return true;
		}
		if (n < in_snapshot && agree(join, walk->i, j, walk->step, ENOUGH) == ENOUGH) {
			walk->j = j;
			return true;
		}
	}
	return false;
}

static void walk_pairs(struct join *join, size_t i, size_t j, int step)
{
	struct walk walk = {i, j, step, FAR};

	while (left(&walk, walk.i, join->trace.count) &&
	       left(&walk, walk.j, join->snapshot.count)) {
		if (same(join, walk.i, walk.j))
			*GT_PUSH(join->pairs, join->pair_count) = (struct pair){walk.i, walk.j};
		else if (meet_near(join, &walk))
			continue;
		else if (!walk.far--)
			return;
		else if (meet_far(join, &walk))
			continue;
		walk.i = moved(&walk, walk.i, 1);
		walk.j = moved(&walk, walk.j, 1);
	}
}

/* ---- what is learnt -------------------------------------------------------------------------- */

static void learn(struct gt_joined *to, const struct gt_joined *from)
{
	to->requested = from->requested <= to->size ? from->requested : 0;
	to->pool = from->pool;
	to->matched = true;
}

static int by_key(const void *a, const void *b)
{
	const struct gt_joined *x = *(const struct gt_joined *const *)a;
	const struct gt_joined *y = *(const struct gt_joined *const *)b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->born < y->born ? -1 : x->born > y->born;
}

/* The lives that were there after an event: few of all. */
static struct gt_joined **sort_lives(const struct side *side, uint64_t seq, size_t *ret_count)
{
	struct gt_joined **sorted = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < side->life_count; i++) {
		struct gt_joined *life = &side->lives[i];

		if (life->born <= seq && (!life->died || life->died > seq))
			*GT_PUSH(sorted, *ret_count) = life;
	}
	if (sorted)
		qsort(sorted, *ret_count, sizeof(*sorted), by_key);
	return sorted;
}

/* That of a key. */
static struct gt_joined *life_of(struct gt_joined **sorted, size_t count, uint64_t key)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (sorted[middle]->key <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low && sorted[low - 1]->key == key ? sorted[low - 1] : NULL;
}

/* What lived when the snapshot's history began: the trace had it at the same place then. */
static void learn_held(struct join *join, uint64_t seq, struct gt_join *ret)
{
	size_t count;
	struct gt_joined **sorted = sort_lives(&join->trace, seq, &count);

	for (size_t i = 0; i < join->snapshot.held; i++) {
		const struct gt_joined *life = &join->snapshot.lives[i];
		struct gt_joined *mine = life_of(sorted, count, life->key);

		ret->held += life->key != 0;
		if (!mine || (mine->size != life->size && life->requested > mine->size))
			continue;
		ret->older++;
		learn(mine, life);
	}
	free(sorted);
}

/*
 * What lived when the trace's history began, of which the snapshot may know the beginning: it had it at the
 * same place before the first event of both. What the trace freed before that is not looked for.
 */
static void learn_earlier(struct join *join, const struct pair *first, struct gt_join *ret)
{
	const uint64_t seq = join->snapshot.elements[first->snapshot].seq - 1;
	const uint64_t from = join->trace.elements[first->trace].seq;
	size_t count;
	struct gt_joined **sorted = sort_lives(&join->snapshot, seq, &count);

	for (size_t i = 0; i < join->trace.held; i++) {
		struct gt_joined *mine = &join->trace.lives[i];
		const struct gt_joined *life = life_of(sorted, count, mine->key);

		ret->all_earlier++;
		if (!life || (mine->died && mine->died < from) ||
		    (mine->size != life->size && life->requested > mine->size))
			continue;
		ret->earlier++;
		learn(mine, life);
	}
	free(sorted);
}

/* Is it among the snapshot's, which are sorted? */
static int weight(struct gt_joined **sorted, size_t count, const struct gt_joined *life)
{
	const struct gt_joined *found = life_of(sorted, count, life->key);

	return found && found->size == life->size ? 1 : -1;
}

/*
 * The trace's event after which it is most like a snapshot without a history: blocks of both count for it,
 * those of one against it; the last such event.
 */
static uint64_t most_alike(const struct join *join)
{
	const struct side *trace = &join->trace;
	size_t count;
	struct gt_joined **sorted = sort_lives(&join->snapshot, UINT64_MAX, &count);
	int64_t score = 0, best;
	uint64_t seq = trace->lane->history_first - 1;

	for (size_t i = 0; i < trace->held; i++)
		score += weight(sorted, count, &trace->lives[i]);
	best = score;
	for (size_t i = 0; i < trace->count; i++) {
		const struct element *e = &trace->elements[i];
		const int w = weight(sorted, count, &trace->lives[e->life]);

		score += e->begins ? w : -w;
		if (score < best)
			continue;
		best = score;
		seq = e->seq;
	}
	free(sorted);
	return seq;
}

static const struct pair *first_pair(const struct join *join)
{
	const struct pair *first = join->pairs;

	for (size_t i = 1; i < join->pair_count; i++)
		if (join->pairs[i].trace < first->trace)
			first = &join->pairs[i];
	return first;
}

/* A free says whose it is only where the snapshot lacks the alloc, or it may be of one before a gap. */
static void learn_pair(struct join *join, const struct pair *pair)
{
	const struct element *mine = &join->trace.elements[pair->trace];
	const struct element *theirs = &join->snapshot.elements[pair->snapshot];

	if (mine->begins || theirs->life < join->snapshot.held)
		learn(&join->trace.lives[mine->life], &join->snapshot.lives[theirs->life]);
}

static void conclude(struct join *join, struct gt_join *ret)
{
	ret->trace = join->trace.count;
	ret->snapshot = join->snapshot.count;
	ret->matched = join->pair_count;
	if (!join->snapshot.count)
		learn_held(join, most_alike(join), ret);
	if (join->pair_count) {
		const struct pair *first = first_pair(join);

		learn_held(join, join->trace.elements[first->trace].seq - 1, ret);
		learn_earlier(join, first, ret);
	}
	for (size_t i = 0; i < join->pair_count; i++)
		learn_pair(join, &join->pairs[i]);
	ret->lives = join->trace.lives;
	ret->count = join->trace.life_count;
	join->trace.lives = NULL;
}

int gt_join_lanes(const struct gt_trace *trace, size_t lane_index, const struct gt_trace *snapshot,
		  size_t snapshot_lane, struct gt_join *ret, struct gt_error *err)
{
	struct join join = {0};
	struct start start;
	int rc;

	*ret = (struct gt_join){0};
	rc = take_side(&join.trace, trace, lane_index, err);
	if (!rc)
		rc = take_side(&join.snapshot, snapshot, snapshot_lane, err);
	if (!rc) {
		start = find_start(&join);
		if (start.run) {
			walk_pairs(&join, start.i, start.j, 1);
			walk_pairs(&join, start.i - 1, start.j - 1, -1);
		}
		conclude(&join, ret);
	}
	clear_side(&join.trace);
	clear_side(&join.snapshot);
	free(join.pairs);
	return rc;
}

void gt_join_clear(struct gt_join *join)
{
	free(join->lives);
	*join = (struct gt_join){0};
}
