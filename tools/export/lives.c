/* SPDX-License-Identifier: MIT */
/*
 * See lives.h. One walk forward that remembers the beginnings of the blocks alive, so the memory it
 * takes is that of the live set. The end of a block repeats its size, site and birth: blocks that were
 * made before the history began are whole too. A free that was taken back ends one stretch and
 * begins another, as the totals do. Called from csv.c and sqlite.c.
 */
#include "export/lives.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/label.h"
#include "model/xalloc.h"

struct begin {
	uint64_t key, seq, us;
	UT_hash_handle hh;
};

struct walk {
	const struct gt_export_place *place;
	gt_lived_fn *take;
	void *ctx;
	struct begin *begins;
};

/* The key of the block and where it began; NULL: before the history. */
static struct begin *begin_of(struct walk *walk, const struct gt_block *block)
{
	uint64_t key = GT_KEY(block->addr, block->space);
	struct begin *begin;

	HASH_FIND(hh, walk->begins, &key, sizeof(key), begin);
	return begin;
}

static void start(struct walk *walk, const struct gt_event *event)
{
	struct gt_block block = gt_block_of(event);
	struct begin *begin = begin_of(walk, &block);

	if (!begin) {
		begin = gt_xcalloc(1, sizeof(*begin));
		begin->key = GT_KEY(block.addr, block.space);
		HASH_ADD(hh, walk->begins, key, sizeof(begin->key), begin);
	}
	begin->seq = event->seq;
	begin->us = event->us;
}

static void infer(const struct gt_export_place *place, struct gt_lived *lived)
{
	uint64_t seq = lived->from ? lived->from : lived->to ? lived->to - 1 : place->lane->seq;

	lived->named = &place->lane->site_defs[lived->block.site];
	if (!place->answers || !(gt_site_mask(place->lane, lived->block.site) & GT_MASK_IN_USE))
		return;
	lived->life = gt_answers_life(place->answers, place->lane_index, lived->block.addr, seq);
	if (lived->life && gt_answers_call(place->answers, lived->life))
		lived->named = gt_answers_call(place->answers, lived->life);
}

/* end NULL: it lives. */
static void finish(struct walk *walk, const struct gt_block *block, const struct gt_event *end)
{
	struct begin *begin = begin_of(walk, block);
	struct gt_lived lived = {
		.block = *block,
		.from = begin ? begin->seq : 0,
		.from_us = begin ? begin->us : block->birth_us,
		.to = end ? end->seq : 0,
		.to_us = end ? end->us : 0,
		.end = end,
	};

	infer(walk->place, &lived);
	walk->take(walk->ctx, walk->place, &lived);
	if (!begin)
		return;
	HASH_DEL(walk->begins, begin);
	free(begin);
}

static void clear(struct walk *walk)
{
	struct begin *begin, *next;

	HASH_ITER(hh, walk->begins, begin, next) {
		HASH_DEL(walk->begins, begin);
		free(begin);
	}
}

int gt_lives(const struct gt_export_place *place, gt_lived_fn *take, void *ctx,
	     struct gt_error *err)
{
	struct walk walk = {place, take, ctx, NULL};
	struct gt_cursor *cursor = gt_cursor_new(place->trace, place->lane_index);
	const struct gt_event *event = NULL;

	err->status = 0;
	while (cursor && (event = gt_cursor_next(cursor, err))) {
		struct gt_block block = gt_block_of(event);

		if (gt_op_effect(event->op) > 0)
			start(&walk, event);
		else if (gt_op_effect(event->op) < 0)
			finish(&walk, &block, event);
	}
	gt_cursor_free(cursor);
	for (size_t i = 0; !err->status && i < place->lane->block_count; i++)
		finish(&walk, &place->lane->blocks[i], NULL);
	clear(&walk);
	return err->status ? -1 : 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct gt_line_text {
	const struct gt_site_def *named;
	char *text;
	UT_hash_handle hh;
};

const char *gt_line_of(struct gt_lines *lines, const struct gt_export_place *place,
		       const struct gt_site_def *named)
{
	struct gt_line_text *line;
	struct gt_label label;

	HASH_FIND_PTR(lines->list, &named, line);
	if (line)
		return line->text;
	gt_label_make(place->symbols, place->trace, named, GT_STREAM_UNKNOWN, GT_BY_LINE, &label);
	line = gt_xcalloc(1, sizeof(*line));
	line->named = named;
	line->text = gt_xstrdup(label.full);
	gt_label_clear(&label);
	HASH_ADD_PTR(lines->list, named, line);
	return line->text;
}

void gt_lines_clear(struct gt_lines *lines)
{
	struct gt_line_text *line, *next;

	HASH_ITER(hh, lines->list, line, next) {
		HASH_DEL(lines->list, line);
		free(line->text);
		free(line);
	}
}
