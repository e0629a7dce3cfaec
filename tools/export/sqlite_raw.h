/* SPDX-License-Identifier: MIT */
/*
 * The tables raw_* of an exported database: all that the commands need to read it as the trace that it
 * was made of. What the other tables say for people is not said again: of the history only the events
 * that are more than the begin or the end of a row of block.
 */
#ifndef GT_EXPORT_SQLITE_RAW_H
#define GT_EXPORT_SQLITE_RAW_H

#include "export/lives.h"
#include "export/numbers.h"
#include "sqlite/rows.h"

struct gt_raws {
	sqlite3 *db;
	sqlite3_stmt *rows[GT_RAWS];
	int rc; /* of SQLite: the first that went wrong */
	int64_t process;
	struct gt_numbers strings; /* names of symbols, behind those of the trace */
	size_t first_string;
};

void gt_raws_open(struct gt_raws *raws, sqlite3 *db);
void gt_raws_close(struct gt_raws *raws);

/* Of a process: its definitions, and its lanes that are no devices'. 0, or -1 with err. */
int gt_raws_process(struct gt_raws *raws, int64_t process, const struct gt_export *export,
		    const struct gt_trace *trace, struct gt_symbols *symbols, struct gt_error *err);

/* Of a device: its state, and the events that gt_raws_life does not know of. */
int gt_raws_lane(struct gt_raws *raws, const struct gt_trace *trace, size_t lane_index,
		 int64_t first_site, bool in_block, struct gt_error *err);

/* Of a row of block: its last event, if that is not what the row says. */
void gt_raws_life(struct gt_raws *raws, const struct gt_lived *lived);

#endif
