/* SPDX-License-Identifier: MIT */
/*
 * The tools that gputrace mcp offers: one table, from which follow what tools/list says, what arguments
 * are taken, and the command line they become. Names of files are looked up below DIR before anything
 * runs, and the command opens them below DIR again (read/beneath.h). What an argument may be is left to
 * the command's own parser: here only its JSON type is checked. Called from mcp.c and mcp_call.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/mcp.h"
#include "model/xalloc.h"

#define LIMIT_ROWS     5000
#define LIMIT_ARGUMENT 4096u

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

/* ---- arguments to a command line ------------------------------------------------------------- */

void gt_mcp_line_clear(struct gt_mcp_line *line)
{
	for (size_t i = 0; i < line->count; i++)
		free(line->words[i]);
	for (size_t i = 0; i < line->file_count; i++)
		free(line->files[i]);
	free(line->words);
	free(line->files);
	free(line->why);
}

static void refuse(struct gt_mcp_line *line, char *why)
{
	if (line->why)
		free(why);
	else
		line->why = why;
}

static void add(struct gt_mcp_line *line, char *word)
{
	*GT_PUSH(line->words, line->count) = word;
}

int gt_mcp_look(const struct gt_mcp *mcp, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, mcp->directory, path, &how, sizeof(how));
}

static void add_file(const struct gt_mcp *mcp, struct gt_mcp_line *line, const json_t *value)
{
	const char *path = json_string_value(value);
	int fd = path && *path ? gt_mcp_look(mcp, path) : -1;

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

static void add_files(const struct gt_mcp *mcp, struct gt_mcp_line *line, const json_t *value)
{
	if (json_array_size(value) > GT_PLAN_LIST)
		refuse(line, gt_xasprintf("traces: %d at most", GT_PLAN_LIST));
	for (size_t i = 0; !line->why && i < json_array_size(value); i++)
		add_file(mcp, line, json_array_get(value, i));
}

static void add_text(struct gt_mcp_line *line, enum parameter which, const char *text)
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

static void add_number(struct gt_mcp_line *line, enum parameter which, json_int_t number)
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

static void take(const struct gt_mcp *mcp, struct gt_mcp_line *line, enum parameter which,
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
static void take_all(const struct gt_mcp *mcp, struct gt_mcp_line *line, const struct tool *tool,
		     const json_t *arguments)
{
	for (int i = 0; !line->why && tool->takes[i]; i++) {
		const char *name = parameters[tool->takes[i]].name;
		const json_t *value = json_object_get(arguments, name);

		if (value && !json_is_null(value))
			take(mcp, line, tool->takes[i], value);
		else if (i < tool->needed)
			refuse(line, gt_xasprintf("%s needs \"%s\"", tool->name, name));
	}
}

bool gt_mcp_line_of(const struct gt_mcp *mcp, const char *tool_name, const json_t *arguments,
		    struct gt_mcp_line *ret)
{
	const struct tool *tool = find_tool(tool_name);
	struct gt_mcp_line line = {.rows = 200};
	const char *name;
	json_t *value;

	if (!tool)
		return false;
	json_object_foreach((json_t *)arguments, name, value)
		if (!takes(tool, name))
			refuse(&line, gt_xasprintf("%s takes no \"%s\"", tool->name, name));
	add(&line, gt_xstrdup(tool->name));
	add(&line, gt_xstrdup("--format=json"));
	take_all(mcp, &line, tool, arguments);
	add(&line, gt_xstrdup("--"));
	for (size_t i = 0; i < line.file_count; i++)
		add(&line, gt_xstrdup(line.files[i]));
	*ret = line;
	return true;
}
