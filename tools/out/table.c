/* SPDX-License-Identifier: MIT */
/*
 * See table.h. Text takes three passes over the cells: round (from the outermost sum inwards, each
 * sum's printed value is given to its parts), fold what does not fit the screen, then lay out. csv
 * and markdown print what was put in; csv never rounds.
 */
#include "out/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"

struct value {
	char *text;
	int64_t number; /* as given */
	int64_t shown;	/* rounded, in the column's unit */
	bool known;
};

struct row {
	struct value *cells;
	unsigned int part_of, sum_of, flags;
	bool folded; /* stands for others, or is one of them */
	bool rest;   /* says how many are left out */
};

struct gt_table {
	const struct gt_field *fields;
	size_t field_count;
	struct row *rows;
	size_t row_count;
	size_t next_cell;
	enum gt_unit unit;
	bool unit_set;
};

struct gt_table *gt_table_new(const struct gt_field *fields, size_t count)
{
	struct gt_table *table = gt_xcalloc(1, sizeof(*table));

	table->fields = fields;
	table->field_count = count;
	return table;
}

struct gt_table *gt_table_free(struct gt_table *table)
{
	if (!table)
		return NULL;
	for (size_t r = 0; r < table->row_count; r++) {
		for (size_t c = 0; c < table->field_count; c++)
			free(table->rows[r].cells[c].text);
		free(table->rows[r].cells);
	}
	free(table->rows);
	free(table);
	return NULL;
}

void gt_table_row(struct gt_table *table, unsigned int part_of, unsigned int sum_of,
		  unsigned int flags)
{
	struct row *row = GT_PUSH(table->rows, table->row_count);

	assert(part_of <= GT_SUMS && sum_of <= GT_SUMS);

	*row = (struct row){.part_of = part_of, .sum_of = sum_of, .flags = flags};
	row->cells = gt_xcalloc(table->field_count, sizeof(*row->cells));
	table->next_cell = 0;
}

static struct value *next_cell(struct gt_table *table)
{
	return &table->rows[table->row_count - 1].cells[table->next_cell++];
}

void gt_table_text(struct gt_table *table, const char *text)
{
	struct value *cell = next_cell(table);

	cell->text = gt_escape(text);
	cell->known = true;
}

void gt_table_number(struct gt_table *table, int64_t value)
{
	struct value *cell = next_cell(table);

	cell->number = value;
	cell->known = true;
}

void gt_table_unknown(struct gt_table *table)
{
	next_cell(table);
}

void gt_table_known(struct gt_table *table, int64_t value, bool known)
{
	struct value *cell = next_cell(table);

	cell->number = known ? value : 0;
	cell->known = known;
}

void gt_table_unit(struct gt_table *table, enum gt_unit unit)
{
	table->unit = unit;
	table->unit_set = true;
}

/* ---- rounding ------------------------------------------------------------------------------ */

static bool in_sum(const struct row *row, size_t column, unsigned int sum)
{
	return row->part_of == sum && row->cells[column].known;
}

/* Give a sum's printed value to its parts, then theirs to their own. */
static void round_parts(struct gt_table *table, size_t column, unsigned int sum, int64_t divisor,
			int64_t scale, int64_t printed)
{
	int64_t *parts = gt_xcalloc(table->row_count, sizeof(*parts));
	int64_t *shown = gt_xcalloc(table->row_count, sizeof(*shown));
	size_t count = 0, next = 0;

	for (size_t r = 0; r < table->row_count; r++)
		if (in_sum(&table->rows[r], column, sum))
			parts[count++] = table->rows[r].cells[column].number * scale;
	gt_apportion(parts, count, divisor, printed, shown);
	for (size_t r = 0; r < table->row_count; r++) {
		struct row *row = &table->rows[r];

		if (!in_sum(row, column, sum))
			continue;
		row->cells[column].shown = shown[next++];
		if (row->sum_of)
			round_parts(table, column, row->sum_of, divisor, scale,
				    row->cells[column].shown);
	}
	free(shown);
	free(parts);
}

/* Percentages are of sum 1, the holders, and of nothing else in the table. */
static void round_percent(struct gt_table *table, size_t column)
{
	for (size_t r = 0; r < table->row_count; r++) {
		struct value *cell = &table->rows[r].cells[column];

		if (table->rows[r].sum_of != 1 || cell->number <= 0)
			continue;
		cell->shown = 100;
		round_parts(table, column, 1, cell->number, 100, 100);
	}
}

static bool has_sum(const struct gt_table *table, size_t column, unsigned int sum)
{
	for (size_t r = 0; r < table->row_count; r++)
		if (table->rows[r].sum_of == sum && table->rows[r].cells[column].known)
			return true;
	return false;
}

/* From the outermost sums inwards; rows whose sum is not in the table stand for themselves. */
static void round_bytes(struct gt_table *table, size_t column)
{
	int64_t divisor = gt_unit_bytes(table->unit);
	bool summed[GT_SUMS + 1] = {false, has_sum(table, column, 1), has_sum(table, column, 2)};

	for (size_t r = 0; r < table->row_count; r++) {
		struct row *row = &table->rows[r];
		struct value *cell = &row->cells[column];

		if (summed[row->part_of] || !cell->known)
			continue;
		cell->shown = gt_round_to(cell->number, divisor);
		if (row->sum_of)
			round_parts(table, column, row->sum_of, divisor, 1, cell->shown);
	}
}

static bool is_rounded(enum gt_field_kind kind)
{
	return kind == GT_FIELD_BYTES || kind == GT_FIELD_PERCENT;
}

static void choose_unit(struct gt_table *table)
{
	int64_t largest = 0;

	if (table->unit_set)
		return;
	for (size_t r = 0; r < table->row_count; r++)
		for (size_t c = 0; c < table->field_count; c++)
			if (table->fields[c].kind == GT_FIELD_BYTES &&
			    table->rows[r].cells[c].number > largest)
				largest = table->rows[r].cells[c].number;
	table->unit = gt_unit_for((uint64_t)largest);
}

static void round_all(struct gt_table *table)
{
	choose_unit(table);
	for (size_t c = 0; c < table->field_count; c++) {
		enum gt_field_kind kind = table->fields[c].kind;

		if (kind == GT_FIELD_BYTES)
			round_bytes(table, c);
		else if (kind == GT_FIELD_PERCENT)
			round_percent(table, c);
		for (size_t r = 0; r < table->row_count; r++) {
			struct value *cells = table->rows[r].cells;

			if (kind == GT_FIELD_DELTA)
				cells[c].shown = cells[c - 1].shown - cells[c - 2].shown;
			else if (!is_rounded(kind))
				cells[c].shown = cells[c].number;
		}
	}
}

/* ---- folding ------------------------------------------------------------------------------- */

/* Add a row's numbers to the row that will stand for it. */
static void add_row(const struct gt_table *table, struct row *to, const struct row *from)
{
	for (size_t c = 0; c < table->field_count; c++) {
		if (table->fields[c].kind == GT_FIELD_SECONDS || !from->cells[c].known)
			continue;
		to->cells[c].number += from->cells[c].number;
		to->cells[c].shown += from->cells[c].shown;
	}
}

static void forget_texts(const struct gt_table *table, struct row *row)
{
	for (size_t c = 0; c < table->field_count; c++) {
		free(row->cells[c].text);
		row->cells[c].text = NULL;
		if (table->fields[c].kind == GT_FIELD_TEXT)
			row->cells[c].known = false;
	}
}

/* Parts of sum 1 beyond the max_rows that fit become the first of them, renamed. */
static void fold(struct gt_table *table, size_t max_rows)
{
	size_t parts = 0, seen = 0, folded, keep;
	struct row *rest = NULL;

	for (size_t r = 0; r < table->row_count; r++)
		parts += table->rows[r].part_of == 1;
	if (!max_rows || table->row_count <= max_rows || parts < 3)
		return;
	folded = table->row_count - max_rows + 1;
	keep = folded + 1 < parts ? parts - folded : 1;
	for (size_t r = 0; r < table->row_count; r++) {
		struct row *row = &table->rows[r];

		if (row->part_of != 1 || seen++ < keep)
			continue;
		if (rest) {
			add_row(table, rest, row);
			row->folded = true;
		} else {
			rest = row;
			forget_texts(table, rest);
		}
	}
	rest->flags = 0; /* NOLINT: more parts than are kept, so one was folded */
	rest->cells[0].text = gt_xasprintf("... %zu more rows (--all)", parts - keep);
	rest->cells[0].known = true;
	rest->rest = true;
}

/* ---- layout -------------------------------------------------------------------------------- */

static const char *field_title(const struct gt_table *table, size_t column)
{
	const struct gt_field *field = &table->fields[column];

	if (field->title)
		return field->title;
	return field->kind == GT_FIELD_BYTES ? gt_unit_name(table->unit) : field->name;
}

/* As people read it. "<1" is something that rounds to nothing; "0" is nothing. */
static char *shown_text(const struct gt_table *table, const struct row *row, size_t column)
{
	enum gt_field_kind kind = table->fields[column].kind;
	const struct value *cell = &row->cells[column];

	if (!cell->known)
		return gt_xstrdup(kind == GT_FIELD_TEXT || row->flags & GT_ROW_SCREEN ? "" : "-");
	if (kind == GT_FIELD_TEXT)
		return gt_xstrdup(cell->text);
	if (kind == GT_FIELD_SECONDS)
		return gt_xasprintf("%.6f", (double)cell->number / 1e6);
	if (kind == GT_FIELD_DELTA)
		return gt_xasprintf(cell->shown ? "%+lld" : "%lld", (long long)cell->shown);
	if (is_rounded(kind) && cell->shown == 0 && cell->number > 0)
		return gt_xstrdup("<1");
	return gt_xasprintf("%lld", (long long)cell->shown);
}

static bool any_known(const struct gt_table *table, size_t column)
{
	for (size_t r = 0; r < table->row_count; r++)
		if (table->rows[r].cells[column].known)
			return true;
	return false;
}

static bool shown_column(const struct gt_table *table, const struct gt_out *out, size_t column)
{
	enum gt_field_show show = table->fields[column].show;

	if (out->format == GT_FORMAT_TEXT && !any_known(table, column))
		return false;
	if (out->format != GT_FORMAT_TEXT || show == GT_SHOW_ALWAYS)
		return true;
	return show == GT_SHOW_WIDE && gt_is_wide(out);
}

static void measure(const struct gt_table *table, size_t *widths)
{
	for (size_t c = 0; c < table->field_count; c++) {
		widths[c] = gt_text_width(field_title(table, c));
		for (size_t r = 0; r < table->row_count; r++) {
			const struct row *row = &table->rows[r];
			char *text = row->folded ? gt_xstrdup("") : shown_text(table, row, c);
			size_t width = gt_text_width(text) + (c ? 0 : 2);

			free(text);
			if (width > widths[c])
				widths[c] = width;
		}
	}
}

/* On a terminal the first column gives way, so that numbers never wrap. */
static void fit(const struct gt_table *table, const struct gt_out *out, size_t *widths)
{
	size_t others = sizeof(" <--");

	for (size_t c = 1; c < table->field_count; c++)
		if (shown_column(table, out, c))
			others += widths[c] + 2;
	if (!out->terminal || out->all || others + widths[0] <= out->width)
		return;
	if (others + 20 < out->width)
		widths[0] = out->width - others;
	else if (widths[0] > 20)
		widths[0] = 20;
}

static void put_cell(struct gt_out *out, const char *text, size_t width, bool left, bool last)
{
	size_t used = gt_text_width(text);
	int pad = used < width ? (int)(width - used) : 0;

	if (!left)
		fprintf(out->file, "%*s%s", pad, "", text);
	else
		fprintf(out->file, "%s%*s", text, last ? 0 : pad, "");
}

/* Texts of one row, joined with two spaces; numbers to the right. */
static void put_row(const struct gt_table *table, struct gt_out *out, const size_t *widths,
		    char **texts)
{
	size_t last = 0;

	for (size_t c = 0; c < table->field_count; c++)
		if (shown_column(table, out, c) && *texts[c])
			last = c;
	for (size_t c = 0; c <= last; c++) {
		bool text = table->fields[c].kind == GT_FIELD_TEXT;

		if (!shown_column(table, out, c))
			continue;
		fputs(c ? "  " : "", out->file);
		put_cell(out, texts[c], widths[c], text, c == last);
	}
}

static void put_header(const struct gt_table *table, struct gt_out *out, const size_t *widths)
{
	char **texts = gt_xcalloc(table->field_count, sizeof(*texts));

	for (size_t c = 0; c < table->field_count; c++)
		texts[c] = gt_xstrdup(field_title(table, c));
	gt_cut_text(texts[0], widths[0]);
	put_row(table, out, widths, texts);
	putc('\n', out->file);
	for (size_t c = 0; c < table->field_count; c++)
		free(texts[c]);
	free(texts);
}

/* Names are cut in their middle; of the rest its number must stay. */
static void cut_rest(char *text, size_t width)
{
	char *end = strstr(text, " rows (--all)");

	if (end && gt_text_width(text) > width)
		*end = 0;
}

static void put_text_row(const struct gt_table *table, struct gt_out *out, const size_t *widths,
			 const struct row *row)
{
	char **texts = gt_xcalloc(table->field_count, sizeof(*texts));
	bool act = row->flags & GT_ROW_ACT;

	for (size_t c = 0; c < table->field_count; c++) {
		char *text = shown_text(table, row, c);

		texts[c] = gt_xasprintf("%s%s", c ? "" : "  ", text);
		free(text);
	}
	if (row->rest)
		cut_rest(texts[0], widths[0]);
	gt_cut_text(texts[0], widths[0]);
	fputs(act && out->colour ? "\033[31m" : "", out->file);
	put_row(table, out, widths, texts);
	fputs(act ? "  <--" : "", out->file);
	fputs(act && out->colour ? "\033[0m\n" : "\n", out->file);
	for (size_t c = 0; c < table->field_count; c++)
		free(texts[c]);
	free(texts);
}

static void print_text(struct gt_table *table, struct gt_out *out, size_t max_rows)
{
	size_t *widths = gt_xcalloc(table->field_count, sizeof(*widths));

	round_all(table);
	fold(table, max_rows);
	measure(table, widths);
	fit(table, out, widths);
	put_header(table, out, widths);
	for (size_t r = 0; r < table->row_count; r++)
		if (!table->rows[r].folded)
			put_text_row(table, out, widths, &table->rows[r]);
	free(widths);
}

void gt_put_csv_text(FILE *file, const char *text)
{
	if (!text[strcspn(text, ",\"\n\r")]) {
		fputs(text, file);
		return;
	}
	putc('"', file);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', file);
		putc(*text, file);
	}
	putc('"', file);
}

static void put_csv_cell(const struct gt_table *table, struct gt_out *out, const struct value *cell,
			 size_t column)
{
	enum gt_field_kind kind = table->fields[column].kind;

	if (!cell->known)
		return;
	if (kind == GT_FIELD_TEXT)
		gt_put_csv_text(out->file, cell->text);
	else if (kind == GT_FIELD_SECONDS)
		fprintf(out->file, "%.6f", (double)cell->number / 1e6);
	else
		fprintf(out->file, "%lld", (long long)cell->number);
}

/* A share can be worked out from the bytes beside it, so csv leaves it out. */
static void print_csv(const struct gt_table *table, struct gt_out *out)
{
	for (ssize_t r = -1; r < (ssize_t)table->row_count; r++) {
		if (r >= 0 && table->rows[r].flags & GT_ROW_SCREEN)
			continue;
		for (size_t c = 0; c < table->field_count; c++) {
			if (table->fields[c].kind == GT_FIELD_PERCENT)
				continue;
			fputs(c ? "," : "", out->file);
			if (r < 0)
				fputs(table->fields[c].name, out->file);
			else
				put_csv_cell(table, out, &table->rows[r].cells[c], c);
		}
		putc('\n', out->file);
	}
}

static void put_md_text(struct gt_out *out, const char *text)
{
	for (; *text; text++)
		fprintf(out->file, *text == '|' ? "\\|" : "%c", *text);
}

static void print_md(struct gt_table *table, struct gt_out *out)
{
	round_all(table);
	for (size_t c = 0; c < table->field_count; c++) {
		fputs("| ", out->file);
		put_md_text(out, field_title(table, c));
		putc(' ', out->file);
	}
	fputs("|\n", out->file);
	for (size_t c = 0; c < table->field_count; c++)
		fputs(table->fields[c].kind == GT_FIELD_TEXT ? "|---" : "|---:", out->file);
	fputs("|\n", out->file);
	for (size_t r = 0; r < table->row_count; r++) {
		for (size_t c = 0; c < table->field_count; c++) {
			char *text = shown_text(table, &table->rows[r], c);

			fputs("| ", out->file);
			put_md_text(out, text);
			putc(' ', out->file);
			free(text);
		}
		fputs("|\n", out->file);
	}
}

void gt_table_print(struct gt_table *table, struct gt_out *out, size_t max_rows)
{
	if (out->format == GT_FORMAT_CSV)
		print_csv(table, out);
	else if (out->format == GT_FORMAT_MD)
		print_md(table, out);
	else
		print_text(table, out, max_rows);
}
