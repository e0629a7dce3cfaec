/* SPDX-License-Identifier: MIT */
/*
 * A call of one of the tools of mcp_tools.c: a command of gputrace with --format json, whose answer is the
 * command's own, made to fit; the list of traces; or SQL, to a database that a command made of the trace.
 * Everything that reads a trace runs in a child (mcp_child.c). Called from mcp.c.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/mcp.h"
#include "model/xalloc.h"
#include "out/json.h"

#define KEPT_DATABASES 4

/* ---- results --------------------------------------------------------------------------------- */

static json_t *result_of(const char *text, bool bad)
{
	json_t *content =
		json_pack("{s:s, s:o}", "type", "text", "text", gt_json_text(text, strlen(text)));

	return json_pack("{s:[o], s:b}", "content", content, "isError", bad);
}

static json_t *error_of(const char *tool, const struct gt_ran *ran)
{
	char *text;
	json_t *result;

	if (ran->bad)
		text = gt_xasprintf("%s: %s%s%s", tool, ran->bad, *ran->said ? "\n" : "",
				    ran->said);
	else
		text = gt_xstrdup(*ran->said ? ran->said : "no answer");
	result = result_of(text, true);
	free(text);
	return result;
}

/* What a command says beside its answer belongs to it. */
static json_t *answer_of(const char *tool, const struct gt_ran *ran)
{
	json_t *answer = json_loadb(ran->out, ran->length, 0, NULL), *result;
	char *text;

	if (ran->bad || ran->status || !json_is_object(answer)) {
		json_decref(answer);
		return error_of(tool, ran);
	}
	if (*ran->said)
		json_object_set_new(answer, "notes", gt_json_text(ran->said, strlen(ran->said)));
	text = gt_mcp_bounded(answer);
	result = result_of(text, false);
	free(text);
	return result;
}

/* ---- running a command ----------------------------------------------------------------------- */

/* A job: the line as if it had been typed. */
static int run_line(void *ctx)
{
	const struct gt_mcp_line *line = ctx;

	return gt_run_line((int)line->count, line->words);
}

/* Any job, and its answer. */
static json_t *run_tool(const struct gt_mcp *mcp, const char *tool, int (*job)(void *ctx),
			void *ctx)
{
	struct gt_ran ran;
	json_t *result;

	gt_mcp_run(mcp, job, ctx, &ran);
	result = answer_of(tool, &ran);
	gt_ran_clear(&ran);
	return result;
}

/* ---- traces ---------------------------------------------------------------------------------- */

static int is_input(const struct dirent *entry)
{
	static const char *const suffixes[] = {GT_SUFFIX, ".pickle", ".sqlite", ".db"};
	size_t length = strlen(entry->d_name);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t suffix = strlen(suffixes[i]);

		if (length > suffix && !strcmp(entry->d_name + length - suffix, suffixes[i]))
			return 1;
	}
	return entry->d_type == DT_DIR && entry->d_name[0] != '.';
}

/* A job: what there is in DIR and one folder below, since ranks have folders of their own. */
static void list(json_t *found, const char *folder, int deeper)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_input, versionsort);

	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		char *path = strcmp(folder, ".") ? gt_xasprintf("%s/%s", folder, name)
						 : gt_xstrdup(name);
		struct stat st;

		if (entries[i]->d_type == DT_DIR && deeper)
			list(found, path, deeper - 1);
		else if (entries[i]->d_type == DT_REG && !stat(path, &st))
			json_array_append_new(found,
					      json_pack("{s:o, s:I}", "trace", gt_json_name(path),
							"bytes", (json_int_t)st.st_size));
		free(path);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static int list_traces(void *ctx)
{
	json_t *answer = gt_json_answer("traces"), *found = json_array();

	(void)ctx;
	list(found, ".", 1);
	json_object_set_new(answer, "traces", found);
	json_dumpf(answer, stdout, JSON_COMPACT);
	json_decref(answer);
	return GT_EXIT_FINE;
}

/* ---- sql ------------------------------------------------------------------------------------- */

struct gt_mcp_database {
	struct stat st; /* of the trace that it was made from */
	char *path;
};

/* A trace that grows changes its size or time; one that was replaced its number. */
static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static const char *find_database(const struct gt_mcp *mcp, const struct stat *st)
{
	for (size_t i = 0; i < mcp->database_count; i++)
		if (is_same(&mcp->databases[i].st, st))
			return mcp->databases[i].path;
	return NULL;
}

static char *make_scratch(void)
{
	const char *where = getenv("TMPDIR");
	char *folder = gt_xasprintf("%s/gputrace-mcp-XXXXXX", where && *where ? where : "/tmp");

	if (mkdtemp(folder))
		return folder;
	free(folder);
	return NULL;
}

/* The oldest gives way. */
static const char *keep_database(struct gt_mcp *mcp, const struct stat *st, char *path)
{
	struct gt_mcp_database *database;

	if (mcp->database_count == KEPT_DATABASES) {
		unlink(mcp->databases[0].path);
		free(mcp->databases[0].path);
		mcp->database_count--;
		memmove(mcp->databases, mcp->databases + 1,
			mcp->database_count * sizeof(*mcp->databases));
	}
	if (!mcp->databases)
		mcp->databases = gt_xcalloc(KEPT_DATABASES, sizeof(*mcp->databases));
	database = &mcp->databases[mcp->database_count++];
	database->st = *st;
	database->path = path;
	return path;
}

static void export_to(const struct gt_mcp *mcp, char *path, const char *trace, struct gt_ran *ran)
{
	char *words[] = {"export", "--format=sqlite", "--output", path, "--", (char *)trace};
	struct gt_mcp_line line = {.words = words, .count = sizeof(words) / sizeof(words[0])};

	gt_mcp_run(mcp, run_line, &line, ran);
}

/* The trace as a database: one that was made before, as long as the trace has not changed. */
static const char *database_of(struct gt_mcp *mcp, const char *trace, struct gt_ran *ran)
{
	int fd = gt_mcp_look(mcp, trace), bad = fd < 0;
	const char *known;
	struct stat st;
	char *path;

	bad = bad || fstat(fd, &st);
	close(fd);
	*ran = (struct gt_ran){0};
	known = bad ? NULL : find_database(mcp, &st);
	if (known)
		return known;
	if (!mcp->scratch)
		mcp->scratch = make_scratch();
	path = gt_xasprintf("%s/%u.db", mcp->scratch ? mcp->scratch : "", mcp->made++);
	export_to(mcp, path, trace, ran);
	if (!bad && mcp->scratch && !ran->bad && !ran->status)
		return keep_database(mcp, &st, path);
	unlink(path);
	free(path);
	return NULL;
}

void gt_mcp_forget(struct gt_mcp *mcp)
{
	for (size_t i = 0; i < mcp->database_count; i++) {
		unlink(mcp->databases[i].path);
		free(mcp->databases[i].path);
	}
	if (mcp->scratch)
		rmdir(mcp->scratch);
	free(mcp->databases);
	free(mcp->scratch);
}

static json_t *run_sql(struct gt_mcp *mcp, const char *tool, const struct gt_mcp_line *line)
{
	struct gt_mcp_question question = {.sql = line->query, .rows = line->rows};
	struct gt_ran ran;
	json_t *result;

	question.database = database_of(mcp, line->files[0], &ran);
	result = question.database ? run_tool(mcp, tool, gt_mcp_ask, &question)
				   : error_of(tool, &ran);
	gt_ran_clear(&ran);
	return result;
}

/* ---- a call ---------------------------------------------------------------------------------- */

json_t *gt_mcp_call(struct gt_mcp *mcp, const char *name, const json_t *arguments)
{
	struct gt_mcp_line line;
	json_t *result;

	if (!gt_mcp_line_of(mcp, name, arguments, &line))
		return NULL;
	if (line.why)
		result = result_of(line.why, true);
	else if (!strcmp(name, "sql"))
		result = run_sql(mcp, name, &line);
	else if (!strcmp(name, "traces"))
		result = run_tool(mcp, name, list_traces, NULL);
	else
		result = run_tool(mcp, name, run_line, &line);
	gt_mcp_line_clear(&line);
	return result;
}
