/* SPDX-License-Identifier: MIT */
/* See marks.h. Called by commands that take names for moments. */
#include "model/marks.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "model/xalloc.h"

const char *gt_stretch_name(enum gt_stretch_kind kind)
{
	static const char *const names[] = {
		[GT_STRETCH_MARK] = "mark",
		[GT_STRETCH_RANGE] = "range",
		[GT_STRETCH_WINDOW] = "window",
		[GT_STRETCH_STEP] = "step",
	};

	return names[kind];
}

/* ---- notes ----------------------------------------------------------------------------------- */

struct copy { /* a note on one lane */
	struct gt_noted note;
	uint64_t seq;
	size_t lane_index;
};

struct copies {
	struct copy *copies;
	size_t count;
};

static bool is_note(const struct gt_event *event)
{
	return (event->op >= GT_OP_MARK && event->op <= GT_OP_STEP) || event->op == GT_OP_BEGIN ||
	       event->op == GT_OP_END;
}

static int collect(const struct gt_trace *trace, size_t lane_index, struct copies *copies,
		   struct gt_error *err)
{
	struct gt_cursor *cursor = gt_cursor_new(trace, lane_index);
	const struct gt_event *event;

	err->status = 0;
	while ((event = gt_cursor_next(cursor, err))) {
		if (!is_note(event))
			continue;
		*GT_PUSH(copies->copies, copies->count) = (struct copy){
			.note = {.number = event->extra,
				 .us = event->us,
				 .source = event->addr,
				 .range = event->size,
				 .aux = event->aux,
				 .thread = event->thread,
				 .op = event->op},
			.seq = event->seq,
			.lane_index = lane_index,
		};
	}
	gt_cursor_free(cursor);
	return err->status ? -1 : 0;
}

static int by_number(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	if (x->note.number != y->note.number)
		return x->note.number < y->note.number ? -1 : 1;
	return x->lane_index < y->lane_index ? -1 : x->lane_index > y->lane_index;
}

/* Copies with one number become one note. */
static void unite(struct gt_marks *marks, const struct copies *copies)
{
	const size_t lanes = marks->trace->lane_count;
	size_t count = 0;

	for (size_t i = 0; i < copies->count; i++)
		count += !i || copies->copies[i].note.number != copies->copies[i - 1].note.number;
	marks->notes = gt_xcalloc(count, sizeof(*marks->notes));
	marks->seqs = gt_xcalloc(count * lanes, sizeof(*marks->seqs));
	for (size_t i = 0; i < copies->count; i++) {
		const struct copy *copy = &copies->copies[i];
		struct gt_noted *note;

		if (!i || copy->note.number != copies->copies[i - 1].note.number) {
			note = &marks->notes[marks->note_count];
			*note = copy->note;
			note->seqs = &marks->seqs[marks->note_count++ * lanes];
		}
		note = &marks->notes[marks->note_count - 1];
		note->seqs[copy->lane_index] = copy->seq;
	}
}

static int get_notes(struct gt_marks *marks, struct gt_error *err)
{
	struct copies copies = {0};
	int status = 0;

	for (size_t i = 0; !status && i < marks->trace->lane_count; i++)
		status = collect(marks->trace, i, &copies, err);
	if (!status && copies.count) {
		qsort(copies.copies, copies.count, sizeof(*copies.copies), by_number);
		unite(marks, &copies);
	}
	free(copies.copies);
	return status;
}

/* ---- what they make up ----------------------------------------------------------------------- */

struct open_key {
	uint64_t source, range; /* range: number of a window, or the thread */
	uint64_t window;	/* 1: a window */
};

struct open { /* the innermost open range of a thread and source, or a window */
	struct open_key key;
	size_t named;
	UT_hash_handle hh;
};

static struct open *find_open(struct open *all, const struct open_key *key)
{
	struct open *open;

	HASH_FIND(hh, all, key, sizeof(*key), open);
	return open;
}

static const char *string_of(const struct gt_trace *trace, uint32_t id)
{
	return id < trace->string_count && trace->strings[id].text ? trace->strings[id].text : "";
}

static size_t add_named(struct gt_marks *marks, enum gt_stretch_kind kind, size_t note)
{
	struct gt_named *named = GT_PUSH(marks->named, marks->named_count);
	uint32_t aux = marks->notes[note].aux;

	*named = (struct gt_named){
		.kind = kind,
		.begin = note,
		.end = kind == GT_STRETCH_MARK ? note : GT_NO_NOTE,
		.parent = GT_NO_NOTE,
		.step = kind == GT_STRETCH_STEP ? aux : 0,
		.name = kind == GT_STRETCH_STEP ? "" : string_of(marks->trace, aux),
	};
	return marks->named_count - 1;
}

static struct open_key key_of(const struct gt_noted *note)
{
	struct open_key key;
	bool window = note->op == GT_OP_BEGIN || note->op == GT_OP_END;

	memset(&key, 0, sizeof(key));
	key.window = window;
	key.source = window ? 0 : note->source;
	key.range = window ? note->range : note->thread;
	return key;
}

static void begin(struct gt_marks *marks, struct open **all, size_t note)
{
	struct open_key key = key_of(&marks->notes[note]);
	struct open *open = find_open(*all, &key);
	size_t named = add_named(marks, key.window ? GT_STRETCH_WINDOW : GT_STRETCH_RANGE, note);

	if (!open) {
		open = gt_xcalloc(1, sizeof(*open));
		open->key = key;
		open->named = GT_NO_NOTE;
		HASH_ADD(hh, *all, key, sizeof(key), open);
	}
	if (open->named != GT_NO_NOTE && !key.window) {
		marks->named[named].parent = open->named;
		marks->named[named].depth = marks->named[open->named].depth + 1;
	}
	open->named = named;
}

static void end(struct gt_marks *marks, struct open *all, size_t note)
{
	struct open_key key = key_of(&marks->notes[note]);
	struct open *open = find_open(all, &key);

	if (!open || open->named >= marks->named_count) {
		marks->unmatched++;
		return;
	}
	marks->named[open->named].end = note;
	open->named = marks->named[open->named].parent;
}

static void step(struct gt_marks *marks, size_t *last, size_t note)
{
	if (*last != GT_NO_NOTE)
		marks->named[*last].end = note;
	*last = add_named(marks, GT_STRETCH_STEP, note);
}

static void put_together(struct gt_marks *marks)
{
	struct open *all = NULL, *open, *next;
	size_t last_step = GT_NO_NOTE;

	for (size_t i = 0; i < marks->note_count; i++) {
		uint8_t op = marks->notes[i].op;

		if (op == GT_OP_MARK)
			add_named(marks, GT_STRETCH_MARK, i);
		else if (op == GT_OP_STEP)
			step(marks, &last_step, i);
		else if (op == GT_OP_PUSH || op == GT_OP_BEGIN)
			begin(marks, &all, i);
		else
			end(marks, all, i);
	}
	HASH_ITER(hh, all, open, next) {
		HASH_DEL(all, open);
		free(open);
	}
}

int gt_marks_get(const struct gt_trace *trace, struct gt_marks *ret, struct gt_error *err)
{
	struct gt_marks marks = {.trace = trace};

	if (get_notes(&marks, err)) {
		gt_marks_clear(&marks);
		return -1;
	}
	put_together(&marks);
	*ret = marks;
	return 0;
}

void gt_marks_clear(struct gt_marks *marks)
{
	free(marks->notes);
	free(marks->seqs);
	free(marks->named);
	*marks = (struct gt_marks){0};
}

const struct gt_named *gt_marks_find(const struct gt_marks *marks, const char *name,
				     unsigned int kinds, size_t nth)
{
	for (size_t i = 0; i < marks->named_count; i++) {
		const struct gt_named *named = &marks->named[i];

		if (kinds && !(kinds & 1u << named->kind))
			continue;
		if (named->kind != GT_STRETCH_STEP && !strcmp(named->name, name) && !--nth)
			return named;
	}
	return NULL;
}

const struct gt_named *gt_marks_step(const struct gt_marks *marks, uint32_t number)
{
	for (size_t i = 0; i < marks->named_count; i++)
		if (marks->named[i].kind == GT_STRETCH_STEP && marks->named[i].step == number)
			return &marks->named[i];
	return NULL;
}
