/* SPDX-License-Identifier: MIT */
/*
 * Definitions: what events refer to by number, appended to DEFS extents and committed by the
 * extent's `used` before the number is given to anybody. Strings and streams are interned through
 * an index in private memory; threads are numbered once each. Called with or without a lane's lock
 * held; takes the definitions' lock and, to grow, the extent lock. Never allocates from the heap,
 * logs or waits for anything else.
 */
#include <string.h>
#include <sys/prctl.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "recorder.h"

#define TEXT_MAX   16384u /* bytes of one text; longer ones are cut */
#define MAX_ID	   65535u /* of threads and streams: 16 bits in an event */
#define NO_DEVICES 64
#define MAX_LABELS (1u << 18)

struct table { /* records of one kind, by id and by hash */
	const struct gt_rec **records;
	uint32_t count;	       /* ids given: 1 .. count */
	struct gt_index index; /* hash -> id */
	bool ready;
};

static struct {
	struct gt_lock lock;
	struct gt_extent *extent; /* the last one, being filled */
	uint64_t length, used;	  /* of it: the words in the file may be gone, see truncated.c */
	uint32_t extents;	  /* made so far */
	struct table strings, streams;
	uint32_t threads;
	const uint8_t *uuids[NO_DEVICES];
} defs;

/* ---- records -------------------------------------------------------------------------------- */

static char *room_for(size_t length)
{
	struct gt_extent *e = defs.extent;

	if (!e || defs.length - defs.used < length) {
		size_t whole = length + sizeof(*e);

		if (whole < gt_options.extent)
			whole = gt_options.extent;
		e = gt_extent_new(GT_EXTENT_DEFS, GT_LANE_NONE, whole, defs.extents);
		if (!e)
			return NULL;
		defs.extents++;
		defs.extent = e;
		defs.length = whole;
		defs.used = sizeof(*e);
	}
	return (char *)e + defs.used;
}

/* Lock held. The record in the file, or NULL. Whole extents are zeroed, so padding is. */
static struct gt_rec *append(struct gt_rec *rec, size_t size, const void *text, size_t text_length,
			     const void *text2, size_t text2_length)
{
	size_t length = gt_round_up(size + text_length + text2_length, 8);
	char *at = room_for(length);

	if (!at)
		return NULL;
	rec->length = (uint32_t)length;
	memcpy(at, rec, size);
	if (text_length)
		memcpy(at + size, text, text_length);
	if (text2_length)
		memcpy(at + size + text_length, text2, text2_length);
	defs.used += length;
	gt_store(&defs.extent->used, defs.used);
	return (struct gt_rec *)at;
}

bool gt_def_append(struct gt_rec *rec, size_t size, const void *text, size_t text_length,
		   const void *text2, size_t text2_length)
{
	bool done;

	gt_lock(&defs.lock);
	done = append(rec, size, text, text_length, text2, text2_length);
	gt_unlock(&defs.lock);
	return done;
}

static size_t cut(size_t length)
{
	return length < TEXT_MAX ? length : TEXT_MAX;
}

void gt_def_info(const char *key, const void *value, size_t length)
{
	struct gt_rec_info rec = {.rec.kind = GT_REC_INFO};

	rec.key_length = (uint32_t)strlen(key);
	rec.value_length = (uint32_t)cut(length);
	gt_def_append(&rec.rec, sizeof(rec), key, rec.key_length, value, rec.value_length);
}

void gt_def_device(int ordinal, uint64_t total, const uint8_t uuid[16], const char *name)
{
	struct gt_rec_device rec = {.rec.kind = GT_REC_DEVICE, .ordinal = ordinal, .total = total};
	struct gt_rec *kept;

	if (uuid)
		memcpy(rec.uuid, uuid, sizeof(rec.uuid));
	rec.name_length = name ? (uint32_t)cut(strlen(name)) : 0;
	gt_lock(&defs.lock);
	kept = append(&rec.rec, sizeof(rec), name, rec.name_length, NULL, 0);
	if (kept && uuid && ordinal >= 0 && ordinal < NO_DEVICES)
		defs.uuids[ordinal] = ((struct gt_rec_device *)kept)->uuid;
	gt_unlock(&defs.lock);
}

const uint8_t *gt_device_uuid(int ordinal)
{
	return ordinal >= 0 && ordinal < NO_DEVICES ? gt_load(&defs.uuids[ordinal]) : NULL;
}

/* ---- interned ones -------------------------------------------------------------------------- */

/* Lock held, as for all that follows. */
static uint32_t hash_text(const void *text, size_t length)
{
	return (uint32_t)XXH64(text, length, 0);
}

static uint32_t hash_handle(int device, uint64_t handle)
{
	return gt_hash(handle ^ (uint64_t)(uint32_t)device << 48);
}

/* Of a record that is there. */
static uint32_t hash_of(const void *table, uint32_t id)
{
	const struct gt_rec *rec = ((const struct table *)table)->records[id - 1];
	const struct gt_rec_string *string = (const void *)rec;
	const struct gt_rec_stream *stream = (const void *)rec;

	return rec->kind == GT_REC_STRING ? hash_text(string + 1, string->text_length)
					  : hash_handle(stream->device, stream->handle);
}

/* Room for one more record under this hash. */
static bool reserve(struct table *t, uint32_t hash)
{
	const uint32_t page = GT_HEADER_SIZE / sizeof(*t->records);
	const struct gt_rec **more;

	if (!t->ready && gt_index_init(&t->index, hash_of, t))
		return false;
	t->ready = true;
	if (t->count % page == 0) {
		size_t bytes = t->count * sizeof(*t->records);

		more = gt_remap(t->records, bytes, bytes + GT_HEADER_SIZE);
		if (!more)
			return false;
		t->records = more;
	}
	return gt_index_reserve(&t->index, hash);
}

static uint32_t add(struct table *t, uint32_t hash, const struct gt_rec *rec)
{
	if (!rec)
		return 0;
	t->records[t->count++] = rec;
	gt_index_add(&t->index, hash, t->count);
	return t->count;
}

static uint32_t find_string(uint32_t hash, const char *text, size_t length)
{
	const struct table *t = &defs.strings;
	struct gt_probe p;
	uint32_t id;

	if (!t->ready)
		return 0;
	p = gt_index_probe(&t->index, hash);
	while ((id = gt_index_next(&p)) != GT_NONE) {
		const struct gt_rec_string *s = (const void *)t->records[id - 1];

		if (s->text_length == length && !memcmp(s + 1, text, length))
			return id;
	}
	return 0;
}

static uint32_t intern_string(const char *text, size_t length, uint32_t limit)
{
	struct gt_rec_string rec = {.rec.kind = GT_REC_STRING};
	uint32_t hash, id;

	length = cut(length);
	hash = hash_text(text, length);
	gt_lock(&defs.lock);
	id = find_string(hash, text, length);
	if (!id && defs.strings.count < limit && reserve(&defs.strings, hash)) {
		rec.id = defs.strings.count + 1;
		rec.text_length = (uint32_t)length;
		id = add(&defs.strings, hash, append(&rec.rec, sizeof(rec), text, length, NULL, 0));
	}
	gt_unlock(&defs.lock);
	return id;
}

uint32_t gt_def_string(const char *text, size_t length)
{
	return intern_string(text, length, UINT32_MAX);
}

uint32_t gt_def_label(const char *text, size_t length)
{
	return intern_string(text, length, MAX_LABELS);
}

static uint32_t find_stream(uint32_t hash, int device, uint64_t handle)
{
	const struct table *t = &defs.streams;
	struct gt_probe p;
	uint32_t id;

	if (!t->ready)
		return 0;
	p = gt_index_probe(&t->index, hash);
	while ((id = gt_index_next(&p)) != GT_NONE) {
		const struct gt_rec_stream *s = (const void *)t->records[id - 1];

		if (s->handle == handle && s->device == device)
			return id;
	}
	return 0;
}

static uint32_t intern_stream(int device, uint64_t handle)
{
	struct gt_rec_stream rec = {.rec.kind = GT_REC_STREAM, .device = device, .handle = handle};
	uint32_t hash = hash_handle(device, handle);
	uint32_t id;

	gt_lock(&defs.lock);
	id = find_stream(hash, device, handle);
	if (!id && defs.streams.count < MAX_ID && reserve(&defs.streams, hash)) {
		rec.id = defs.streams.count + 1;
		id = add(&defs.streams, hash, append(&rec.rec, sizeof(rec), NULL, 0, NULL, 0));
	}
	gt_unlock(&defs.lock);
	if (!id)
		gt_count_lost(GT_LOST_STREAMS);
	return id;
}

/* The last answer is kept per thread: most threads use one stream for long. */
uint32_t gt_def_stream(int device, uint64_t handle)
{
	GT_TLS struct {
		uint32_t epoch, id;
		uint64_t handle;
		int device;
	} last;

	if (!handle)
		return 0;
	if (last.epoch == gt_epoch && last.handle == handle && last.device == device)
		return last.id;
	last.id = intern_stream(device, handle);
	last.handle = handle;
	last.device = device;
	last.epoch = gt_epoch;
	return last.id;
}

/* ---- threads -------------------------------------------------------------------------------- */

static uint32_t define_thread(void)
{
	struct gt_rec_thread rec = {.rec.kind = GT_REC_THREAD, .tid = (uint32_t)gt_tid()};
	char name[16] = "";
	uint32_t id = 0;

	prctl(PR_GET_NAME, name);
	rec.name_length = (uint32_t)strnlen(name, sizeof(name));
	rec.us = gt_now_us();
	gt_lock(&defs.lock);
	rec.id = defs.threads + 1;
	if (rec.id <= MAX_ID && append(&rec.rec, sizeof(rec), name, rec.name_length, NULL, 0))
		id = ++defs.threads;
	gt_unlock(&defs.lock);
	if (!id)
		gt_count_lost(GT_LOST_THREADS);
	return id;
}

GT_TLS_SHARED struct gt_thread_id gt_thread_id;

uint32_t gt_def_new_thread(void)
{
	gt_thread_id = (struct gt_thread_id){.epoch = gt_epoch, .id = define_thread()};
	return gt_thread_id.id;
}

void gt_defs_forget(void)
{
	memset(&defs, 0, sizeof(defs));
}
