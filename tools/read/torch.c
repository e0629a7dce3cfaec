/* SPDX-License-Identifier: MIT */
/*
 * See torch.h. Written by gputrace merge; read back into the fields of events and blocks that a
 * trace of its own cannot fill, as if the recorder had known them. An event is found by its number and a
 * block that lives on by its key, for of one key only one is alive. Called from cmd/merge.c, and from
 * cursor.c and trace.c when such a trace is read.
 */
#include <string.h>
#include "read/reader.h"
#include "read/torch.h"

#define AT_ONCE 65536u /* in one record */

void gt_torch_append(struct gt_append *append, uint32_t lane, bool alive,
		     const struct gt_added *added, size_t count)
{
	while (count) {
		const size_t n = count < AT_ONCE ? count : AT_ONCE;
		struct gt_rec_added *rec =
			gt_append_record(append, alive ? GT_REC_BLOCKS : GT_REC_EVENTS,
					 sizeof(*rec) + n * sizeof(*added));

		if (!rec)
			return;
		rec->lane = lane;
		rec->count = (uint32_t)n;
		memcpy(rec + 1, added, n * sizeof(*added));
		added += n;
		count -= n;
	}
}

void gt_torch_append_pools(struct gt_append *append, const struct gt_pool_def *pools, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct gt_rec_pool *rec = gt_append_record(append, GT_REC_POOL, sizeof(*rec));

		if (!rec)
			return;
		rec->id = (uint32_t)i;
		rec->first = pools[i].first;
		rec->second = pools[i].second;
	}
}

void gt_torch_append_name(struct gt_append *append, const char *snapshot)
{
	static const char key[] = "snapshot";
	const size_t key_length = sizeof(key) - 1, length = strlen(snapshot);
	struct gt_rec_info *rec =
		gt_append_record(append, GT_REC_INFO, sizeof(*rec) + key_length + length);

	if (!rec)
		return;
	rec->key_length = (uint32_t)key_length;
	rec->value_length = (uint32_t)length;
	memcpy(rec + 1, key, key_length);
	memcpy((char *)(rec + 1) + key_length, snapshot, length);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The first that is not before. */
static size_t find(const struct gt_lane_added *added, uint64_t which)
{
	size_t low = 0, high = added->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (added->at[middle].which < which)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void put_event(const struct gt_added *added, struct gt_event *event)
{
	event->requested = GT_LOW48(added->requested_pool);
	event->pool = GT_HIGH16(added->requested_pool);
}

void gt_added_window(const struct gt_lane_added *added, struct gt_window *window, uint64_t from)
{
	if (from < window->from)
		from = window->from;
	for (size_t i = find(added, from); i < added->count && added->at[i].which < window->to; i++)
		put_event(&added->at[i], gt_window_at(window, added->at[i].which));
}

static void put_tail(const struct gt_lane_added *added, struct gt_history *history)
{
	for (size_t i = find(added, history->tail_first); i < added->count; i++) {
		const uint64_t at = added->at[i].which - history->tail_first;

		if (at >= history->tail_count)
			break;
		put_event(&added->at[i], &history->tail[at]);
	}
}

void gt_added_lane(const struct gt_reader *reader, struct gt_trace_lane *lane,
		   struct gt_history *history)
{
	const struct gt_lane_added *alive = &reader->alive[lane->lane];

	put_tail(&reader->added[lane->lane], history);
	for (size_t i = 0; i < lane->block_count; i++) {
		struct gt_block *block = &lane->blocks[i];
		const uint64_t key = GT_KEY(block->addr, block->space);
		const size_t at = find(alive, key);

		if (at == alive->count || alive->at[at].which != key)
			continue;
		block->requested = GT_LOW48(alive->at[at].requested_pool);
		block->pool = GT_HIGH16(alive->at[at].requested_pool);
	}
}
