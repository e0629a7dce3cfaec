/* SPDX-License-Identifier: MIT */
/*
 * See why.h. Blocks of the state that fit the words, put together by rule, category and line, so
 * that a hundred blocks of one kind are one row.
 */
#include "cmd/why.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"

struct kind { /* blocks that one rule chose for one line */
	const struct gt_site_def *named;
	uint64_t bytes, count;
	const struct gt_life *one; /* of them, for the evidence */
	uint8_t rule, category;
	char *text, *full;
};

struct asking {
	const struct gt_place *place;
	const struct gt_answers *answers;
	const char *which;
	uint64_t address; /* 0 = by text */
	struct kind *kinds;
	size_t count;
};

static const struct gt_site_def *named_site(const struct asking *asking, const struct gt_life *life)
{
	const struct gt_site_def *call = gt_answers_call(asking->answers, life);

	return call ? call : gt_story_site(asking->answers->story, life);
}

/* Several stacks may read the same. */
static struct kind *kind_with(struct asking *asking, const char *full, uint8_t rule)
{
	for (size_t i = 0; i < asking->count; i++)
		if (asking->kinds[i].rule == rule && strcmp(asking->kinds[i].full, full) == 0)
			return &asking->kinds[i];
	return NULL;
}

static struct kind *kind_for(struct asking *asking, const struct gt_life *life)
{
	const struct gt_site_def *named = named_site(asking, life);
	struct gt_label label;
	struct kind *kind;

	for (size_t i = 0; i < asking->count; i++)
		if (asking->kinds[i].named == named && asking->kinds[i].rule == life->rule)
			return &asking->kinds[i];
	gt_label_make(gt_input_symbols(asking->place->input), asking->place->input->trace, named,
		      GT_STREAM_UNKNOWN, GT_BY_LINE, &label);
	kind = kind_with(asking, label.full, life->rule);
	if (kind) {
		gt_label_clear(&label);
		return kind;
	}
	kind = GT_PUSH(asking->kinds, asking->count);
	*kind = (struct kind){
		.named = named,
		.one = life,
		.rule = life->rule,
		.category = life->category,
		.text = gt_xstrdup(label.text),
		.full = gt_xstrdup(label.full),
	};
	gt_label_clear(&label);
	return kind;
}

static void add_block(struct asking *asking, const struct gt_state *state,
		      const struct gt_block *block)
{
	const struct gt_life *life = gt_answers_life(asking->answers, asking->place->lane_index,
						     block->addr, state->seq);
	struct kind *kind;

	if (!life || (asking->address && (asking->address < block->addr ||
					  asking->address >= block->addr + block->size)))
		return;
	kind = kind_for(asking, life);
	kind->bytes += block->size;
	kind->count++;
}

static int by_bytes(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : (int)x->rule - (int)y->rule;
}

/* "train.py:27" is a frame of it, wherever in the chain. */
static bool has_frame(const struct asking *asking, const struct kind *kind)
{
	struct gt_stack stack = gt_symbols_stack(gt_input_symbols(asking->place->input),
						 kind->named->native, kind->named->python);
	const char *colon = strrchr(asking->which, ':');
	size_t length = colon ? (size_t)(colon - asking->which) : 0;

	for (size_t i = 0; length && i < stack.count; i++) {
		const struct gt_frame *frame = &stack.frames[i];
		size_t file = strlen(frame->file);

		if (frame->line == atoi(colon + 1) && file >= length &&
		    !strncmp(frame->file + file - length, asking->which, length) &&
		    (file == length || frame->file[file - length - 1] == '/'))
			return true;
	}
	return false;
}

/* Rows whose line does not fit the words are none of the answer. */
static void drop_others(struct asking *asking)
{
	size_t kept = 0;

	for (size_t i = 0; i < asking->count; i++) {
		struct kind *kind = &asking->kinds[i];

		if (asking->address || strstr(kind->text, asking->which) ||
		    strstr(kind->full, asking->which) || has_frame(asking, kind)) {
			asking->kinds[kept++] = *kind;
			continue;
		}
		free(kind->text);
		free(kind->full);
	}
	asking->count = kept;
	if (kept)
		qsort(asking->kinds, kept, sizeof(*asking->kinds), by_bytes);
}

static struct asking ask(const struct gt_place *place, const struct gt_state *state,
			 const char *which)
{
	struct asking asking = {
		.place = place,
		.answers = gt_input_answers(place->input),
		.which = which,
		.address = strncmp(which, "0x", 2) == 0 ? strtoull(which, NULL, 16) : 0,
	};

	for (size_t i = 0; asking.answers && i < state->block_count; i++)
		add_block(&asking, state, &state->blocks[i]);
	drop_others(&asking);
	return asking;
}

static void forget(struct asking *asking)
{
	for (size_t i = 0; i < asking->count; i++) {
		free(asking->kinds[i].text);
		free(asking->kinds[i].full);
	}
	free(asking->kinds);
}

/* "in step 3 forward", "in set-up", "after training". */
static char *moment_text(const struct asking *asking, uint32_t position)
{
	size_t step = gt_boundary_step(&asking->answers->steps, position);

	if (position == GT_NEVER)
		return gt_xstrdup("never");
	if (!step)
		return gt_xstrdup("in set-up");
	if (position >= asking->answers->steps.end)
		return gt_xstrdup("after training");
	return gt_xasprintf("in step %zu %s", step,
			    gt_phase_name(gt_answers_phase(asking->answers, position)));
}

static void add_row(struct gt_table *table, const struct asking *asking, const struct kind *kind,
		    bool full)
{
	struct gt_why why = gt_rule_why(kind->rule);
	char *born = moment_text(asking, kind->one->born);
	char *died = moment_text(asking, kind->one->died);
	char *evidence = gt_xasprintf("%s; made %s, freed %s%s", why.text, born, died,
				      why.weak ? "; weak" : "");

	gt_table_row(table, 0, 0, 0);
	gt_table_text(table, full ? kind->full : kind->text);
	gt_table_number(table, (int64_t)kind->bytes);
	gt_table_number(table, (int64_t)kind->count);
	gt_table_text(table, gt_category_name(kind->category));
	gt_table_text(table, why.name);
	gt_table_text(table, evidence);
	free(evidence);
	free(died);
	free(born);
}

static void print_kinds(struct gt_out *out, const struct asking *asking)
{
	static const struct gt_field fields[] = {
		{"holder", "In use then, by your lines", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"bytes", NULL, GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"blocks", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"category", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"rule", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"evidence", NULL, GT_FIELD_TEXT, GT_SHOW_WIDE},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));

	for (size_t i = 0; i < asking->count; i++)
		add_row(table, asking, &asking->kinds[i], !out->terminal);
	gt_table_print(table, out, 0);
	gt_table_free(table);
}

static void print_answer(struct gt_out *out, const struct asking *asking)
{
	const struct kind *first = asking->kinds;
	struct gt_why why;
	char size[GT_SIZE_TEXT];

	if (!asking->count) {
		gt_line(out, GT_BOLD, "Nothing in use then is of %s.", asking->which);
		return;
	}
	why = gt_rule_why(first->rule);
	gt_line(out, GT_BOLD, "%s of %s are %s: %s%s.", gt_size_text(first->bytes, size),
		first->text, gt_category_name(first->category), why.text,
		why.weak ? " (weak)" : "");
}

/* A wide screen shows the evidence beside each row, a narrow one below the table. */
static void print_evidence(struct gt_out *out, const struct asking *asking)
{
	for (size_t i = 0; i < asking->count && !gt_is_wide(out); i++) {
		struct gt_why why = gt_rule_why(asking->kinds[i].rule);
		bool said = false;

		for (size_t j = 0; j < i; j++)
			said |= asking->kinds[j].rule == asking->kinds[i].rule;
		if (!said)
			gt_line(out, GT_PLAIN, "%s: %s%s", why.name, why.text,
				why.weak ? " (weak)" : "");
	}
}

json_t *gt_json_why(const struct gt_place *place, const struct gt_state *state, const char *which)
{
	struct asking asking = ask(place, state, which);
	json_t *rows = json_array();

	for (size_t i = 0; i < asking.count; i++) {
		struct kind *kind = &asking.kinds[i];
		struct gt_why why = gt_rule_why(kind->rule);

		json_array_append_new(
			rows, json_pack("{s:o, s:I, s:I, s:o, s:s, s:s, s:b}", "key",
					gt_json_name(kind->full), "bytes", (json_int_t)kind->bytes,
					"count", (json_int_t)kind->count, "category",
					gt_json_category(kind->category), "rule", why.name,
					"evidence", why.text, "weak", why.weak));
	}
	forget(&asking);
	return rows;
}

int gt_print_why(struct gt_out *out, const struct gt_place *place, const struct gt_state *state,
		 const char *which)
{
	struct asking asking = ask(place, state, which);

	if (!asking.answers)
		return gt_message(GT_EXIT_USAGE, "%s: no categories: no torch in this trace",
				  place->input->trace->path);
	if (out->format == GT_FORMAT_TEXT)
		print_answer(out, &asking);
	if (asking.count)
		print_kinds(out, &asking);
	if (out->format == GT_FORMAT_TEXT)
		print_evidence(out, &asking);
	forget(&asking);
	return 0;
}
