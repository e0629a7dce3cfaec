/* SPDX-License-Identifier: MIT */
/*
 * See rows.h. Numbers of 64 bits that SQLite takes for negative come back as they were; texts keep
 * their bytes, NULs included. Called from open.c and export/sqlite_raw.c.
 *
 * The tables are named raw_* and hold numbers where the others hold words, because they are for reading
 * again and not for people: an id that becomes a word and an id again is a chance to be another id.
 * Columns have no types, so that SQLite changes no value to fit one.
 */
#include "sqlite/rows.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	K_UNSIGNED,
	K_SIGNED,
	K_FLAG,
	K_TEXT,	 /* struct gt_bytes */
	K_CHARS, /* NUL padded */
	K_BYTES,
};

struct field {
	const char *name;
	enum kind kind;
	size_t offset, size;
};

/* Offset and size come from the structure itself: a field that changes its type changes its column. */
#define AT(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)
#define U(type, name, member)                      \
	{                                          \
		name, K_UNSIGNED, AT(type, member) \
	}
#define I(type, name, member)                    \
	{                                        \
		name, K_SIGNED, AT(type, member) \
	}
#define F(type, name, member)                  \
	{                                      \
		name, K_FLAG, AT(type, member) \
	}
#define T(type, name, member)                  \
	{                                      \
		name, K_TEXT, AT(type, member) \
	}
#define C(type, name, member)                   \
	{                                       \
		name, K_CHARS, AT(type, member) \
	}
#define B(type, name, member)                   \
	{                                       \
		name, K_BYTES, AT(type, member) \
	}

static const struct field infos[] = {T(gt_info, "key", key), T(gt_info, "value", value), {0}};

static const struct field strings[] = {{"text", K_TEXT, 0, sizeof(struct gt_bytes)}, {0}};

static const struct field modules[] = {
	T(gt_module, "path", path),
	U(gt_module, "from_address", start),
	U(gt_module, "to_address", end),
	U(gt_module, "bias", bias),
	B(gt_module, "build_id", build_id),
	U(gt_module, "build_id_length", build_id_length),
	U(gt_module, "unloaded_us", unloaded_us),
	{0},
};

static const struct field nodes[] = {
	U(gt_node, "address", pc),
	U(gt_node, "parent", parent),
	U(gt_node, "module", module),
	{0},
};

static const struct field pycodes[] = {
	U(gt_pycode, "file", file),	    U(gt_pycode, "name", name),
	U(gt_pycode, "qualname", qualname), I(gt_pycode, "first_line", first_line),
	F(gt_pycode, "native", native),	    {0},
};

static const struct field pynodes[] = {
	U(gt_pynode, "parent", parent),
	U(gt_pynode, "code", code),
	I(gt_pynode, "line", line),
	U(gt_pynode, "calls", calls),
	{0},
};

static const struct field threads[] = {
	U(gt_thread_def, "tid", tid),
	U(gt_thread_def, "us", us),
	T(gt_thread_def, "name", name),
	{0},
};

static const struct field streams[] = {
	U(gt_stream_def, "handle", handle),
	I(gt_stream_def, "device", device),
	{0},
};

static const struct field devices[] = {
	I(gt_device_def, "ordinal", ordinal),
	U(gt_device_def, "total", total),
	B(gt_device_def, "uuid", uuid),
	T(gt_device_def, "name", name),
	{0},
};

static const struct field contexts[] = {
	U(gt_context_def, "handle", handle),
	U(gt_context_def, "us", us),
	I(gt_context_def, "bytes", bytes),
	I(gt_context_def, "device", device),
	U(gt_context_def, "flags", flags),
	U(gt_context_def, "native", native),
	U(gt_context_def, "python", python),
	U(gt_context_def, "thread", thread),
	{0},
};

static const struct field names[] = {
	U(gt_name_def, "address", pc),
	U(gt_name_def, "module", module),
	U(gt_name_def, "function", function),
	U(gt_name_def, "file", file),
	I(gt_name_def, "line", line),
	F(gt_name_def, "inlined", inlined),
	{0},
};

static const struct field sources[] = {
	U(gt_source_def, "file", file),
	U(gt_source_def, "text", text),
	I(gt_source_def, "line", line),
	{0},
};

static const struct field pools[] = {
	U(gt_pool_def, "first", first),
	U(gt_pool_def, "second", second),
	{0},
};

static const struct field reports[] = {
	U(gt_report, "number", state),
	U(gt_report, "outcome", outcome),
	U(gt_report, "lane", lane),
	U(gt_report, "space", space),
	U(gt_report, "event", seq),
	U(gt_report, "us", us),
	U(gt_report, "requested", requested),
	U(gt_report, "torch_requested", torch_requested),
	U(gt_report, "device_free", device_free),
	U(gt_report, "device_total", device_total),
	U(gt_report, "reserved", cur[GT_TOTAL_RESERVED]),
	U(gt_report, "torch", cur[GT_TOTAL_TORCH]),
	U(gt_report, "in_use", cur[GT_TOTAL_IN_USE]),
	U(gt_report, "torch_allocated", torch_allocated),
	U(gt_report, "torch_reserved", torch_reserved),
	U(gt_report, "outcome_us", outcome_us),
	U(gt_report, "thread", thread),
	U(gt_report, "site", site),
	I(gt_report, "result", result),
	U(gt_report, "tries", tries),
	{0},
};

static const struct field headers[] = {
	U(gt_raw_header, "version", header.version),
	U(gt_raw_header, "stacks", header.stacks),
	U(gt_raw_header, "mono_us", header.mono_us),
	U(gt_raw_header, "real_us", header.real_us),
	U(gt_raw_header, "ring_limit", header.ring_limit),
	U(gt_raw_header, "file_limit", header.file_limit),
	U(gt_raw_header, "pid", header.pid),
	U(gt_raw_header, "ppid", header.ppid),
	U(gt_raw_header, "start_ticks", header.start_ticks),
	U(gt_raw_header, "pid_ns", header.pid_ns),
	U(gt_raw_header, "exit_us", header.exit_us),
	U(gt_raw_header, "stop_us", header.stop_us),
	U(gt_raw_header, "stop", header.stop),
	U(gt_raw_header, "depth", header.depth),
	C(gt_raw_header, "boot_id", header.boot_id),
	C(gt_raw_header, "comm", header.comm),
	C(gt_raw_header, "host", header.host),
	U(gt_raw_header, "lost_events", header.lost[GT_LOST_EVENTS]),
	U(gt_raw_header, "lost_sites", header.lost[GT_LOST_SITES]),
	U(gt_raw_header, "lost_stacks", header.lost[GT_LOST_STACKS]),
	U(gt_raw_header, "lost_truncated", header.lost[GT_LOST_TRUNCATED]),
	U(gt_raw_header, "lost_streams", header.lost[GT_LOST_STREAMS]),
	U(gt_raw_header, "lost_threads", header.lost[GT_LOST_THREADS]),
	U(gt_raw_header, "lost_reports", header.lost[GT_LOST_REPORTS]),
	U(gt_raw_header, "lost_python", header.lost[GT_LOST_PYTHON]),
	U(gt_raw_header, "last_us", last_us),
	F(gt_raw_header, "snapshot", snapshot),
	F(gt_raw_header, "merged", merged),
	F(gt_raw_header, "partial", partial),
	{0},
};

#define CTR(name, member) U(gt_raw_lane, name, lane.ctr.member)
#define CTR_TOTALS(name, member)                            \
	CTR(name "_reserved", member[GT_TOTAL_RESERVED]),   \
		CTR(name "_torch", member[GT_TOTAL_TORCH]), \
		CTR(name "_in_use", member[GT_TOTAL_IN_USE])

static const struct field lanes[] = {
	U(gt_raw_lane, "lane", lane.lane),
	I(gt_raw_lane, "device", lane.device),
	U(gt_raw_lane, "events", lane.seq),
	U(gt_raw_lane, "history_first", lane.history_first),
	U(gt_raw_lane, "history_us", lane.history_us),
	U(gt_raw_lane, "incomplete_event", lane.incomplete_seq),
	U(gt_raw_lane, "lost", lane.lost),
	I(gt_raw_lane, "first_site", first_site),
	F(gt_raw_lane, "in_block", in_block),
	CTR_TOTALS("now", cur),
	CTR_TOTALS("peak", peak),
	CTR_TOTALS("peak_event", peak_seq),
	CTR_TOTALS("peak_us", peak_us),
	CTR("allocations", allocs),
	CTR("frees", frees),
	CTR("alloc_bytes", alloc_bytes),
	CTR("free_bytes", free_bytes),
	CTR("live_blocks", live_count),
	CTR("unknown_frees", unknown_frees),
	CTR("implicit_frees", implicit_frees),
	CTR("failed", failed),
	CTR("torch_allocations", torch_allocs),
	{0},
};

static const struct field sites[] = {
	U(gt_raw_site, "lane", lane),
	U(gt_raw_site, "native", def.native),
	U(gt_raw_site, "python", def.python),
	U(gt_raw_site, "api", def.api),
	U(gt_raw_site, "space", def.space),
	U(gt_raw_site, "mask", def.mask),
	U(gt_raw_site, "at_peak_reserved", totals.at[GT_TOTAL_RESERVED]),
	U(gt_raw_site, "at_peak_torch", totals.at[GT_TOTAL_TORCH]),
	U(gt_raw_site, "at_peak_in_use", totals.at[GT_TOTAL_IN_USE]),
	U(gt_raw_site, "last_event", totals.last_seq),
	U(gt_raw_site, "live_bytes", totals.live),
	U(gt_raw_site, "live_blocks", totals.live_count),
	U(gt_raw_site, "ever_bytes", totals.ever),
	U(gt_raw_site, "ever_blocks", totals.ever_count),
	{0},
};

static const struct field blocks[] = {
	U(gt_raw_block, "lane", lane),
	U(gt_raw_block, "address", block.addr),
	U(gt_raw_block, "bytes", block.size),
	U(gt_raw_block, "birth_us", block.birth_us),
	U(gt_raw_block, "site", block.site),
	U(gt_raw_block, "stream", block.stream),
	U(gt_raw_block, "thread", block.thread),
	U(gt_raw_block, "space", block.space),
	U(gt_raw_block, "pool", block.pool),
	U(gt_raw_block, "requested", block.requested),
	{0},
};

static const struct field events[] = {
	U(gt_event, "lane", lane),
	U(gt_event, "event", seq),
	U(gt_event, "us", us),
	U(gt_event, "op", op),
	U(gt_event, "space", space),
	U(gt_event, "address", addr),
	U(gt_event, "bytes", size),
	U(gt_event, "birth_us", birth_us),
	U(gt_event, "birth_thread", birth_thread),
	U(gt_event, "thread", thread),
	U(gt_event, "stream", stream),
	U(gt_event, "site", site),
	U(gt_event, "free_site", free_site),
	U(gt_event, "aux", aux),
	U(gt_event, "extra", extra),
	U(gt_event, "pool", pool),
	U(gt_event, "requested", requested),
	{0},
};

static const struct field holders[] = {
	U(gt_raw_holder, "report", report),
	U(gt_raw_holder, "bytes", holder.bytes),
	U(gt_raw_holder, "blocks", holder.count),
	U(gt_raw_holder, "site", holder.site),
	{0},
};

static const struct field others[] = {
	U(gt_raw_other, "report", report),
	U(gt_raw_other, "bytes", other.bytes),
	U(gt_raw_other, "pid", other.pid),
	C(gt_raw_other, "name", other.name),
	{0},
};

static const struct {
	const char *name;
	const struct field *fields;
} raws[GT_RAWS] = {
	[GT_PART_INFO] = {"raw_info", infos},	    [GT_PART_STRING] = {"raw_string", strings},
	[GT_PART_MODULE] = {"raw_module", modules}, [GT_PART_NODE] = {"raw_node", nodes},
	[GT_PART_PYCODE] = {"raw_pycode", pycodes}, [GT_PART_PYNODE] = {"raw_pynode", pynodes},
	[GT_PART_THREAD] = {"raw_thread", threads}, [GT_PART_STREAM] = {"raw_stream", streams},
	[GT_PART_DEVICE] = {"raw_device", devices}, [GT_PART_CONTEXT] = {"raw_context", contexts},
	[GT_PART_NAME] = {"raw_name", names},	    [GT_PART_SOURCE] = {"raw_source", sources},
	[GT_PART_POOL] = {"raw_pool", pools},	    [GT_PART_REPORT] = {"raw_report", reports},
	[GT_RAW_HEADER] = {"raw_header", headers},  [GT_RAW_LANE] = {"raw_lane", lanes},
	[GT_RAW_SITE] = {"raw_site", sites},	    [GT_RAW_BLOCK] = {"raw_block", blocks},
	[GT_RAW_EVENT] = {"raw_event", events},	    [GT_RAW_HOLDER] = {"raw_holder", holders},
	[GT_RAW_OTHER] = {"raw_other", others},
};

const char *gt_raw_name(unsigned int raw)
{
	return raws[raw].name;
}

/* ---- statements ------------------------------------------------------------------------------ */

/* before, then each field's name (or "?") behind a comma, then after. */
static char *statement(unsigned int raw, const char *before, bool marks, const char *after)
{
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	if (!to)
		return NULL;
	fputs(before, to);
	for (const struct field *field = raws[raw].fields; field->name; field++)
		fprintf(to, "%s%s", field == raws[raw].fields && !marks ? "" : ", ",
			marks ? "?" : field->name);
	fputs(after, to);
	if (!fclose(to))
		return text;
	free(text);
	return NULL;
}

char *gt_raw_create(unsigned int raw)
{
	char before[64];

	snprintf(before, sizeof(before), "CREATE TABLE %s (process, ", raws[raw].name);
	return statement(raw, before, false, ")");
}

char *gt_raw_insert(unsigned int raw)
{
	char before[64];

	snprintf(before, sizeof(before), "INSERT INTO %s VALUES (?", raws[raw].name);
	return statement(raw, before, true, ")");
}

char *gt_raw_select(unsigned int raw)
{
	char after[96];

	snprintf(after, sizeof(after), " FROM %s WHERE process = ?1 ORDER BY rowid",
		 raws[raw].name);
	return statement(raw, "SELECT ", false, after);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Ids of 32 bits and less are positive; only signed ones need their sign spread. */
static int64_t number_of(const struct field *field, const void *from)
{
	uint64_t value = 0;

	memcpy(&value, from, field->size); /* little endian */
	if (field->kind == K_SIGNED && field->size == sizeof(int32_t))
		return (int32_t)value;
	return (int64_t)value;
}

static void bind(sqlite3_stmt *row, int column, const struct field *field, const void *from)
{
	const struct gt_bytes *text = from;

	switch (field->kind) {
	case K_TEXT:
		sqlite3_bind_text64(row, column, text->text ? text->text : "", text->length,
				    SQLITE_STATIC, SQLITE_UTF8);
		break;
	case K_CHARS:
		sqlite3_bind_text(row, column, from, (int)strnlen(from, field->size),
				  SQLITE_STATIC);
		break;
	case K_BYTES:
		sqlite3_bind_blob(row, column, from, (int)field->size, SQLITE_STATIC);
		break;
	default:
		sqlite3_bind_int64(row, column, number_of(field, from));
	}
}

void gt_raw_bind(sqlite3_stmt *row, unsigned int raw, int64_t process, const void *element)
{
	int column = 1;

	sqlite3_bind_int64(row, column++, process);
	for (const struct field *field = raws[raw].fields; field->name; field++)
		bind(row, column++, field, (const char *)element + field->offset);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What would be cut off on its way into the field is a damaged value, and not a smaller one. */
static bool fits(const struct field *field, int64_t value)
{
	unsigned int bits = 8 * (unsigned int)field->size;

	if (field->kind == K_FLAG)
		return value == 0 || value == 1;
	if (bits == 64)
		return true;
	if (field->kind == K_SIGNED)
		return value >= INT32_MIN && value <= INT32_MAX;
	return value >= 0 && value < (int64_t)1 << bits;
}

static int load_number(sqlite3_stmt *row, int column, const struct field *field, void *to)
{
	int64_t value = sqlite3_column_int64(row, column);

	if (sqlite3_column_type(row, column) != SQLITE_INTEGER || !fits(field, value))
		return -1;
	memcpy(to, &value, field->size);
	return 0;
}

/* Texts end in the structure, too: a NUL padded field keeps its last byte for one. */
static int load_bytes(sqlite3_stmt *row, int column, const struct field *field, void *to)
{
	int type = sqlite3_column_type(row, column);
	const void *bytes = sqlite3_column_blob(row, column);
	size_t length = (size_t)sqlite3_column_bytes(row, column);

	if (type != SQLITE_TEXT && type != SQLITE_BLOB)
		return -1;
	if (field->kind == K_BYTES ? length != field->size : length >= field->size)
		return -1;
	if (length)
		memcpy(to, bytes, length);
	return 0;
}

static int load_text(struct gt_restore *restore, sqlite3_stmt *row, int column, void *to)
{
	const void *text = sqlite3_column_blob(row, column);

	if (sqlite3_column_type(row, column) != SQLITE_TEXT)
		return -1;
	return gt_restore_text(restore, text, (size_t)sqlite3_column_bytes(row, column), to);
}

static int load(struct gt_restore *restore, sqlite3_stmt *row, int column,
		const struct field *field, void *to)
{
	if (field->kind == K_TEXT)
		return load_text(restore, row, column, to);
	if (field->kind == K_CHARS || field->kind == K_BYTES)
		return load_bytes(row, column, field, to);
	return load_number(row, column, field, to);
}

int gt_raw_load(struct gt_restore *restore, sqlite3_stmt *row, unsigned int raw, void *element)
{
	int column = 0;

	for (const struct field *field = raws[raw].fields; field->name; field++)
		if (load(restore, row, column++, field, (char *)element + field->offset))
			return -1;
	return 0;
}
