/* SPDX-License-Identifier: MIT */
/* See html.h: the part of a page that reads without scripts, in the words of its facts. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "cmd/html.h"
#include "model/xalloc.h"
#include "out/number.h"
#include "page/text.h"

struct part {
	FILE *file;
	char *text;
	size_t length;
};

static FILE *begin(struct part *part)
{
	return part->file = gt_xchecked(open_memstream(&part->text, &part->length));
}

static void end(struct part *part, struct gt_page *page, enum gt_page_part which)
{
	fclose(part->file);
	page->parts[which] = part->text;
}

static void set(struct gt_page *page, enum gt_page_part which, const char *text)
{
	struct part part;

	gt_page_put(begin(&part), text);
	end(&part, page, which);
}

static const char *text_at(const json_t *lines, size_t index)
{
	const char *text = json_string_value(json_array_get(lines, index));

	return text ? text : "";
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A row's number as the unit prints it; anything that is there is not printed as nothing. */
static void put_number(FILE *file, int64_t units, int64_t bytes)
{
	if (!units && bytes)
		fputs("<td class=\"n\">&lt;1", file);
	else
		fprintf(file, "<td class=\"n\">%lld", (long long)units);
}

/* The columns from `numbers` on are numbers. */
static void put_head(FILE *file, const char *const *names, size_t count, size_t numbers,
		     const char *labelled)
{
	fprintf(file, "<table aria-labelledby=\"%s\"><thead><tr>", labelled);
	for (size_t i = 0; i < count; i++)
		fprintf(file, "<th scope=\"col\"%s>%s", i >= numbers ? " class=\"n\"" : "",
			names[i]);
	fputs("</thead><tbody>", file);
}

static void put_holders(FILE *file, const struct gt_rows *rows, const struct gt_state *state,
			enum gt_unit unit)
{
	const char *const names[] = {"your lines", "category", gt_unit_name(unit), "%"};
	int64_t total = gt_in_unit((int64_t)state->bytes, unit);
	int64_t *bytes = gt_xcalloc(rows->count + 1, sizeof(*bytes));
	int64_t *units = gt_xcalloc(rows->count + 1, sizeof(*units));
	int64_t *shares = gt_xcalloc(rows->count + 1, sizeof(*shares));

	for (size_t i = 0; i < rows->count; i++)
		bytes[i] = (int64_t)rows->rows[i].bytes;
	gt_apportion(bytes, rows->count, gt_unit_bytes(unit), total, units);
	gt_apportion(bytes, rows->count, state->bytes >= 100 ? (int64_t)(state->bytes / 100) : 1,
		     100, shares);
	put_head(file, names, 4, 2, "holders-title");
	for (size_t i = 0; i < rows->count; i++) {
		fprintf(file,
			"<tr data-testid=\"holders-row\" data-bytes=\"%lld\"><th "
			"scope=\"row\"><code>",
			(long long)bytes[i]);
		gt_page_put(file, rows->rows[i].label.text);
		fputs("</code><td class=\"cat\">", file);
		gt_page_put(file, rows->rows[i].category ? gt_category_name(rows->rows[i].category)
				  : rows->rows[i].torch	 ? ""
							 : "driver");
		put_number(file, units[i], bytes[i]);
		put_number(file, shares[i], bytes[i]);
	}
	fprintf(file,
		"</tbody><tfoot><tr class=\"sum\" data-testid=\"holders-sum\" data-bytes=\"%lld\">"
		"<th scope=\"row\">in use<td><td class=\"n\">%lld<td "
		"class=\"n\">100</tfoot></table>",
		(long long)state->bytes, (long long)total);
	free(shares);
	free(units);
	free(bytes);
}

static void put_ledger(FILE *file, const json_t *ledger, enum gt_unit unit)
{
	const char *const names[] = {"what", "level", "measured", gt_unit_name(unit)};
	const json_t *rows = json_object_get(ledger, "rows");

	fputs("<h2 id=\"ledger-title\">The whole device</h2>", file);
	put_head(file, names, 4, 3, "ledger-title");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		json_int_t bytes = json_integer_value(json_array_get(row, 3));

		fprintf(file,
			"<tr data-testid=\"ledger-row\" data-bytes=\"%lld\"><th scope=\"row\">",
			(long long)bytes);
		gt_page_put(file, text_at(row, 0));
		fputs("<td>", file);
		gt_page_put(file, text_at(row, 1));
		fputs("<td>", file);
		gt_page_put(file, text_at(row, 2));
		put_number(file, gt_in_unit(bytes, unit), bytes);
	}
	fputs("</table>", file);
}

static void put_remedies(FILE *file, const json_t *oom, enum gt_unit unit)
{
	const char *const names[] = {"remedy", "lasts", "gives"};
	const json_t *rows = json_object_get(oom, "remedies");

	fputs("<h2 id=\"oom-title\">Enough?</h2>", file);
	put_head(file, names, 3, 2, "oom-title");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		json_int_t bytes = json_integer_value(json_object_get(row, "bytes"));

		fputs("<tr><th scope=\"row\">", file);
		gt_page_put(file, json_string_value(json_object_get(row, "text")));
		fputs("<td>", file);
		gt_page_put(file, json_string_value(json_object_get(row, "lasts")));
		put_number(file, gt_in_unit(bytes, unit), bytes);
	}
	fputs("</table>", file);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void fix_words(const json_t *facts, struct gt_page *page)
{
	const json_t *head = json_object_get(facts, "head"), *loss = json_object_get(facts, "loss");
	struct part part;
	FILE *file;

	set(page, GT_PART_ANSWER, text_at(head, 0));
	set(page, GT_PART_TITLE, text_at(head, 0));
	file = begin(&part);
	for (size_t i = 1; i < json_array_size(head); i++) {
		fputs(i > 1 ? " \302\267 " : "", file);
		gt_page_put(file, text_at(head, i));
	}
	end(&part, page, GT_PART_WHERE);
	file = begin(&part);
	for (size_t i = 0; i < json_array_size(loss); i++) {
		fputs("<p>", file);
		gt_page_put(file, text_at(loss, i));
		fputs("</p>", file);
	}
	end(&part, page, GT_PART_LOSS);
}

static void fix_merged(const struct gt_page_device *device, struct gt_page *page)
{
	struct part part;
	FILE *file = begin(&part);

	fprintf(file, "%llu events in %zu slices; holders are exact at %zu instants.",
		(unsigned long long)device->history.events, device->history.slice_count,
		device->history.chains[GT_CHAIN_HIGH].count);
	end(&part, page, GT_PART_MERGED);
}

static void fix_device(const struct gt_html_view *view, const json_t *facts, enum gt_unit unit,
		       struct gt_page *page)
{
	const json_t *ledger = json_object_get(facts, "ledger");
	const json_t *oom = json_object_get(facts, "oom");
	struct part part;

	set(page, GT_PART_OOM_CLASS, view->failure ? "" : "empty");
	set(page, GT_PART_LEDGER_CLASS, json_is_object(ledger) ? "" : "empty");
	set(page, GT_PART_CLASS, view->failure ? "noscript-mode failed" : "noscript-mode");
	begin(&part);
	if (json_is_object(ledger))
		put_ledger(part.file, ledger, unit);
	end(&part, page, GT_PART_LEDGER);
	begin(&part);
	if (view->failure)
		put_remedies(part.file, oom, unit);
	end(&part, page, GT_PART_OOM);
}

int gt_html_fixed(const struct gt_html_view *view, const json_t *facts,
		  const struct gt_page_device *device, struct gt_page *page)
{
	struct gt_when when = gt_html_when(view);
	const struct gt_state *state = &view->state;
	struct gt_rows rows;
	struct part part;
	enum gt_unit unit;

	if (!view->state_known)
		return GT_EXIT_UNREADABLE; /* said already */
	unit = gt_unit_for(view->place->device_total ? view->place->device_total : state->bytes);
	rows = gt_rows_of(state, gt_input_symbols(view->place->input), GT_BY_LINE);
	fix_words(facts, page);
	fix_merged(device, page);
	fix_device(view, facts, unit, page);
	set(page, GT_PART_HOLDERS_TITLE,
	    when.kind == GT_WHEN_OOM ? "In use at the failure" : "In use at the peak");
	fprintf(begin(&part), "%.3f s", (double)state->us / 1e6);
	end(&part, page, GT_PART_HOLDERS_INSTANT);
	put_holders(begin(&part), &rows, state, unit);
	end(&part, page, GT_PART_HOLDERS);
	gt_page_svg(begin(&part), device, view->place->device_total);
	end(&part, page, GT_PART_SVG);
	gt_rows_clear(&rows);
	return 0;
}
