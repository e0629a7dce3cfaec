/* SPDX-License-Identifier: MIT */
/*
 * CSV as of RFC 4180: a row per block, with its life, its line and its category. Spreadsheets run a
 * text that begins like a formula, so such a text gets a ' in front. Called from the table.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "export/lives.h"
#include "model/xalloc.h"
#include "out/table.h"

struct csv {
	FILE *file;
	char place[40]; /* pid and device, as each row of it begins */
	struct gt_lines lines;
};

static void put_text(FILE *file, const char *text)
{
	char *safe;

	putc(',', file);
	if (!*text || !strchr("=+-@\t", *text)) {
		gt_put_csv_text(file, text);
		return;
	}
	safe = gt_xasprintf("'%s", text);
	gt_put_csv_text(file, safe);
	free(safe);
}

/* With zeros in front up to so many digits. A row has ten numbers: printf would take half of its time. */
static void put_digits(FILE *file, uint64_t number, size_t least)
{
	char text[20];
	size_t at = sizeof(text);

	for (; number || sizeof(text) - at < least; number /= 10)
		text[--at] = (char)('0' + number % 10);
	fwrite_unlocked(text + at, 1, sizeof(text) - at, file);
}

/* Nothing for what is not known. */
static void put_number(FILE *file, uint64_t number, bool known)
{
	putc_unlocked(',', file);
	if (known)
		put_digits(file, number, 1);
}

static void put_seconds(FILE *file, uint64_t us, bool known)
{
	put_number(file, us / 1000000, known);
	if (!known)
		return;
	putc_unlocked('.', file);
	put_digits(file, us % 1000000, 6);
}

static void put_row(void *ctx, const struct gt_export_place *place, const struct gt_lived *lived)
{
	const struct gt_block *block = &lived->block;
	const struct gt_site_def *site = &place->lane->site_defs[block->site];
	struct csv *csv = ctx;
	FILE *file = csv->file;

	fputs_unlocked(csv->place, file);
	put_number(file, block->addr, true);
	put_number(file, block->size, true);
	put_number(file, lived->from, lived->from);
	put_number(file, lived->to, lived->to);
	put_seconds(file, lived->from_us, true);
	put_seconds(file, lived->to_us, lived->to);
	put_number(file, block->stream, true);
	put_number(file, site->mask >> GT_TOTAL_IN_USE & 1, true);
	put_number(file, site->mask >> GT_TOTAL_RESERVED & 1, true);
	put_text(file, gt_space_name(block->space));
	put_text(file, lived->life ? gt_category_name(lived->life->category) : "");
	put_text(file, gt_symbols_owner(place->symbols, site->native));
	put_text(file, gt_line_of(&csv->lines, place, lived->named));
	fputs_unlocked("\r\n", file);
}

int gt_export_csv(const struct gt_export *export, struct gt_error *err)
{
	struct csv csv = {.file = export->file};
	int rc = 0;

	fputs("pid,device,address,bytes,from_event,to_event,from_seconds,to_seconds,stream,in_use,"
	      "reserved,level,category,owner,line\r\n",
	      export->file);
	for (size_t p = 0; !rc && p < export->count; p++) {
		const struct gt_export_place *place = &export->places[p];

		snprintf(csv.place, sizeof(csv.place), "%u,%d", place->trace->header.pid,
			 place->lane->device);
		rc = gt_lives(place, put_row, &csv, err);
	}
	gt_lines_clear(&csv.lines);
	return rc;
}
