/* SPDX-License-Identifier: MIT */
/*
 * The tables of an exported database from which a trace can be put together again: raw_node,
 * raw_event and the others. A row is a structure of tools/read, a column one of its fields; one description of
 * each serves the exporter, which binds, and the reader, which checks what it loads. So what is written
 * is what is read, and a new field is one line.
 */
#ifndef GT_SQLITE_ROWS_H
#define GT_SQLITE_ROWS_H

#include <sqlite3.h>
#include "read/restore.h"

/* Structures with their key, where the key is not in them. */
struct gt_raw_header {
	struct gt_header header;
	uint64_t last_us;
	bool snapshot, merged, partial;
};

struct gt_raw_lane {
	struct gt_trace_lane lane;
	int64_t first_site; /* number of its site 0 in the tables block and site */
	bool in_block;	    /* its blocks are rows of block; else all its events are in raw_event */
};

struct gt_raw_site {
	uint32_t lane;
	struct gt_site_def def;
	struct gt_site totals;
};

struct gt_raw_block {
	uint32_t lane;
	struct gt_block block;
};

struct gt_raw_holder {
	uint32_t report; /* index */
	struct gt_holder holder;
};

struct gt_raw_other {
	uint32_t report;
	struct gt_other other;
};

enum gt_raw { /* the parts of a trace first, by their own numbers */
	      GT_RAW_HEADER = GT_TRACE_PARTS,
	      GT_RAW_LANE,
	      GT_RAW_SITE,
	      GT_RAW_BLOCK,
	      GT_RAW_EVENT, /* struct gt_event */
	      GT_RAW_HOLDER,
	      GT_RAW_OTHER,
	      GT_RAWS,
};

const char *gt_raw_name(unsigned int raw);

/* "CREATE TABLE ...", "INSERT ...", "SELECT ... WHERE process = ?1": to be freed; NULL = no memory. */
char *gt_raw_create(unsigned int raw);
char *gt_raw_insert(unsigned int raw);
char *gt_raw_select(unsigned int raw);

/* Process and element to the columns of an INSERT. */
void gt_raw_bind(sqlite3_stmt *row, unsigned int raw, int64_t process, const void *element);

/* A row of a SELECT into a zeroed element. 0, or -1: a value that the field cannot have, or no memory. */
int gt_raw_load(struct gt_restore *restore, sqlite3_stmt *row, unsigned int raw, void *element);

#endif
