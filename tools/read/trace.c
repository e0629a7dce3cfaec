/* SPDX-License-Identifier: MIT */
/*
 * Opens a trace: header, a copy of each lane, definitions, then each copy brought to one event. The
 * order matters for a running process: definitions are committed before the first event that names
 * them, so reading them after the events finds them all. A lane that changes faster than it can be
 * copied makes the whole attempt start again.
 */
#include <stdlib.h>
#include <string.h>
#include "read/progress.h"
#include "read/reader.h"

#define ATTEMPTS 200

/* What is within these can index the tables of the trace without another look. */
void gt_limits_of(const struct gt_trace *trace, uint32_t lane, struct gt_limits *ret)
{
	gt_limits_widths(ret);
	ret->clamp = trace->partial;
	ret->max[GT_COL_THREAD] = trace->thread_count - 1;
	ret->max[GT_COL_BIRTH_THREAD] = trace->thread_count - 1;
	ret->max[GT_COL_STREAM] = trace->stream_count - 1;
	ret->max[GT_COL_SITE] = trace->reader->sites[lane].count - 1;
	ret->max[GT_COL_FREE_SITE] = trace->reader->sites[lane].count - 1;
}

static int by_number(const void *a, const void *b)
{
	const struct gt_extent *x = a, *y = b;

	return x->lane < y->lane ? -1 : x->lane > y->lane;
}

/* The LANE extents of a list, by number. */
static int select_lanes(const struct gt_trace *trace, const struct gt_extents *list,
			struct gt_extents *lanes, struct gt_error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->at[i].kind != GT_EXTENT_LANE ||
		    !gt_lane_has_cells(&trace->reader->source, &list->at[i]))
			continue;
		if (gt_grow(&lanes->at, &lanes->capacity, lanes->count, sizeof(*lanes->at)))
			return gt_fail_memory(err, trace->path);
		lanes->at[lanes->count++] = list->at[i];
	}
	if (lanes->count)
		qsort(lanes->at, lanes->count, sizeof(*lanes->at), by_number);
	for (size_t i = 1; i < lanes->count; i++) {
		if (lanes->at[i].lane == lanes->at[i - 1].lane)
			return gt_damaged(err, trace->path, lanes->at[i].offset, "a second lane %u",
					  lanes->at[i].lane);
	}
	return 0;
}

/* In a partial trace a lane that cannot be read is left out. */
static int take_images(struct gt_trace *trace, const struct gt_extents *known,
		       struct gt_extents *lanes, bool chunks, struct gt_image *images,
		       struct gt_error *err)
{
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < lanes->count; i++) {
		rc = gt_image_take(&images[n], trace, &lanes->at[i], known, chunks, err);
		if (rc < 0 && trace->partial) {
			gt_image_free(&images[n]);
			rc = 0;
			continue;
		}
		n++;
	}
	if (!rc)
		lanes->count = n;
	return rc;
}

/* Listed again: definitions of the last events may stand in extents that are younger than the
 * lanes. */
static int read_definitions(struct gt_trace *trace, struct gt_error *err)
{
	struct gt_extents list = {0};
	int rc = gt_extents_list(&trace->reader->source, trace->partial, &list, err);

	if (!rc)
		rc = gt_defs_read(trace, &list, err);
	if (!rc)
		rc = gt_reports_read(trace, &list, err);
	trace->reader->defs_used = gt_defs_used(&list);
	free(list.at);
	return rc;
}

/* History of a partial trace begins behind the last chunk that cannot be decoded. */
static void keep_whole(struct gt_trace *trace, size_t i)
{
	struct gt_history *history = &trace->reader->histories[i];
	struct gt_cursor *cursor = gt_cursor_new(trace, i);
	const struct gt_event *event = NULL;

	if (!cursor)
		return;
	for (uint64_t seq = history->last_seq; seq >= history->first_seq && seq; seq--) {
		if (gt_cursor_at(cursor, seq, &event, NULL)) {
			history->first_seq = seq + 1;
			break;
		}
		history->first_us = event->us;
	}
	trace->lanes[i].history_first = history->first_seq;
	trace->lanes[i].history_us = history->first_seq > 1 ? history->first_us : 0;
	gt_cursor_free(cursor);
}

int gt_images_settle(struct gt_trace *trace, struct gt_image *images, size_t count,
		     struct gt_error *err)
{
	struct gt_reader *reader = trace->reader;
	int rc = 0;

	trace->lanes = calloc(count + 1, sizeof(*trace->lanes));
	reader->histories = calloc(count + 1, sizeof(*reader->histories));
	if (!trace->lanes || !reader->histories)
		return gt_fail_memory(err, trace->path);
	trace->lane_count = count;
	for (size_t i = 0; !rc && i < count; i++) {
		rc = gt_image_settle(&images[i], trace, &trace->lanes[i], err);
		reader->histories[i] = images[i].history;
		memset(&images[i].history, 0, sizeof(images[i].history));
		if (!rc && trace->merged)
			gt_added_lane(reader, &trace->lanes[i], &reader->histories[i]);
		if (!rc && trace->partial)
			keep_whole(trace, i);
		if (reader->histories[i].last_us > trace->last_us)
			trace->last_us = reader->histories[i].last_us;
	}
	return rc;
}

/* 0, or GT_RECYCLED: there are other definitions than those that were read. */
static int check_definitions(const struct gt_trace *trace, struct gt_extents *list,
			     struct gt_error *err)
{
	int rc = gt_extents_list(&trace->reader->source, trace->partial, list, err);

	return rc ? rc : gt_defs_used(list) != trace->reader->defs_used ? GT_RECYCLED : 0;
}

/* While a look lasts no site may come that it does not copy, so definitions are looked at twice. */
int gt_images_take(struct gt_trace *trace, bool chunks, struct gt_image **ret_images,
		   size_t *ret_count, struct gt_error *err)
{
	struct gt_extents list = {0}, lanes = {0};
	int rc = gt_extents_list(&trace->reader->source, trace->partial, &list, err);
	const uint64_t read = trace->totals ? trace->reader->defs_used : 0;
	const bool known = read && read == gt_defs_used(&list);

	if (!rc)
		rc = select_lanes(trace, &list, &lanes, err);
	*ret_images = calloc(lanes.count + 1, sizeof(**ret_images));
	if (!rc && !*ret_images)
		rc = gt_fail_memory(err, trace->path);
	if (!rc)
		rc = take_images(trace, known ? &list : NULL, &lanes, chunks, *ret_images, err);
	if (!rc && known)
		rc = check_definitions(trace, &list, err);
	*ret_count = *ret_images ? lanes.count : 0;
	free(list.at);
	free(lanes.at);
	return rc;
}

void gt_images_free(struct gt_image *images, size_t count)
{
	for (size_t i = 0; i < count; i++)
		gt_image_free(&images[i]);
	free(images);
}

/* Bytes of the extents that one walk over all lanes decodes. */
static uint64_t history_bytes(const struct gt_trace *trace)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < trace->lane_count && trace->reader->histories; i++)
		for (size_t s = 0; s < trace->reader->histories[i].stretch_count; s++)
			sum += trace->reader->histories[i].stretches[s].extent.used;
	return sum;
}

/* All of it or nothing; whoever calls frees what a failed attempt leaves in the trace. */
static int attempt(struct gt_trace *trace, struct gt_error *err)
{
	struct gt_image *images;
	size_t count;
	int rc = gt_images_take(trace, true, &images, &count, err);

	if (!rc)
		rc = read_definitions(trace, err);
	if (!rc)
		rc = gt_images_settle(trace, images, count, err);
	gt_images_free(images, count);
	return rc;
}

void gt_lanes_free(struct gt_trace_lane *lanes, struct gt_history *histories, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(lanes[i].blocks);
		free(lanes[i].sites);
		gt_history_free(&histories[i]);
	}
	free(lanes);
	free(histories);
}

/* Frees what an attempt has made; the file stays open. */
static void forget(struct gt_trace *trace)
{
	struct gt_reader *reader = trace->reader;
	struct gt_source source = reader->source;

	gt_lanes_free(trace->lanes, reader->histories, trace->lane_count);
	gt_defs_free(trace);
	*reader = (struct gt_reader){.source = source};
	*trace = (struct gt_trace){
		.path = source.path,
		.header = trace->header,
		.partial = trace->partial,
		.totals = trace->totals,
		.running = trace->running,
		.reader = reader,
	};
}

static int open_file(struct gt_trace *trace, const char *path, unsigned int flags,
		     struct gt_error *err)
{
	struct gt_source *source = &trace->reader->source;
	enum gt_alive alive;

	if (gt_source_open(source, path, err) || gt_header_read(source, &trace->header, err))
		return -1;
	trace->path = source->path;
	trace->partial = (flags & GT_OPEN_PARTIAL) != 0;
	trace->totals = (flags & GT_OPEN_TOTALS) != 0;
	alive = gt_alive(&trace->header);
	trace->running = alive == GT_ALIVE_YES;
	return alive == GT_ALIVE_NO ? 0 : gt_source_live(source, err);
}

struct gt_trace *gt_trace_blank(const char *path)
{
	struct gt_trace *trace = calloc(1, sizeof(*trace));
	struct gt_reader *reader = calloc(1, sizeof(*reader));
	char *copy = path ? strdup(path) : NULL;

	if (!trace || !reader || (path && !copy)) {
		free(trace);
		free(reader);
		free(copy);
		return NULL;
	}
	reader->source.fd = -1;
	reader->source.path = copy;
	trace->reader = reader;
	trace->path = copy;
	return trace;
}

/* One attempt is enough for a dead process; a live one may have recycled what we needed. */
int gt_trace_open(const char *path, unsigned int flags, struct gt_trace **ret, struct gt_error *err)
{
	struct gt_trace *trace = gt_trace_blank(NULL);
	int rc;

	if (!trace)
		return gt_fail_memory(err, path);
	rc = open_file(trace, path, flags, err);
	for (int i = 0; !rc && i < ATTEMPTS; i++) {
		rc = attempt(trace, err);
		if (rc <= 0)
			break;
		forget(trace);
		rc = i + 1 < ATTEMPTS ? 0
				      : gt_fail(err, path, "changes faster than it can be read");
	}
	if (rc) {
		gt_trace_close(trace);
		return -1;
	}
	if (err)
		err->status = 0; /* a partial trace leaves out what is damaged */
	trace->reader->expected = history_bytes(trace);
	gt_progress_expect(trace->reader->expected);
	*ret = trace;
	return 0;
}

struct gt_trace *gt_trace_close(struct gt_trace *trace)
{
	if (!trace)
		return NULL;
	gt_progress_forget(trace->reader->expected);
	forget(trace);
	gt_source_close(&trace->reader->source);
	free(trace->reader);
	free(trace);
	return NULL;
}

const struct gt_bytes *gt_trace_info(const struct gt_trace *trace, const char *key)
{
	const size_t length = strlen(key);

	for (size_t i = trace->info_count; i > 0; i--) {
		const struct gt_info *info = &trace->infos[i - 1];

		if (info->key.length == length && !memcmp(info->key.text, key, length))
			return &info->value;
	}
	return NULL;
}
