/* SPDX-License-Identifier: MIT */
/* See write.h. Called from cmd/html.c. */
#include "page/write.h"

#include <string.h>
#include "hashes.h"
#include "page/embed.h"
#include "page/text.h"

/*
 * Nothing is loaded, sent or framed, and no script runs but the two of this file, by their hashes:
 * whatever a trace's names contain, it cannot act.
 */
#define POLICY                                                                   \
	"default-src 'none'; script-src '" GT_PAGE_D3_HASH "' '" GT_PAGE_JS_HASH \
	"'; style-src '" GT_PAGE_CSS_HASH "'; img-src data:; base-uri 'none'; form-action 'none'"

static const char *const part_names[GT_PARTS] = {
	[GT_PART_TITLE] = "title",
	[GT_PART_CLASS] = "class",
	[GT_PART_ANSWER] = "answer",
	[GT_PART_WHERE] = "where",
	[GT_PART_LOSS] = "loss",
	[GT_PART_SVG] = "svg",
	[GT_PART_OOM] = "oom",
	[GT_PART_OOM_CLASS] = "oom-class",
	[GT_PART_HOLDERS_TITLE] = "holders-title",
	[GT_PART_HOLDERS_INSTANT] = "holders-instant",
	[GT_PART_HOLDERS] = "holders",
	[GT_PART_LEDGER] = "ledger",
	[GT_PART_LEDGER_CLASS] = "ledger-class",
	[GT_PART_MERGED] = "merged",
};

static void put_blobs(FILE *file, const struct gt_page *page)
{
	for (size_t i = 0; i < page->device_count; i++)
		fprintf(file,
			"<script type=\"application/octet-stream\" "
			"id=\"gt-blob-%zu\">%s</script>\n",
			i, page->devices[i].blob.text);
}

static bool is(const char *name, size_t length, const char *wanted)
{
	return strlen(wanted) == length && strncmp(name, wanted, length) == 0;
}

static void put_part(FILE *file, const struct gt_page *page, const char *name, size_t length)
{
	for (int i = 0; i < GT_PARTS; i++)
		if (is(name, length, part_names[i]) && page->parts[i])
			fputs(page->parts[i], file);
	if (is(name, length, "policy"))
		fputs(POLICY, file);
	else if (is(name, length, "css"))
		fputs(gt_page_css, file);
	else if (is(name, length, "d3"))
		fputs(gt_page_d3, file);
	else if (is(name, length, "js"))
		fputs(gt_page_js, file);
	else if (is(name, length, "meta"))
		gt_page_put_json(file, page->meta);
	else if (is(name, length, "blobs"))
		put_blobs(file, page);
}

void gt_page_write(FILE *file, const struct gt_page *page)
{
	const char *at = gt_page_html, *mark, *end;

	while ((mark = strstr(at, "{{")) && (end = strstr(mark, "}}"))) {
		fwrite(at, 1, (size_t)(mark - at), file);
		put_part(file, page, mark + 2, (size_t)(end - mark - 2));
		at = end + 2;
	}
	fputs(at, file);
}

uint64_t gt_page_fixed_size(void)
{
	return strlen(gt_page_html) + strlen(gt_page_css) + strlen(gt_page_d3) + strlen(gt_page_js);
}
