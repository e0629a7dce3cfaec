/* SPDX-License-Identifier: MIT */
/*
 * One question in SQL to a database that gputrace exported a moment ago. The question comes from a
 * model that read names out of a trace, so it is as hostile as the trace: SQLite itself lets it only
 * read. The file is opened read-only; the authorizer, asked while a statement is compiled, allows
 * reading and functions and nothing else (no ATTACH, no PRAGMA but those that describe tables, no
 * extensions); time, memory and rows end. Called from mcp_tools.c, in a child.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/cmd.h"
#include "cmd/mcp.h"
#include "model/xalloc.h"
#include "out/json.h"

#define LIMIT_SECONDS 20
#define LIMIT_MEMORY  (1u << 30)
#define LIMIT_BYTES   (GT_MCP_ANSWER - 4096u) /* of rows: what else is in the answer is small */
#define LIMIT_VALUE   2000u

struct limits {
	time_t until;
	bool denied; /* the statement wanted more than to read */
};

static bool is_description(const char *pragma)
{
	static const char *const names[] = {"table_info", "table_xinfo", "table_list", "index_list",
					    "index_info"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(pragma, names[i]))
			return true;
	return false;
}

static bool only_reads(int action, const char *detail, const char *name)
{
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return true;
	case SQLITE_FUNCTION:
		return strcmp(name, "load_extension") != 0;
	case SQLITE_PRAGMA:
		return is_description(detail);
	default:
		return false;
	}
}

/* detail and name are what SQLite documents per action. */
static int authorize(void *ctx, int action, const char *detail, const char *name,
		     const char *database, const char *trigger)
{
	struct limits *limits = ctx;

	(void)database;
	(void)trigger;
	if (only_reads(action, detail, name))
		return SQLITE_OK;
	limits->denied = true;
	return SQLITE_DENY;
}

static int is_late(void *ctx)
{
	const struct limits *limits = ctx;

	return time(NULL) > limits->until;
}

static int open_database(const char *path, sqlite3 **ret, struct limits *limits)
{
	int rc = sqlite3_open_v2(path, ret, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW, NULL);

	if (rc)
		return rc;
	sqlite3_hard_heap_limit64(LIMIT_MEMORY);
	sqlite3_exec(*ret, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
	sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(*ret, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_limit(*ret, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_limit(*ret, SQLITE_LIMIT_LENGTH, 16 << 20);
	sqlite3_set_authorizer(*ret, authorize, limits);
	limits->until = time(NULL) + LIMIT_SECONDS;
	sqlite3_progress_handler(*ret, 10000, is_late, limits);
	return 0;
}

/* A long value says its length: one cell must not use up the answer, and substr() gets the rest. */
static json_t *value_of(sqlite3_stmt *row, int column)
{
	int length = sqlite3_column_bytes(row, column);
	const char *text;

	switch (sqlite3_column_type(row, column)) {
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(row, column));
	case SQLITE_FLOAT: /* infinity is no JSON */
		return json_real(sqlite3_column_double(row, column)) ?: json_null();
	case SQLITE_NULL:
		return json_null();
	case SQLITE_BLOB:
		return json_sprintf("(%d bytes)", length);
	default:
		text = (const char *)sqlite3_column_text(row, column);
		if (text && (unsigned int)length <= LIMIT_VALUE)
			return gt_json_text(text, (size_t)length);
		return json_sprintf("(a text of %d bytes)", length);
	}
}

static json_t *row_of(sqlite3_stmt *statement)
{
	json_t *row = json_array();

	for (int i = 0; i < sqlite3_column_count(statement); i++)
		json_array_append_new(row, value_of(statement, i));
	return row;
}

static size_t size_of(const json_t *row)
{
	char *text = gt_xchecked(json_dumps(row, JSON_COMPACT));
	size_t length = strlen(text) + 1;

	free(text);
	return length;
}

/* As many rows as were asked for and fit. Says whether there are more: that is one step further. */
static int rows_of(sqlite3_stmt *statement, size_t most, json_t *rows, bool *ret_more)
{
	size_t bytes = 0;
	int rc;

	*ret_more = false;
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
		json_t *row = row_of(statement);

		bytes += size_of(row);
		if (json_array_size(rows) >= most || bytes > LIMIT_BYTES) {
			*ret_more = true;
			json_decref(row);
			return SQLITE_DONE;
		}
		json_array_append_new(rows, row);
	}
	return rc;
}

static int answer(sqlite3_stmt *statement, size_t most)
{
	json_t *result = gt_json_answer("sql"), *columns = json_array(), *rows = json_array();
	bool more;
	int rc = rows_of(statement, most, rows, &more);

	for (int i = 0; i < sqlite3_column_count(statement); i++)
		json_array_append_new(columns, gt_json_name(sqlite3_column_name(statement, i)));
	json_object_set_new(result, "columns", columns);
	json_object_set_new(result, "row_count", json_integer((json_int_t)json_array_size(rows)));
	json_object_set_new(result, "more_rows", json_boolean(more));
	json_object_set_new(result, "rows", rows);
	if (rc == SQLITE_DONE)
		json_dumpf(result, stdout, JSON_COMPACT);
	json_decref(result);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int refuse(sqlite3 *db, int rc, const struct limits *limits)
{
	if (rc == SQLITE_INTERRUPT)
		return gt_message(GT_EXIT_USAGE, "sql: stopped after %d s: ask for less",
				  LIMIT_SECONDS);
	if (limits->denied)
		return gt_message(GT_EXIT_USAGE, "sql: %s: only SELECT is allowed here",
				  sqlite3_errmsg(db));
	return gt_message(GT_EXIT_USAGE, "sql: %s", sqlite3_errmsg(db));
}

int gt_mcp_ask(void *question)
{
	const struct gt_mcp_question *asked = question;
	sqlite3_stmt *statement = NULL;
	const char *tail = "";
	sqlite3 *db = NULL;
	struct limits limits = {0};
	int rc = open_database(asked->database, &db, &limits), status = GT_EXIT_FINE;

	if (!rc)
		rc = sqlite3_prepare_v2(db, asked->sql, -1, &statement, &tail);
	if (!rc && (!statement || tail[strspn(tail, " \t\r\n;")]))
		status = gt_message(GT_EXIT_USAGE, "sql: one statement at a time");
	else if (!rc)
		rc = answer(statement, asked->rows);
	if (rc)
		status = refuse(db, rc, &limits);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return status;
}
