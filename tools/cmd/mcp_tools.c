/* SPDX-License-Identifier: MIT */
/*
 * The tools that gputrace mcp offers: one table, from which follow what tools/list says, what arguments
 * are taken, and the command line they become. A tool is a command of gputrace with --format json; its
 * answer is the command's own, made to fit. Names of files are looked up below DIR before anything
 * runs, and the command opens them below DIR again (read/beneath.h). What an argument may be is left to the
 * command's own parser: here only its JSON type is checked. Called from mcp.c.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/mcp.h"
#include "model/xalloc.h"
#include "out/json.h"

#define LIMIT_ROWS     5000
#define LIMIT_ARGUMENT 4096u
#define KEPT_DATABASES 4

/* ---- the table ------------------------------------------------------------------------------- */

enum kind {
	K_FILE,
	K_FILES,
	K_TEXT,
	K_NUMBER,
	K_SWITCH,
};

enum parameter {
	P_END,
	P_TRACE,
	P_A,
	P_B,
	P_TRACES,
	P_DEVICE,
	P_RANK,
	P_LEVEL,
	P_BY,
	P_AT,
	P_FROM,
	P_TO,
	P_RANGE,
	P_NTH,
	P_REMEDIES,
	P_GPU,
	P_TARGET,
	P_RESERVE,
	P_BATCH,
	P_PARAMS,
	P_SAMPLE,
	P_LAYERS,
	P_LORA,
	P_GPUS,
	P_QUERY,
	P_ROWS,
	PARAMETERS,
};

#define WHEN "peak, oom, end, step:N, a time like 2.75s, or a mark that the program set"

static const struct {
	const char *name, *option; /* the option's name where it differs */
	enum kind kind;
	const char *text;
	const char *choices; /* of a text: with | between them; NULL = any */
} parameters[PARAMETERS] = {
	[P_TRACE] = {"trace", NULL, K_FILE,
		     "A trace, as the tool traces lists them; or a folder with those of several "
		     "ranks",
		     NULL},
	[P_A] = {"a", NULL, K_FILE, "The trace before", NULL},
	[P_B] = {"b", NULL, K_FILE,
		 "The trace after; without it, from and to say what of a is compared", NULL},
	[P_TRACES] = {"traces", NULL, K_FILES,
		      "Traces of runs that differ in their batch size; may be empty with params",
		      NULL},
	[P_DEVICE] = {"device", NULL, K_NUMBER, "Only this GPU, as the program numbers it", NULL},
	[P_RANK] = {"rank", NULL, K_NUMBER, "Only the process with this RANK", NULL},
	[P_LEVEL] = {"level", NULL, K_TEXT,
		     "torch: blocks of its allocator; driver: what is held. Default: in use",
		     "torch|driver"},
	[P_BY] = {"by", NULL, K_TEXT, "What a row is (default: line)",
		  "line|function|inside|stack|site|owner|stream|level|category|step|phase"},
	[P_AT] = {"at", NULL, K_TEXT, WHEN, NULL},
	[P_FROM] = {"from", NULL, K_TEXT, "Begin there: a time, a mark, a range or step:N", NULL},
	[P_TO] = {"to", NULL, K_TEXT, "End there", NULL},
	[P_RANGE] = {"range", NULL, K_TEXT, "Only in ranges of this name; * and ? match any", NULL},
	[P_NTH] = {"nth", NULL, K_NUMBER, "Which refused request (default: the fatal one)", NULL},
	[P_REMEDIES] = {"remedies", NULL, K_SWITCH, "Every remedy tried, with its formula", NULL},
	[P_GPU] = {"gpu", NULL, K_TEXT, "Memory of the card, like 24GiB (default: the trace's)",
		   NULL},
	[P_TARGET] = {"target", NULL, K_NUMBER, "Batch to make up of micro-batches", NULL},
	[P_RESERVE] = {"reserve", NULL, K_TEXT, "Left free for all else (default 1G)", NULL},
	[P_BATCH] = {"batch", NULL, K_TEXT, "Batch sizes of the traces, like 4,8", NULL},
	[P_PARAMS] = {"params", NULL, K_TEXT, "Parameters of the model, like 350M or 7B", NULL},
	[P_SAMPLE] = {"sample", NULL, K_TEXT, "Bytes per sample, with params", NULL},
	[P_LAYERS] = {"layers", NULL, K_NUMBER, "Equal layers, for checkpointing and LoRA", NULL},
	[P_LORA] = {"lora_rank", "rank", K_NUMBER, "Rank of LoRA's adapters", NULL},
	[P_GPUS] = {"gpus", NULL, K_NUMBER, "Cards to shard over (default 2)", NULL},
	[P_QUERY] = {"query", NULL, K_TEXT, "One SELECT of SQLite", NULL},
	[P_ROWS] = {"rows", NULL, K_NUMBER, "Rows at most (default 200)", NULL},
};

#define TABLES                                                                                   \
	"Tables (process and device number the traces and GPUs): process, device(total, "        \
	"allocated, peak_allocated, peak_event, ...), block(device, site, address, bytes, "      \
	"from_event, to_event, from_seconds, to_seconds, in_use, category, line), site(site, "   \
	"device, stack, level, call, owner, line, peak_bytes, live_bytes, ever_bytes), "         \
	"holder(moment peak|oom|end, device, category, bytes, blocks, line), stack, frame, "     \
	"usage(device, seconds, allocated, reserved), step, range, refused. Views: peak_by_line" \
	", end_by_line, peak_by_category, never_freed, traffic_by_line, stack_text. A block is " \
	"alive after event E if from_event <= E and to_event is NULL or greater. PRAGMA "        \
	"table_info(T) shows the columns of T."

static const struct tool {
	const char *name, *text;
	enum parameter takes[12]; /* those that are needed first */
	int needed;
} tools[] = {
	{"traces", "The traces of this server's folder: names for the other tools.", {P_END}, 0},
	{"summary",
	 "The answer in one screen: totals, peaks, how the process ended, warnings. Begin here.",
	 {P_TRACE, P_DEVICE, P_RANK, P_LEVEL, P_BY},
	 1},
	{"oom",
	 "Why a request for GPU memory failed: what was asked, what was free, who held the rest, "
	 "the cause, and what would have been enough.",
	 {P_TRACE, P_NTH, P_REMEDIES, P_DEVICE, P_RANK, P_BY},
	 1},
	{"peak",
	 "Who held GPU memory when most of it was in use, by line of the user's code; with from, "
	 "to or range that of a part of the run.",
	 {P_TRACE, P_BY, P_FROM, P_TO, P_RANGE, P_LEVEL, P_DEVICE, P_RANK},
	 1},
	{"growth",
	 "What stays after each training step, by line: slope, and how much by now. Finds leaks.",
	 {P_TRACE, P_DEVICE, P_RANK},
	 1},
	{"steps",
	 "A row per training step: its peak, held, what is left at its end, allocations, time.",
	 {P_TRACE, P_LEVEL, P_DEVICE, P_RANK},
	 1},
	{"ledger",
	 "Rows that add up to the whole device: torch, other libraries, contexts, other "
	 "processes, free, unexplained.",
	 {P_TRACE, P_AT, P_DEVICE, P_RANK},
	 1},
	{"diff",
	 "What changed between two runs, or within one (from, to), by line; rows add up to the "
	 "difference.",
	 {P_A, P_B, P_FROM, P_TO, P_AT, P_BY, P_LEVEL, P_DEVICE, P_RANK},
	 1},
	{"plan",
	 "The largest batch that fits, from runs with different batch sizes or from the number "
	 "of parameters, and what each technique would change.",
	 {P_TRACES, P_BATCH, P_GPU, P_RESERVE, P_TARGET, P_PARAMS, P_SAMPLE, P_LAYERS, P_LORA,
	  P_GPUS},
	 0},
	{"sql",
	 "A question in SQL to a trace as a database of SQLite, read-only. " TABLES,
	 {P_TRACE, P_QUERY, P_ROWS},
	 2},
};

#define TOOLS (sizeof(tools) / sizeof(tools[0]))

static const struct tool *find_tool(const char *name)
{
	for (size_t i = 0; i < TOOLS; i++)
		if (!strcmp(tools[i].name, name))
			return &tools[i];
	return NULL;
}

/* ---- tools/list ------------------------------------------------------------------------------ */

static json_t *choices_of(const char *choices)
{
	char *copy = gt_xstrdup(choices), *rest = copy, *word;
	json_t *result = json_array();

	while ((word = strsep(&rest, "|")))
		json_array_append_new(result, json_string(word));
	free(copy);
	return result;
}

static json_t *schema_of(enum parameter which)
{
	static const char *const types[] = {
		[K_FILE] = "string",	[K_FILES] = "array",	[K_TEXT] = "string",
		[K_NUMBER] = "integer", [K_SWITCH] = "boolean",
	};
	enum kind kind = parameters[which].kind;
	json_t *schema =
		json_pack("{s:s, s:s}", "type", types[kind], "description", parameters[which].text);

	if (parameters[which].choices)
		json_object_set_new(schema, "enum", choices_of(parameters[which].choices));
	if (kind == K_FILES)
		json_object_set_new(schema, "items", json_pack("{s:s}", "type", "string"));
	if (kind == K_FILES)
		json_object_set_new(schema, "maxItems", json_integer(GT_PLAN_LIST));
	if (kind == K_NUMBER)
		json_object_set_new(schema, "minimum", json_integer(which == P_ROWS));
	if (which == P_ROWS)
		json_object_set_new(schema, "maximum", json_integer(LIMIT_ROWS));
	return schema;
}

/* additionalProperties is false so that a client finds a misspelt argument before we do. */
static json_t *describe(const struct tool *tool)
{
	json_t *properties = json_object(), *required = json_array();

	for (int i = 0; tool->takes[i]; i++) {
		const char *name = parameters[tool->takes[i]].name;

		json_object_set_new(properties, name, schema_of(tool->takes[i]));
		if (i < tool->needed)
			json_array_append_new(required, json_string(name));
	}
	return json_pack("{s:s, s:s, s:{s:s, s:o, s:o, s:b}, s:{s:b, s:b}}", "name", tool->name,
			 "description", tool->text, "inputSchema", "type", "object", "properties",
			 properties, "required", required, "additionalProperties", 0, "annotations",
			 "readOnlyHint", 1, "openWorldHint", 0);
}

json_t *gt_mcp_tools(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < TOOLS; i++)
		json_array_append_new(list, describe(&tools[i]));
	return json_pack("{s:o}", "tools", list);
}

/* ---- arguments to a command line ---------------------------------------------------------------- */

struct line { /* of a command; words are the line's own */
	char **words;
	size_t count;
	char **files; /* behind the options */
	size_t file_count;
	const char *query;
	size_t rows;
	char *why; /* it cannot be: NULL = it can */
};

static void clear(struct line *line)
{
	for (size_t i = 0; i < line->count; i++)
		free(line->words[i]);
	for (size_t i = 0; i < line->file_count; i++)
		free(line->files[i]);
	free(line->words);
	free(line->files);
	free(line->why);
}

static void refuse(struct line *line, char *why)
{
	if (line->why)
		free(why);
	else
		line->why = why;
}

static void add(struct line *line, char *word)
{
	*GT_PUSH(line->words, line->count) = word;
}

static int look(const struct gt_mcp *mcp, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, mcp->directory, path, &how, sizeof(how));
}

static void add_file(const struct gt_mcp *mcp, struct line *line, const json_t *value)
{
	const char *path = json_string_value(value);
	int fd = path && *path ? look(mcp, path) : -1;

	if (!path)
		refuse(line, gt_xstrdup("a file is named by a string"));
	else if (fd < 0 && errno == EXDEV)
		refuse(line, gt_xasprintf("%s: outside the folder that is served: names are "
					  "relative to it, without links that lead out",
					  path));
	else if (fd < 0)
		refuse(line, gt_xasprintf("%s: %s: the tool traces lists what there is", path,
					  *path ? strerror(errno) : "no name"));
	else
		*GT_PUSH(line->files, line->file_count) = gt_xstrdup(path);
	if (fd >= 0)
		close(fd);
}

static void add_files(const struct gt_mcp *mcp, struct line *line, const json_t *value)
{
	if (json_array_size(value) > GT_PLAN_LIST)
		refuse(line, gt_xasprintf("traces: %d at most", GT_PLAN_LIST));
	for (size_t i = 0; !line->why && i < json_array_size(value); i++)
		add_file(mcp, line, json_array_get(value, i));
}

static void add_text(struct line *line, enum parameter which, const char *text)
{
	const char *option = parameters[which].option;

	if (which == P_QUERY) {
		line->query = text;
		return;
	}
	if (strlen(text) > LIMIT_ARGUMENT) {
		refuse(line, gt_xasprintf("%s: too long", parameters[which].name));
		return;
	}
	add(line, gt_xasprintf("--%s=%s", option ? option : parameters[which].name, text));
}

static void add_number(struct line *line, enum parameter which, json_int_t number)
{
	const char *option = parameters[which].option;

	if (which != P_ROWS) {
		add(line, gt_xasprintf("--%s=%lld", option ? option : parameters[which].name,
				       (long long)number));
		return;
	}
	if (number < 1 || number > LIMIT_ROWS)
		refuse(line, gt_xasprintf("rows: 1 to %d", LIMIT_ROWS));
	line->rows = (size_t)number;
}

static bool has_type(const json_t *value, enum kind kind)
{
	switch (kind) {
	case K_NUMBER:
		return json_is_integer(value);
	case K_SWITCH:
		return json_is_boolean(value);
	case K_FILES:
		return json_is_array(value);
	default:
		return json_is_string(value);
	}
}

static void take(const struct gt_mcp *mcp, struct line *line, enum parameter which,
		 const json_t *value)
{
	static const char *const types[] = {
		[K_FILE] = "a string",	      [K_FILES] = "a list of strings",
		[K_TEXT] = "a string",	      [K_NUMBER] = "a whole number",
		[K_SWITCH] = "true or false",
	};
	enum kind kind = parameters[which].kind;

	if (!has_type(value, kind))
		refuse(line, gt_xasprintf("%s has to be %s", parameters[which].name, types[kind]));
	else if (kind == K_FILE)
		add_file(mcp, line, value);
	else if (kind == K_FILES)
		add_files(mcp, line, value);
	else if (kind == K_TEXT)
		add_text(line, which, json_string_value(value));
	else if (kind == K_NUMBER)
		add_number(line, which, json_integer_value(value));
	else if (json_is_true(value))
		add(line, gt_xasprintf("--%s", parameters[which].name));
}

static bool takes(const struct tool *tool, const char *name)
{
	for (int i = 0; tool->takes[i]; i++)
		if (!strcmp(parameters[tool->takes[i]].name, name))
			return true;
	return false;
}

/* In the order of the table, so that a stands before b. */
static struct line line_of(const struct gt_mcp *mcp, const struct tool *tool,
			   const json_t *arguments)
{
	struct line line = {.rows = 200};
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)arguments, name, value)
		if (!takes(tool, name))
			refuse(&line, gt_xasprintf("%s takes no \"%s\"", tool->name, name));
	add(&line, gt_xstrdup(tool->name));
	add(&line, gt_xstrdup("--format=json"));
	for (int i = 0; !line.why && tool->takes[i]; i++) {
		name = parameters[tool->takes[i]].name;
		value = json_object_get(arguments, name);
		if (value && !json_is_null(value))
			take(mcp, &line, tool->takes[i], value);
		else if (i < tool->needed)
			refuse(&line, gt_xasprintf("%s needs \"%s\"", tool->name, name));
	}
	add(&line, gt_xstrdup("--"));
	for (size_t i = 0; i < line.file_count; i++)
		add(&line, gt_xstrdup(line.files[i]));
	return line;
}

/* ---- results --------------------------------------------------------------------------------- */

static json_t *result_of(const char *text, bool bad)
{
	json_t *content =
		json_pack("{s:s, s:o}", "type", "text", "text", gt_json_text(text, strlen(text)));

	return json_pack("{s:[o], s:b}", "content", content, "isError", bad);
}

static json_t *error_of(const struct tool *tool, const struct gt_ran *ran)
{
	char *text;
	json_t *result;

	if (ran->bad)
		text = gt_xasprintf("%s: %s%s%s", tool->name, ran->bad, *ran->said ? "\n" : "",
				    ran->said);
	else
		text = gt_xstrdup(*ran->said ? ran->said : "no answer");
	result = result_of(text, true);
	free(text);
	return result;
}

/* What a command says beside its answer belongs to it. */
static json_t *answer_of(const struct tool *tool, const struct gt_ran *ran)
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

/* ---- running a command ------------------------------------------------------------------------ */

/* A job: the command line of a struct line, as if it had been typed. */
static int run_line(void *ctx)
{
	const struct line *line = ctx;

	return gt_run_line((int)line->count, line->words);
}

static json_t *run_tool(const struct gt_mcp *mcp, const struct tool *tool, struct line *line)
{
	struct gt_ran ran;
	json_t *result;

	gt_mcp_run(mcp, run_line, line, &ran);
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

static void export_to(const struct gt_mcp *mcp, const char *path, const char *trace,
		      struct gt_ran *ran)
{
	struct line line = {0};

	add(&line, gt_xstrdup("export"));
	add(&line, gt_xstrdup("--format=sqlite"));
	add(&line, gt_xasprintf("--output=%s", path));
	add(&line, gt_xstrdup("--"));
	add(&line, gt_xstrdup(trace));
	gt_mcp_run(mcp, run_line, &line, ran);
	clear(&line);
}

/* The trace as a database: one that was made before, as long as the trace has not changed. */
static const char *database_of(struct gt_mcp *mcp, const char *trace, struct gt_ran *ran)
{
	int fd = look(mcp, trace), bad = fd < 0;
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

static json_t *run_sql(struct gt_mcp *mcp, const struct tool *tool, const struct line *line)
{
	struct gt_mcp_question question = {.sql = line->query, .rows = line->rows};
	struct gt_ran ran;
	json_t *result;

	question.database = database_of(mcp, line->files[0], &ran);
	if (question.database) {
		gt_ran_clear(&ran);
		gt_mcp_run(mcp, gt_mcp_ask, &question, &ran);
		result = answer_of(tool, &ran);
	} else {
		result = error_of(tool, &ran);
	}
	gt_ran_clear(&ran);
	return result;
}

/* ---- a call ---------------------------------------------------------------------------------- */

json_t *gt_mcp_call(struct gt_mcp *mcp, const char *name, const json_t *arguments)
{
	const struct tool *tool = find_tool(name);
	struct line line;
	struct gt_ran ran;
	json_t *result;

	if (!tool)
		return NULL;
	line = line_of(mcp, tool, arguments);
	if (line.why) {
		result = result_of(line.why, true);
	} else if (!strcmp(name, "sql")) {
		result = run_sql(mcp, tool, &line);
	} else if (!strcmp(name, "traces")) {
		gt_mcp_run(mcp, list_traces, NULL, &ran);
		result = answer_of(tool, &ran);
		gt_ran_clear(&ran);
	} else {
		result = run_tool(mcp, tool, &line);
	}
	clear(&line);
	return result;
}
