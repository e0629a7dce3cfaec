/* SPDX-License-Identifier: MIT */
/*
 * What a command is: a row of the table in main.c, from which usage, help and the parser follow. A
 * command parses nothing itself; it gets its options, asks the model, prints, and returns the exit
 * status.
 */
#ifndef GT_CMD_H
#define GT_CMD_H

#include <limits.h>
#include "model/label.h"
#include "model/state.h"
#include "out/out.h"

enum gt_exit {
	GT_EXIT_FINE = 0,
	GT_EXIT_CHECK = 1, /* a check that was asked for failed */
	GT_EXIT_USAGE = 2,
	GT_EXIT_UNREADABLE = 3,
};

/* Options, one bit each; a command names those it takes. */
enum {
	GT_OPT_FORMAT = 1 << 0,
	GT_OPT_DEVICE = 1 << 1,
	GT_OPT_LEVEL = 1 << 2,
	GT_OPT_ALL = 1 << 3,
	GT_OPT_OUTPUT = 1 << 4,
	GT_OPT_PARTIAL = 1 << 5,
	GT_OPT_BY = 1 << 6,
	GT_OPT_AT = 1 << 7,
	GT_OPT_FAIL = 1 << 8,
	GT_OPT_POINTS = 1 << 9,
	GT_OPT_DIR = 1 << 10,
	GT_OPT_RING = 1 << 11,
	GT_OPT_STACKS = 1 << 12,
	GT_OPT_FROM = 1 << 13,
	GT_OPT_TO = 1 << 14,
	GT_OPT_BUDGET = 1 << 15,
	GT_OPT_WHY = 1 << 16,
	GT_OPT_RANGE = 1 << 17,
	GT_OPT_FRAMES = 1 << 18,
	GT_OPT_PACK = 1 << 19,
	GT_OPT_TREE = 1 << 20,
	GT_OPT_FOR = 1 << 21,
	GT_OPT_PLAN = 1 << 22,
	GT_OPT_PAGE = 1 << 23,
	GT_OPT_REMEDIES = 1 << 24,
	GT_OPT_NTH = 1 << 25,
	GT_OPT_RANK = 1 << 26,
	GT_OPT_TORCH = 1 << 27,
	GT_OPT_EXPORT = 1 << 28,
	GT_OPT_WATCH = 1 << 29,
	GT_OPT_LIVE = 1 << 30,
	GT_OPT_DUMP = 1u << 31,
};

/* Those of every command that prints a table. */
#define GT_OPT_TABLE \
	(GT_OPT_FORMAT | GT_OPT_DEVICE | GT_OPT_ALL | GT_OPT_OUTPUT | GT_OPT_PARTIAL | GT_OPT_RANK)

/* A part of the run. */
#define GT_OPT_PART (GT_OPT_FROM | GT_OPT_TO | GT_OPT_RANGE)

#define GT_ANY_DEVICE INT_MIN

#define GT_TOOL_VERSION "0.1"

#define GT_PLAN_LIST 16

struct gt_plan_args { /* 0 = not given */
	uint64_t gpu, reserve;
	unsigned long target, layers, rank, gpus;
	double params;
	double batches[GT_PLAN_LIST]; /* by trace */
	double samples[GT_PLAN_LIST]; /* bytes */
	size_t batch_count, sample_count;
	bool reserve_set;
};

struct gt_args {
	const struct gt_command *command;
	enum gt_format format;
	int device;	     /* ordinal or GT_ANY_DEVICE */
	enum gt_total total; /* --level: torch, driver; default: in use */
	bool all, partial;
	const char *output; /* NULL = standard output */
	enum gt_by by;
	bool by_set, at_set;
	struct gt_when at;
	bool fail_set, fail_percent;
	double fail_limit;		 /* percent or bytes */
	unsigned long points;		 /* 0 = not given */
	const char *from, *to, *range;	 /* NULL = not given */
	uint64_t budget;		 /* bytes; 0 = not given */
	uint64_t wanted;		 /* --for: bytes; 0 = not given */
	const char *why;		 /* address, or line of a row; NULL = not given */
	const char *dir, *ring, *stacks; /* run: passed on */
	const char *exported;		 /* export: the format's name; NULL = not given */
	const char *watch;		 /* metrics: a directory; NULL = not given */
	unsigned int sort;		 /* live: enum gt_live_sort */
	uint64_t every_us;		 /* 0 = not given */
	enum gt_frames frames;		 /* which half of a stack */
	bool full;			 /* frames of libraries too */
	bool tree, pack, remedies, torch, once;
	unsigned long nth; /* line of errors; 0 = not given */
	long rank;	   /* -1 = all */
	struct gt_plan_args plan;
	bool strip, diff;	 /* html */
	bool defs, lanes, check; /* dump */
	char **operands;
	size_t operand_count;
};

struct gt_command {
	const char *name;
	int (*run)(struct gt_args *args);
	unsigned int options;
	const char *operands; /* in usage */
	size_t min_operands, max_operands;
	const char *summary;  /* one line, in the list */
	const char *text;     /* paragraph in its --help */
	const char *examples; /* lines, without "gputrace " */
	bool rare;	      /* in the list by its name alone */
	bool picture;	      /* -o may name one: chart.h */
	bool program;	      /* operands are a command line: options end at the first */
};

int gt_cmd_run(struct gt_args *args);
int gt_cmd_summary(struct gt_args *args);
int gt_cmd_at(struct gt_args *args);
int gt_cmd_peak(struct gt_args *args);
int gt_cmd_segments(struct gt_args *args);
int gt_cmd_errors(struct gt_args *args);
int gt_cmd_ledger(struct gt_args *args);
int gt_cmd_steps(struct gt_args *args);
int gt_cmd_growth(struct gt_args *args);
int gt_cmd_oom(struct gt_args *args);
int gt_cmd_html(struct gt_args *args);
int gt_cmd_merge(struct gt_args *args);
int gt_cmd_pack(struct gt_args *args);
int gt_cmd_timeline(struct gt_args *args);
int gt_cmd_diff(struct gt_args *args);
int gt_cmd_compare(struct gt_args *args);
int gt_cmd_plan(struct gt_args *args);
int gt_cmd_snapshot(struct gt_args *args);
int gt_cmd_export(struct gt_args *args);
int gt_cmd_metrics(struct gt_args *args);
int gt_cmd_mcp(struct gt_args *args);
int gt_cmd_live(struct gt_args *args);
int gt_cmd_doctor(struct gt_args *args);
int gt_cmd_dump(struct gt_args *args);

/* Options and operands behind the command's name. -1: go on; else the exit status. */
int gt_parse_args(const struct gt_command *command, int argc, char **argv, struct gt_args *ret);

/* "peak", "oom", "end", "2.75s", else a name; it is not copied. 0, or -1 for "". */
int gt_parse_when(const char *text, struct gt_when *ret);

/* main.c: a command line as if it had been typed, behind "gputrace". Returns the exit status. */
int gt_run_line(int argc, char **argv);

/* answer.c: one line on standard error behind "gputrace: "; returns status. */
int gt_message(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of what a library function said. In the header, for analysers to see that it is never 0. */
static inline int gt_message_error(const struct gt_error *err)
{
	int status = err->status ? err->status : GT_EXIT_UNREADABLE;

	gt_message(status, "%s", err->text);
	return status;
}

/* Open, and close with a check, the destination that the options name. 0, or the exit status. */
int gt_args_out(const struct gt_args *args, struct gt_out *ret);
int gt_args_done(const struct gt_args *args, struct gt_out *out, int status);

#endif
