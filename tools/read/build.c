/* SPDX-License-Identifier: MIT */
/*
 * See build.h. Events are kept as the tail of their lane's history, where a cursor finds them without
 * a file; counters are summed here, and the live set and the lines of sites are made by replay.c from
 * the events, as for a trace file, which also checks these counters. Called by tools/torch.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "read/build.h"
#include "read/reader.h"

struct known { /* a definition by its content */
	UT_hash_handle hh;
	struct known *next; /* all of them */
	uint32_t id;
	char key[];
};

struct alive {
	uint64_t key;
	struct gt_block block;
	UT_hash_handle hh;
};

struct lane {
	struct gt_event *events;
	size_t count, capacity;
	uint64_t older; /* events that are no history */
	struct gt_ctr ctr;
	struct alive *alive;
	struct gt_site *live; /* by site: bytes and count alone */
	size_t live_capacity, live_count;
	struct known *sites;
	uint32_t report; /* index + 1 of the last one */
};

struct gt_build {
	struct gt_trace *trace;
	struct lane lanes[GT_MAX_LANES];
	struct known *strings, *codes, *frames, *streams, *pools;
	struct known *all;
	size_t report_capacity;
	bool failed;
};

struct gt_build *gt_build_new(const char *path)
{
	struct gt_build *build = calloc(1, sizeof(*build));

	if (!build)
		return NULL;
	build->trace = gt_trace_blank(path);
	if (!build->trace) {
		free(build);
		return NULL;
	}
	build->trace->snapshot = true;
	build->failed = gt_defs_begin(build->trace);
	return build;
}

static void free_lane(struct lane *lane)
{
	struct alive *alive, *next;

	HASH_ITER(hh, lane->alive, alive, next) {
		HASH_DEL(lane->alive, alive);
		free(alive);
	}
	HASH_CLEAR(hh, lane->sites);
	free(lane->events);
	free(lane->live);
}

struct gt_build *gt_build_free(struct gt_build *build)
{
	if (!build)
		return NULL;
	for (size_t i = 0; i < GT_MAX_LANES; i++)
		free_lane(&build->lanes[i]);
	HASH_CLEAR(hh, build->strings);
	HASH_CLEAR(hh, build->codes);
	HASH_CLEAR(hh, build->frames);
	HASH_CLEAR(hh, build->streams);
	HASH_CLEAR(hh, build->pools);
	while (build->all) {
		struct known *known = build->all;

		build->all = known->next;
		free(known);
	}
	gt_trace_close(build->trace);
	free(build);
	return NULL;
}

struct gt_header *gt_build_header(struct gt_build *build)
{
	return &build->trace->header;
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* The definition of this content; new ones have id UINT32_MAX, for the caller to set. NULL = no memory. */
static struct known *know(struct gt_build *build, struct known **table, const void *key,
			  size_t length)
{
	struct known *known;

	if (build->failed)
		return NULL;
	HASH_FIND(hh, *table, key, length, known);
	if (known)
		return known;
	known = malloc(sizeof(*known) + length + 1);
	if (!known) {
		build->failed = true;
		return NULL;
	}
	known->id = UINT32_MAX;
	known->next = build->all;
	build->all = known;
	memcpy(known->key, key, length);
	HASH_ADD_KEYPTR(hh, *table, known->key, length, known);
	return known;
}

/* The id of the element that was just added to a table of that many; NULL: there was no memory. */
static uint32_t added(struct gt_build *build, struct known *known, const void *element,
		      size_t count)
{
	if (!element || count > UINT32_MAX - 1) {
		build->failed = true;
		known->id = 0;
	} else {
		known->id = (uint32_t)(count - 1);
	}
	return known->id;
}

uint32_t gt_build_string(struct gt_build *build, const char *text, size_t length)
{
	struct gt_bytes *string;
	struct known *known;

	if (!length || length >= UINT32_MAX)
		return 0;
	known = know(build, &build->strings, text, length);
	if (!known || known->id != UINT32_MAX)
		return known ? known->id : 0;
	string = GT_ADD(build->trace, string, STRINGS);
	if (string && gt_text_keep(build->trace->reader, text, (uint32_t)length, string))
		string = NULL;
	return added(build, known, string, build->trace->string_count);
}

static uint32_t code_of(struct gt_build *build, const struct gt_build_frame *frame)
{
	const uint32_t key[] = {frame->function, frame->file, frame->native};
	struct known *known = know(build, &build->codes, key, sizeof(key));
	struct gt_pycode *code;

	if (!known || known->id != UINT32_MAX)
		return known ? known->id : 0;
	code = GT_ADD(build->trace, pycode, PYCODES);
	if (code)
		*code = (struct gt_pycode){frame->file, frame->function, 0, 0, frame->native};
	return added(build, known, code, build->trace->pycode_count);
}

uint32_t gt_build_frame(struct gt_build *build, const struct gt_build_frame *frame)
{
	const uint32_t code = code_of(build, frame);
	const uint32_t key[] = {frame->parent, code, (uint32_t)frame->line};
	struct known *known = know(build, &build->frames, key, sizeof(key));
	struct gt_pynode *node;

	if (!known || known->id != UINT32_MAX)
		return known ? known->id : 0;
	node = GT_ADD(build->trace, pynode, PYNODES);
	if (node)
		*node = (struct gt_pynode){frame->parent, code, frame->line, 0};
	return added(build, known, node, build->trace->pynode_count);
}

/* Ids of streams have 16 bits; further streams count as the default one. */
uint32_t gt_build_stream(struct gt_build *build, int32_t device, uint64_t handle)
{
	const uint64_t key[] = {(uint32_t)device, handle};
	struct gt_stream_def *stream;
	struct known *known;

	if (!handle)
		return 0;
	known = know(build, &build->streams, key, sizeof(key));
	if (!known || known->id != UINT32_MAX)
		return known ? known->id : 0;
	if (build->trace->stream_count > UINT16_MAX) {
		build->trace->header.lost[GT_LOST_STREAMS]++;
		return known->id = 0;
	}
	stream = GT_ADD(build->trace, stream, STREAMS);
	if (stream)
		*stream = (struct gt_stream_def){handle, device};
	return added(build, known, stream, build->trace->stream_count);
}

uint32_t gt_build_pool(struct gt_build *build, uint64_t first, uint64_t second)
{
	const uint64_t key[] = {first, second};
	struct gt_pool_def *pool;
	struct known *known;

	if (!first && !second)
		return 0;
	known = know(build, &build->pools, key, sizeof(key));
	if (!known || known->id != UINT32_MAX)
		return known ? known->id : 0;
	pool = GT_ADD(build->trace, pool, POOLS);
	if (pool)
		*pool = (struct gt_pool_def){first, second};
	return added(build, known, pool, build->trace->pool_count);
}

static bool keep(struct gt_build *build, const char *text, size_t length, struct gt_bytes *ret)
{
	return length < UINT32_MAX &&
	       !gt_text_keep(build->trace->reader, text, (uint32_t)length, ret);
}

void gt_build_info(struct gt_build *build, const char *key, const char *value, size_t length)
{
	struct gt_info *info = build->failed ? NULL : GT_ADD(build->trace, info, INFOS);

	build->failed |= !info || !keep(build, key, strlen(key), &info->key) ||
			 !keep(build, value, length, &info->value);
}

void gt_build_module(struct gt_build *build, const char *path)
{
	struct gt_module *module = build->failed ? NULL : GT_ADD(build->trace, module, MODULES);

	build->failed |= !module || !keep(build, path, strlen(path), &module->path);
}

uint32_t gt_build_thread(struct gt_build *build, uint32_t tid, const char *name)
{
	struct gt_thread_def *thread = build->failed ? NULL : GT_ADD(build->trace, thread, THREADS);

	build->failed |= !thread || !keep(build, name, strlen(name), &thread->name);
	if (build->failed)
		return 0;
	thread->tid = tid;
	return (uint32_t)(build->trace->thread_count - 1);
}

/* Room in the lane's own totals of the site too. */
static bool count_site(struct gt_build *build, struct lane *lane, size_t count)
{
	while (lane->live_count < count) {
		if (gt_grow(&lane->live, &lane->live_capacity, lane->live_count,
			    sizeof(*lane->live)))
			return false;
		lane->live[lane->live_count++] = (struct gt_site){0};
	}
	return true;
}

uint32_t gt_build_site(struct gt_build *build, int device, const struct gt_site_def *site)
{
	struct gt_lane_sites *sites = &build->trace->reader->sites[device];
	struct lane *lane = &build->lanes[device];
	const uint32_t key[] = {site->native, site->python, site->api,
				(uint32_t)site->space << 8 | site->mask};
	struct known *known = know(build, &lane->sites, key, sizeof(key));

	if (!known || known->id != UINT32_MAX)
		return known ? known->id : 0;
	if (gt_sites_grow(sites) || !count_site(build, lane, sites->count))
		return added(build, known, NULL, 0);
	sites->defs[sites->count - 1] = *site;
	return added(build, known, sites->defs, sites->count);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct alive *find(const struct lane *lane, uint64_t key)
{
	struct alive *alive;

	HASH_FIND(hh, lane->alive, &key, sizeof(key), alive);
	return alive;
}

const struct gt_block *gt_build_alive(const struct gt_build *build, int device, uint64_t addr,
				      enum gt_space space)
{
	struct alive *alive = find(&build->lanes[device], GT_KEY(addr, space));

	return alive ? &alive->block : NULL;
}

static void begin_block(struct gt_build *build, struct lane *lane, struct gt_event *event)
{
	struct alive *alive = malloc(sizeof(*alive));

	event->birth_us = event->us;
	event->birth_thread = event->thread;
	if (!alive) {
		build->failed = true;
		return;
	}
	alive->key = GT_KEY(event->addr, event->space);
	alive->block = gt_block_of(event);
	HASH_ADD(hh, lane->alive, key, sizeof(alive->key), alive);
}

/* What ends repeats what began. Nothing of that key: the event says only that it was tried. */
static void end_block(struct lane *lane, struct gt_event *event)
{
	struct alive *alive = find(lane, GT_KEY(event->addr, event->space));

	if (!alive) {
		event->op = GT_OP_UNKNOWN_FREE;
		return;
	}
	event->size = alive->block.size;
	event->site = alive->block.site;
	event->stream = alive->block.stream;
	event->birth_us = alive->block.birth_us;
	event->birth_thread = alive->block.thread;
	event->pool = alive->block.pool;
	event->requested = alive->block.requested;
	HASH_DEL(lane->alive, alive);
	free(alive);
}

static void count_totals(struct gt_ctr *ctr, const struct gt_event *event, unsigned int mask,
			 uint64_t change)
{
	for (int k = 0; k < GT_TOTALS; k++) {
		if (!(mask >> k & 1))
			continue;
		ctr->cur[k] += change;
		if (ctr->cur[k] <= ctr->peak[k])
			continue;
		ctr->peak[k] = ctr->cur[k];
		ctr->peak_seq[k] = event->seq;
		ctr->peak_us[k] = event->us;
	}
}

static void count_event(struct gt_build *build, int device, const struct gt_event *event)
{
	const struct gt_lane_sites *sites = &build->trace->reader->sites[device];
	struct lane *lane = &build->lanes[device];
	struct gt_ctr *ctr = &lane->ctr;
	const int sign = gt_op_effect(event->op);
	const uint64_t change = sign > 0 ? event->size : 0 - event->size;

	ctr->unknown_frees += event->op == GT_OP_UNKNOWN_FREE;
	ctr->implicit_frees += event->op == GT_OP_IMPLICIT_FREE;
	ctr->failed += event->op == GT_OP_FAILED;
	if (!sign || event->site >= lane->live_count)
		return;
	ctr->allocs += sign > 0;
	ctr->torch_allocs += sign > 0 && event->space == GT_SPACE_TORCH;
	ctr->alloc_bytes += sign > 0 ? event->size : 0;
	ctr->frees += sign < 0;
	ctr->free_bytes += sign < 0 ? event->size : 0;
	ctr->live_count += (uint64_t)(int64_t)sign;
	lane->live[event->site].live += change;
	lane->live[event->site].live_count += (uint64_t)(int64_t)sign;
	count_totals(ctr, event, sites->defs[event->site].mask, change);
}

void gt_build_event(struct gt_build *build, int device, struct gt_event *event)
{
	struct lane *lane = &build->lanes[device];

	if (build->failed)
		return;
	if (gt_grow(&lane->events, &lane->capacity, lane->count, sizeof(*lane->events)) ||
	    !count_site(build, lane, 1)) {
		build->failed = true;
		return;
	}
	event->seq = lane->count + 1;
	event->lane = (uint32_t)device;
	event->birth_us = event->us;
	event->birth_thread = event->thread;
	if (gt_op_effect(event->op) > 0)
		begin_block(build, lane, event);
	else if (gt_op_effect(event->op) < 0)
		end_block(lane, event);
	count_event(build, device, event);
	lane->events[lane->count++] = *event;
}

void gt_build_begin(struct gt_build *build, int device)
{
	build->lanes[device].older = build->lanes[device].count;
}

/* ---- reports --------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
	const struct gt_holder *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static void fill_holders(struct gt_build *build, int device, struct gt_report *report)
{
	const struct gt_lane_sites *sites = &build->trace->reader->sites[device];
	const struct lane *lane = &build->lanes[device];
	struct gt_holder *all = calloc(lane->live_count + 1, sizeof(*all));
	size_t count = 0;

	if (!all) {
		build->failed = true;
		return;
	}
	for (size_t i = 0; i < lane->live_count; i++)
		if (sites->defs[i].mask & GT_MASK_IN_USE && lane->live[i].live)
			all[count++] = (struct gt_holder){lane->live[i].live,
							  lane->live[i].live_count, (uint32_t)i, 0};
	qsort(all, count, sizeof(*all), by_bytes);
	report->holders = (uint32_t)(count < GT_REPORT_HOLDERS ? count : GT_REPORT_HOLDERS);
	memcpy(report->holder, all, report->holders * sizeof(*all));
	free(all);
}

void gt_build_report(struct gt_build *build, int device, struct gt_report *report)
{
	struct gt_trace *trace = build->trace;
	struct lane *lane = &build->lanes[device];

	if (build->failed || !lane->count)
		return;
	if (trace->report_count >= GT_MAX_REPORTS) {
		trace->header.lost[GT_LOST_REPORTS]++;
		lane->report = 0;
		return;
	}
	if (gt_grow(&trace->reports, &build->report_capacity, trace->report_count,
		    sizeof(*trace->reports))) {
		build->failed = true;
		return;
	}
	report->state = (uint32_t)trace->report_count + 1;
	report->lane = (uint32_t)device;
	report->seq = lane->events[lane->count - 1].seq;
	report->us = lane->events[lane->count - 1].us;
	report->site = lane->events[lane->count - 1].site;
	memcpy(report->cur, lane->ctr.cur, sizeof(report->cur));
	fill_holders(build, device, report);
	lane->events[lane->count - 1].aux = report->state;
	trace->reports[trace->report_count++] = *report;
	lane->report = (uint32_t)trace->report_count;
}

void gt_build_outcome(struct gt_build *build, int device, enum gt_outcome outcome, uint64_t us)
{
	struct lane *lane = &build->lanes[device];

	if (!lane->report)
		return;
	build->trace->reports[lane->report - 1].outcome = outcome;
	build->trace->reports[lane->report - 1].outcome_us = us;
	lane->report = 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void make_image(struct lane *lane, uint32_t number, struct gt_image *image)
{
	image->extent.lane = number;
	image->device = (int32_t)number;
	image->seq1 = lane->count;
	image->ctr1 = lane->ctr;
	image->history = (struct gt_history){
		.lane = number,
		.first_seq = 1,
		.last_seq = lane->count,
		.last_us = lane->events[lane->count - 1].us,
		.tail = lane->events,
		.tail_first = 1,
		.tail_count = lane->count,
	};
	lane->events = NULL;
}

/* The events stay where they are; only nobody is led before this one. */
static void hide_older(struct gt_trace *trace, size_t index, uint64_t older)
{
	struct gt_history *history = &trace->reader->histories[index];
	struct gt_trace_lane *lane = &trace->lanes[index];

	history->first_seq = lane->history_first = older + 1;
	if (older < history->tail_count)
		history->first_us = lane->history_us = history->tail[older].us;
	else
		lane->history_us = trace->last_us;
}

static int settle(struct gt_build *build, struct gt_image *images, struct gt_error *err)
{
	size_t count = 0;
	int rc;

	for (uint32_t i = 0; i < GT_MAX_LANES; i++)
		if (build->lanes[i].count)
			make_image(&build->lanes[i], i, &images[count++]);
	rc = gt_images_settle(build->trace, images, count, err);
	for (size_t i = 0; i < count; i++) {
		const struct lane *lane = &build->lanes[images[i].extent.lane];

		if (!rc && lane->older)
			hide_older(build->trace, i, lane->older);
		gt_image_free(&images[i]);
	}
	return rc;
}

int gt_build_end(struct gt_build *build, struct gt_trace **ret, struct gt_error *err)
{
	struct gt_image *images = calloc(GT_MAX_LANES, sizeof(*images));
	int rc;

	if (build->failed || !images)
		rc = gt_fail_memory(err, build->trace->path ? build->trace->path : "");
	else
		rc = settle(build, images, err);
	free(images);
	if (rc > 0)
		rc = gt_fail(err, build->trace->path, "its events do not add up");
	if (!rc) {
		*ret = build->trace;
		build->trace = NULL;
	}
	gt_build_free(build);
	return rc;
}
