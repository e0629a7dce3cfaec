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
#include "model/keyed.h"
#include "model/label.h"
#include "model/xalloc.h"

struct begin {
	uint64_t key, seq, us;
	const struct gt_life *life;
};

struct walk {
	const struct gt_export_place *place;
	gt_lived_fn *take;
	void *ctx;
	struct gt_keyed begins;
	size_t life; /* how far gt_answers_next has come */
};

static bool is_inferred(const struct gt_export_place *place, uint32_t site)
{
	return place->answers && gt_site_mask(place->lane, site) & GT_MASK_IN_USE;
}

/* What is inferred of a block from before the history. */
static const struct gt_life *older_life(const struct gt_export_place *place,
					const struct gt_block *block)
{
	if (!is_inferred(place, block->site))
		return NULL;
	return gt_answers_life(place->answers, place->lane_index, block->addr,
			       place->lane->history_first - 1);
}

static void start(struct walk *walk, const struct gt_event *event)
{
	const struct gt_export_place *place = walk->place;
	struct begin *begin = gt_keyed_put(&walk->begins, GT_KEY(event->addr, event->space));
	struct gt_block block = gt_block_of(event);

	begin->seq = event->seq;
	begin->us = event->us;
	if (event->op != GT_OP_ALLOC)
		begin->life = begin->life ? begin->life : older_life(place, &block);
	else if (is_inferred(place, event->site))
		begin->life =
			gt_answers_next(place->answers, place->lane_index, event->seq, &walk->life);
	else
		begin->life = NULL;
}

/* end NULL: it lives. */
static void finish(struct walk *walk, const struct gt_block *block, const struct gt_event *end)
{
	const struct gt_export_place *place = walk->place;
	struct begin *begin = gt_keyed_find(&walk->begins, GT_KEY(block->addr, block->space));
	struct gt_lived lived = {
		.block = *block,
		.from = begin ? begin->seq : 0,
		.from_us = begin ? begin->us : block->birth_us,
		.to = end ? end->seq : 0,
		.to_us = end ? end->us : 0,
		.end = end,
		.named = &place->lane->site_defs[block->site],
	};
	const struct gt_site_def *call;

	lived.life = begin ? begin->life : older_life(place, block);
	call = lived.life ? gt_answers_call(place->answers, lived.life) : NULL;
	lived.named = call ? call : lived.named;
	walk->take(walk->ctx, place, &lived);
	/* A free that was refused is taken back later, and its life goes on. */
	if (begin && (!begin->life || begin->life->died_seq == lived.to))
		gt_keyed_remove(&walk->begins, begin);
}

int gt_lives(const struct gt_export_place *place, gt_lived_fn *take, void *ctx,
	     struct gt_error *err)
{
	struct walk walk = {place, take, ctx, {.size = sizeof(struct begin)}, 0};
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
	gt_keyed_clear(&walk.begins);
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
