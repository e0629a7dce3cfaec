/* SPDX-License-Identifier: MIT */
/*
 * The options of all commands: one row each, for the parser and the help. Called from main.c with
 * the command that was named.
 */
#define _GNU_SOURCE
#include "cmd/cmd.h"

#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "export/export.h"
#include "live/live.h"
#include "model/answers.h"
#include "out/number.h"
#include "symbols/library.h"

struct option_row {
	unsigned int bit;
	char letter; /* 0 = none */
	const char *name;
	const char *value; /* NULL = a switch */
	const char *help;
	/* One of the two; 0, or -1 when the value is none. */
	int (*parse)(struct gt_args *args, const char *value);
	int (*set)(void *field, const char *value);
	size_t field; /* of set, in struct gt_args */
};

/* ---- values that are one field --------------------------------------------------------------- */

static int set_switch(void *field, const char *value)
{
	(void)value;
	*(bool *)field = true;
	return 0;
}

static int set_text(void *field, const char *value)
{
	*(const char **)field = value;
	return 0;
}

static int set_name(void *field, const char *value)
{
	*(const char **)field = value;
	return *value ? 0 : -1;
}

static int set_size(void *field, const char *value)
{
	return gt_parse_size(value, field);
}

static int set_some(void *field, const char *value)
{
	return gt_parse_size(value, field) || !*(uint64_t *)field ? -1 : 0;
}

static int set_time(void *field, const char *value)
{
	return gt_parse_time(value, field) || !*(uint64_t *)field ? -1 : 0;
}

static int set_count(void *field, const char *value)
{
	long number;

	if (gt_parse_number(value, 1, 1000000000, &number))
		return -1;
	*(unsigned long *)field = (unsigned long)number;
	return 0;
}

/* Comparing the pointers makes the compiler refuse a member of another type. */
#define SETS(how, type, member)                                 \
	.set = how, .field = offsetof(struct gt_args, member) + \
			     0 * sizeof((type *)NULL == &((struct gt_args *)NULL)->member)

#define SWITCH(member) SETS(set_switch, bool, member)
#define TEXT(member)   SETS(set_text, const char *, member)
#define NAME(member)   SETS(set_name, const char *, member) /* not empty */
#define SIZE(member)   SETS(set_size, uint64_t, member)
#define SOME(member)   SETS(set_some, uint64_t, member) /* a size, not 0 */
#define TIME(member)   SETS(set_time, uint64_t, member)
#define COUNT(member)  SETS(set_count, unsigned long, member)

/* ---- other values ---------------------------------------------------------------------------- */

static int find_name(const char *const *names, size_t count, const char *value)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], value) == 0)
			return (int)i;
	return -1;
}

static int parse_format(struct gt_args *args, const char *value)
{
	static const char *const names[] = {"text", "json", "csv", "md"};
	int found = find_name(names, 4, value);

	args->format = found < 0 ? GT_FORMAT_TEXT : (enum gt_format)found;
	return found < 0 ? -1 : 0;
}

static int parse_device(struct gt_args *args, const char *value)
{
	long device;

	if (gt_parse_number(value, 0, 63, &device))
		return -1;
	args->device = (int)device;
	return 0;
}

static int parse_level(struct gt_args *args, const char *value)
{
	if (strcmp(value, "torch") == 0)
		args->total = GT_TOTAL_TORCH;
	else if (strcmp(value, "driver") == 0)
		args->total = GT_TOTAL_RESERVED;
	else
		return -1;
	return 0;
}

static int parse_mine(struct gt_args *args, const char *value)
{
	(void)args;
	gt_library_mine(value);
	return *value ? 0 : -1;
}

static int parse_by(struct gt_args *args, const char *value)
{
	for (enum gt_by by = GT_BY_LINE; by < GT_BYS; by++)
		if (strcmp(gt_by_name(by), value) == 0) {
			args->by = by;
			args->by_set = true;
			return 0;
		}
	return -1;
}

/* "3", "3:forward", "3:backward": the end of a step, or of a part of it. */
static int parse_step(const char *text, struct gt_when *ret)
{
	static const char *const names[] = {"forward", "backward"};
	static const enum gt_phase phases[] = {GT_PHASE_FORWARD, GT_PHASE_BACKWARD};
	char *end;
	unsigned long step = strtoul(text, &end, 10);
	int phase;

	ret->kind = GT_WHEN_STEP;
	ret->step = (unsigned int)step;
	ret->phase = GT_PHASE_NONE;
	if (end == text || *text == '-' || !step || step > UINT_MAX)
		return -1;
	if (!*end)
		return 0;
	phase = *end == ':' ? find_name(names, 2, end + 1) : -1;
	ret->phase = phase < 0 ? GT_PHASE_NONE : phases[phase];
	return phase < 0 ? -1 : 0;
}

int gt_parse_when(const char *text, struct gt_when *ret)
{
	static const char *const names[] = {"peak", "oom", "end"};
	static const enum gt_when_kind kinds[] = {GT_WHEN_PEAK, GT_WHEN_OOM, GT_WHEN_END};
	int found = find_name(names, 3, text);

	*ret = (struct gt_when){.name = text};
	if (strncmp(text, "step:", 5) == 0)
		return parse_step(text + 5, ret);
	ret->kind = found < 0 ? GT_WHEN_TIME : kinds[found];
	if (found < 0 && gt_parse_time(text, &ret->us))
		ret->kind = GT_WHEN_NAME;
	return *text ? 0 : -1;
}

static int parse_at(struct gt_args *args, const char *value)
{
	args->at_set = true;
	return gt_parse_when(value, &args->at);
}

static int parse_fail(struct gt_args *args, const char *value)
{
	size_t length = strlen(value);
	uint64_t size;
	char *end;

	args->fail_set = true;
	args->fail_percent = length && value[length - 1] == '%';
	if (!args->fail_percent) {
		if (gt_parse_size(value, &size))
			return -1;
		args->fail_limit = (double)size;
		return 0;
	}
	args->fail_limit = strtod(value, &end);
	return end == value + length - 1 && args->fail_limit >= 0 ? 0 : -1;
}

static int parse_points(struct gt_args *args, const char *value)
{
	long points;

	if (gt_parse_number(value, 1, 10000000, &points))
		return -1;
	args->points = (unsigned long)points;
	return 0;
}

static int parse_ring(struct gt_args *args, const char *value)
{
	uint64_t size;

	args->ring = value;
	return gt_parse_size(value, &size);
}

static int parse_stacks(struct gt_args *args, const char *value)
{
	static const char *const names[] = {"both", "native", "python", "none"};

	args->stacks = value;
	return find_name(names, 4, value) < 0 ? -1 : 0;
}

static int parse_frames(struct gt_args *args, const char *value)
{
	static const char *const names[] = {"merged", "native", "python"};
	int found = find_name(names, 3, value);

	args->frames = found < 0 ? GT_FRAMES_MERGED : (enum gt_frames)found;
	return found < 0 ? -1 : 0;
}

static int parse_nth(struct gt_args *args, const char *value)
{
	long nth;

	if (gt_parse_number(value, 1, 1000000, &nth))
		return -1;
	args->nth = (unsigned long)nth;
	return 0;
}

static int parse_only_rank(struct gt_args *args, const char *value)
{
	return gt_parse_number(value, 0, 10000000, &args->rank);
}

static int parse_full(struct gt_args *args, const char *value)
{
	(void)value;
	args->full = true;
	args->tree = true;
	return 0;
}

static int parse_sort(struct gt_args *args, const char *value)
{
	static const char *const names[GT_LIVE_SORTS] = {
		[GT_LIVE_BY_BYTES] = "bytes",
		[GT_LIVE_BY_GROWTH] = "growth",
		[GT_LIVE_BY_COUNT] = "blocks",
		[GT_LIVE_BY_RATE] = "allocs",
	};
	int found = find_name(names, GT_LIVE_SORTS, value);

	args->sort = found < 0 ? 0 : (unsigned int)found;
	return found < 0 ? -1 : 0;
}

/* ---- of plan ---- */

static int parse_reserve(struct gt_args *args, const char *value)
{
	args->plan.reserve_set = true;
	return gt_parse_size(value, &args->plan.reserve);
}

/* "350M": powers of 1000, as models are named. */
static int parse_params(struct gt_args *args, const char *value)
{
	static const char letters[] = "KMBT";
	char *end;
	double number = strtod(value, &end);
	const char *letter = *end ? strchr(letters, *end == 'G' ? 'B' : *end & ~0x20) : NULL;

	for (const char *at = letters; letter && at <= letter; at++)
		number *= 1000;
	args->plan.params = number;
	return end == value || (*end && (!letter || end[1])) || !(number >= 1 && number < 1e16) ? -1
												: 0;
}

/* Values with commas between them, each taken by take. */
static int parse_list(const char *value, double *list, size_t *ret_count,
		      int (*take)(const char *text, double *ret))
{
	char *copy = strdup(value), *rest = copy, *word;
	size_t count = 0;
	int status = copy ? 0 : -1;

	while (!status && (word = strsep(&rest, ",")))
		status = count == GT_PLAN_LIST ? -1 : take(word, &list[count++]);
	free(copy);
	*ret_count = status ? 0 : count;
	return status;
}

static int take_batch(const char *text, double *ret)
{
	unsigned long number;

	if (set_count(&number, text))
		return -1;
	*ret = (double)number;
	return 0;
}

static int take_size(const char *text, double *ret)
{
	uint64_t size;

	if (gt_parse_size(text, &size) || !size)
		return -1;
	*ret = (double)size;
	return 0;
}

static int parse_batch(struct gt_args *args, const char *value)
{
	return parse_list(value, args->plan.batches, &args->plan.batch_count, take_batch);
}

static int parse_sample(struct gt_args *args, const char *value)
{
	return parse_list(value, args->plan.samples, &args->plan.sample_count, take_size);
}

static int parse_debuginfod(struct gt_args *args, const char *value)
{
	(void)args;
	(void)value;
	gt_symbols_use_servers();
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct option_row options[] = {
	{GT_OPT_BY, 0, "by", "KEY",
	 "line|function|inside|stack|site|owner|stream|level|category|step|phase",
	 .parse = parse_by},
	{GT_OPT_AT, 0, "at", "WHEN", "peak, oom, end, a time like 2.75s or a mark",
	 .parse = parse_at},
	{GT_OPT_FAIL, 0, "fail-if-peak-grows", "N%|SIZE", "exit 1 if B's peak is higher by more",
	 .parse = parse_fail},
	{GT_OPT_POINTS, 0, "points", "N", "slices of time in the table (default 1000)",
	 .parse = parse_points},
	{GT_OPT_FROM, 0, "from", "WHEN", "begin there: a time, a mark, a range or step:N",
	 NAME(from)},
	{GT_OPT_TO, 0, "to", "WHEN", "end there (of a range or step: its end)", NAME(to)},
	{GT_OPT_RANGE, 0, "range", "NAME", "only in ranges of this name; * and ? match any, step",
	 NAME(range)},
	{GT_OPT_BUDGET, 0, "budget", "SIZE", "largest file to write", SIZE(budget)},
	{GT_OPT_DIR, 0, "dir", "DIR", "where the traces go, made if need be (default: here)",
	 TEXT(dir)},
	{GT_OPT_RING, 0, "ring", "SIZE", "history kept per process (default 256M)",
	 .parse = parse_ring},
	{GT_OPT_STACKS, 0, "stacks", "KIND", "both (default), native, python or none",
	 .parse = parse_stacks},
	{GT_OPT_FOR, 0, "for", "SIZE", "is there room for a request of SIZE", SOME(wanted)},
	{GT_OPT_WHY, 0, "why", "ADDRESS|LINE", "the rule and the evidence of a block's category",
	 TEXT(why)},
	{GT_OPT_PLAN, 0, "gpu", "SIZE", "memory of the card (default: that of the trace)",
	 SOME(plan.gpu)},
	{GT_OPT_PLAN, 0, "target", "N", "batch to make up of micro-batches", COUNT(plan.target)},
	{GT_OPT_PLAN, 0, "reserve", "SIZE", "left free for all else (default 1G)",
	 .parse = parse_reserve},
	{GT_OPT_PLAN, 0, "batch", "N[,M...]", "batch sizes of the traces, in their order",
	 .parse = parse_batch},
	{GT_OPT_PLAN, 0, "params", "N", "parameters of the model: 350M, 7B", .parse = parse_params},
	{GT_OPT_PLAN, 0, "sample", "SIZE[,SIZE...]", "bytes per sample, with --params",
	 .parse = parse_sample},
	{GT_OPT_PLAN, 0, "layers", "N", "equal layers: for checkpointing, LoRA, sharding",
	 COUNT(plan.layers)},
	{GT_OPT_PLAN, 0, "rank", "R", "rank of LoRA's adapters", COUNT(plan.rank)},
	{GT_OPT_PLAN, 0, "gpus", "N", "cards to shard over (default 2)", COUNT(plan.gpus)},
	{GT_OPT_REMEDIES, 0, "remedies", NULL, "every remedy tried, with its formula",
	 SWITCH(remedies)},
	{GT_OPT_NTH, 0, "nth", "N", "explain line N of \"gputrace errors\" instead",
	 .parse = parse_nth},
	{GT_OPT_PACK, 0, "pack", NULL, "put names and sources into the traces at the end",
	 SWITCH(pack)},
	{GT_OPT_PAGE, 0, "diff", NULL, "compare two traces on one page: A B", SWITCH(diff)},
	{GT_OPT_PAGE, 0, "strip-paths", NULL, "no folders: for files that are mailed around",
	 SWITCH(strip)},
	{GT_OPT_TORCH, 0, "torch", NULL, "the table of torch.cuda.memory_summary()", SWITCH(torch)},
	{GT_OPT_TREE, 0, "tree", NULL, "the calls that lead to the memory, outermost first",
	 SWITCH(tree)},
	{GT_OPT_FRAMES, 0, "frames", "KIND", "merged (default), native or python",
	 .parse = parse_frames},
	{GT_OPT_FRAMES, 0, "full", NULL, "show the frames of libraries too", .parse = parse_full},
	{GT_OPT_OUTPUT, 0, "debuginfod", NULL, "ask $DEBUGINFOD_URLS for debug information",
	 .parse = parse_debuginfod},
	{GT_OPT_LEVEL, 0, "level", "LEVEL",
	 "torch (its blocks) or driver (default: what is in use)", .parse = parse_level},
	{GT_OPT_DEVICE, 'd', "device", "N", "only this GPU, as the program numbers it",
	 .parse = parse_device},
	{GT_OPT_DEVICE, 0, "mine", "GLOB", "which Python files are yours (src/*, */lib/mine/*)",
	 .parse = parse_mine},
	{GT_OPT_RANK, 0, "rank", "N", "only the processes with RANK=N", .parse = parse_only_rank},
	{GT_OPT_WATCH, 0, "watch", "DIR", "go on, with the traces that come and go in DIR",
	 NAME(watch)},
	{GT_OPT_WATCH, 0, "every", "TIME", "pause between two looks (default 15s)", TIME(every_us)},
	{GT_OPT_LIVE, 0, "interval", "TIME", "between two looks (default 1s, at least 100ms)",
	 TIME(every_us)},
	{GT_OPT_LIVE, 0, "sort", "KEY", "bytes|growth|blocks|allocs", .parse = parse_sort},
	{GT_OPT_LIVE, 0, "once", NULL, "print what two looks show (by growth: 16), and end",
	 SWITCH(once)},
	{GT_OPT_EXPORT, 'f', "format", "FORMAT", &gt_export_names[1], NAME(exported)},
	{GT_OPT_DUMP, 0, "defs", NULL, "what the numbers stand for: modules, frames, sites",
	 SWITCH(defs)},
	{GT_OPT_DUMP, 0, "lanes", NULL, "after the last event: counters, live blocks, sites",
	 SWITCH(lanes)},
	{GT_OPT_DUMP, 0, "check", NULL, "is the trace sound? exit 1 if it is not", SWITCH(check)},
	{GT_OPT_FORMAT, 'f', "format", "FORMAT", "text (default), json, csv or md",
	 .parse = parse_format},
	{GT_OPT_ALL, 'a', "all", NULL, "never cut the answer to the screen", SWITCH(all)},
	{GT_OPT_OUTPUT, 'o', "output", "FILE", "write there", TEXT(output)},
	{GT_OPT_PARTIAL, 0, "partial", NULL, "read what is whole of a cut file", SWITCH(partial)},
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

/* ---- help ------------------------------------------------------------------------------------ */

#define HELP_COLUMNS 54

/* In the columns behind the options' names; a list of values is broken behind a bar. */
__attribute__((nonnull)) static void print_help_text(const char *text)
{
	while (strlen(text) > HELP_COLUMNS) {
		const char *end = memrchr(text, '|', HELP_COLUMNS);

		if (!end)
			break;
		printf("%.*s\n%26s", (int)(end + 1 - text), text, "");
		text = end + 1;
	}
	puts(text);
}

static void print_option(const struct option_row *row)
{
	char letter[8] = "    ", left[64];

	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	snprintf(left, sizeof(left), "%s--%s%s%s", letter, row->name, row->value ? " " : "",
		 row->value ? row->value : "");
	printf(strlen(left) > 22 ? "  %s\n%26s" : "  %-22s  ", left, "");
	print_help_text(row->help);
}

static void print_help(const struct gt_command *command)
{
	printf("gputrace %s - %s\nUsage: gputrace %s%s%s%s\n%s\n", command->name, command->summary,
	       command->name, command->options ? " [OPTIONS]" : "", *command->operands ? " " : "",
	       command->operands, command->text);
	for (size_t i = 0; i < OPTIONS; i++)
		if (command->options & options[i].bit)
			print_option(&options[i]);
	printf("Examples:\n%s", command->examples);
}

/* ---- the parser ------------------------------------------------------------------------------ */

#define LONG_BASE 256 /* getopt values of options without a letter */

static void make_getopt(const struct gt_command *command, struct option *longs, char *shorts)
{
	size_t count = 0;

	*shorts++ = command->program ? '+' : '-';
	*shorts++ = ':';
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option_row *row = &options[i];

		if (!(command->options & row->bit))
			continue;
		longs[count++] = (struct option){
			.name = row->name,
			.has_arg = row->value ? required_argument : no_argument,
			.val = LONG_BASE + (int)i,
		};
		if (row->letter)
			*shorts++ = row->letter;
		if (row->letter && row->value)
			*shorts++ = ':';
	}
	longs[count++] = (struct option){.name = "help", .val = 'h'};
	longs[count] = (struct option){0};
	strcpy(shorts, "h");
}

static const struct option_row *row_of(const struct gt_command *command, int value)
{
	if (value >= LONG_BASE)
		return &options[value - LONG_BASE];
	for (size_t i = 0; i < OPTIONS; i++)
		if (options[i].letter == value && command->options & options[i].bit)
			return &options[i];
	return NULL;
}

static int bad_option(const struct gt_command *command, int value, char **argv)
{
	const char *given = argv[optind - 1];

	if (value == ':')
		return gt_message(GT_EXIT_USAGE, "%s: %s needs a value; see gputrace %s --help",
				  command->name, given, command->name);
	return gt_message(GT_EXIT_USAGE, "%s: no option %s; see gputrace %s --help", command->name,
			  given, command->name);
}

struct taken { /* the last value of an option that is a file's name */
	const struct option_row *row;
	const char *path;
};

static int take_option(const struct gt_command *command, int value, struct gt_args *args,
		       struct taken *taken)
{
	const struct option_row *row = row_of(command, value);

	if (row->value && !access(optarg, F_OK))
		*taken = (struct taken){row, optarg};
	if ((row->parse ? row->parse(args, optarg) : row->set((char *)args + row->field, optarg)) ==
	    0)
		return -1;
	return gt_message(GT_EXIT_USAGE, "%s: --%s %s: not understood; %s: %s", command->name,
			  row->name, optarg, row->value, row->help);
}

/* Where one operand is missing, the option before it may have taken it. */
static int check_operands(const struct gt_args *args, const struct taken *taken)
{
	const struct gt_command *command = args->command;

	if (args->operand_count >= command->min_operands &&
	    args->operand_count <= command->max_operands)
		return -1;
	if (args->operand_count < command->min_operands && taken->path)
		return gt_message(GT_EXIT_USAGE,
				  "%s: --%s took %s as its %s; usage: gputrace %s %s",
				  command->name, taken->row->name, taken->path, taken->row->value,
				  command->name, command->operands);
	return gt_message(GT_EXIT_USAGE, "%s: usage: gputrace %s %s", command->name, command->name,
			  command->operands);
}

/* Operands and options mix freely, except before a command line to run. */
static int parse(const struct gt_command *command, int argc, char **argv, struct gt_args *args)
{
	struct option longs[OPTIONS + 2];
	char shorts[3 + 2 * OPTIONS + 2];
	struct taken taken = {0};
	int value, status;

	make_getopt(command, longs, shorts);
	optind = 0;
	opterr = 0;
	while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (value == 1) {
			args->operands[args->operand_count++] = optarg;
			continue;
		}
		if (value == 'h') {
			print_help(command);
			return GT_EXIT_FINE;
		}
		status = value == ':' || value == '?' ? bad_option(command, value, argv)
						      : take_option(command, value, args, &taken);
		if (status >= 0)
			return status;
	}
	while (optind < argc)
		args->operands[args->operand_count++] = argv[optind++];
	return check_operands(args, &taken);
}

int gt_parse_args(const struct gt_command *command, int argc, char **argv, struct gt_args *ret)
{
	*ret = (struct gt_args){
		.command = command,
		.device = GT_ANY_DEVICE,
		.rank = -1,
		.total = GT_TOTAL_IN_USE,
		.operands = calloc((size_t)argc + 1, sizeof(char *)),
	};
	return parse(command, argc, argv, ret);
}
