/* SPDX-License-Identifier: MIT */
/*
 * gputrace: the table of commands. Usage, help and option parsing follow from it; a word that is no
 * command is a trace to summarise.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "model/xalloc.h"

#define FILES "TRACE|DIR..."
#define ANY   SIZE_MAX

static const struct gt_command commands[] = {
	{
		.name = "run",
		.run = gt_cmd_run,
		.options = GT_OPT_DIR | GT_OPT_RING | GT_OPT_STACKS | GT_OPT_PACK,
		.operands = "-- PROGRAM [ARGUMENT...]",
		.min_operands = 1,
		.max_operands = ANY,
		.program = true,
		.summary = "record a program",
		.text = "Runs PROGRAM with the recorder preloaded. One trace per process that\n"
			"used CUDA; says on standard error how each went. Exit status: that\n"
			"of PROGRAM.",
		.examples = "  gputrace run -- python train.py\n"
			    "  gputrace run --dir traces --ring 1G -- ./solver input.dat\n",
	},
	{
		.name = "oom",
		.run = gt_cmd_oom,
		.options = GT_OPT_TABLE | GT_OPT_BY | GT_OPT_FRAMES | GT_OPT_REMEDIES | GT_OPT_NTH,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "why a request failed, and what would have been enough",
		.text = "Explains the refused request that ended the run: what was asked,\n"
			"what was free, who held the rest. Then every refused request and how\n"
			"it ended. DIR: the first process to fail. What would have been enough:\n"
			"tried on the trace's own blocks, or marked \"not checked\". Exit status\n"
			"0, also when nothing failed.",
		.examples = "  gputrace oom gputrace.python3.11.48377.gtrace\n"
			    "  gputrace oom --remedies --rank 3 traces/\n"
			    "  gputrace oom --format json traces/ | jq .verdict.cause\n",
	},
	{
		.name = "at",
		.run = gt_cmd_at,
		.options = GT_OPT_TABLE | GT_OPT_LEVEL | GT_OPT_BY | GT_OPT_WHY | GT_OPT_FRAMES |
			   GT_OPT_TREE,
		.operands = "WHEN " FILES,
		.min_operands = 2,
		.max_operands = ANY,
		.summary = "who holds memory: at peak, oom, end, step:N, a time, a mark",
		.text = "WHEN: peak (of what is in use, or of --level), oom, end (before exit\n"
			"handlers ran), step:N (its end; step:N:forward, step:N:backward: the\n"
			"end of that part), seconds since the start, like 2.75s, or a name that\n"
			"the program gave: a mark, or the peak in a range or window. NAME#2 is\n"
			"the second of that name.\n"
			"--why train.py:27 (or a block's address) says which rule chose the\n"
			"category of those blocks, and what it saw.",
		.examples = "  gputrace at peak run.gtrace\n"
			    "  gputrace at step:3:forward --by category run.gtrace\n"
			    "  gputrace at peak --why train.py:27 run.gtrace\n"
			    "  gputrace at 2.75s --by owner run.gtrace\n"
			    "  gputrace at end --level driver --format csv run.gtrace\n",
	},
	{
		.name = "growth",
		.run = gt_cmd_growth,
		.options = GT_OPT_TABLE,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "what stays after each step",
		.text = "Bytes that outlive the step after the one that made them, by line:\n"
			"slope per step, in how many steps, how much by now. Needs 10 steps.",
		.examples = "  gputrace growth gputrace.python3.11.48377.gtrace\n"
			    "  gputrace growth --format json run.gtrace | jq .sites[0].where\n",
	},
	{
		.name = "steps",
		.run = gt_cmd_steps,
		.picture = true,
		.options = GT_OPT_TABLE | GT_OPT_LEVEL,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "one row per training step",
		.text = "Steps come from the program's marks, or are inferred from its backward\n"
			"passes. Per step: the peak and its phase, held, the end, what was\n"
			"carried in from the step before, allocations, time.",
		.examples = "  gputrace steps run.gtrace\n"
			    "  gputrace steps --format csv run.gtrace > steps.csv\n",
	},
	{
		.name = "ledger",
		.run = gt_cmd_ledger,
		.options = GT_OPT_TABLE | GT_OPT_AT,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "rows that add up to the device: contexts, other processes",
		.text = "Everything on a GPU at a moment (default: the end): what torch and\n"
			"other libraries hold, contexts with the line that made them (idle ones\n"
			"first), modules, other processes, free, and what nothing explains. The\n"
			"traces of several processes are joined per GPU. smi is the same command.",
		.examples = "  gputrace ledger --at peak run.gtrace\n"
			    "  gputrace ledger --device 0 traces/\n"
			    "  gputrace smi --format json run.gtrace | jq .rows[]\n",
	},
	{
		.name = "segments",
		.run = gt_cmd_segments,
		.options = GT_OPT_TABLE | GT_OPT_AT | GT_OPT_FOR,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "cached but useless: the pieces, and what keeps them",
		.text = "Each segment with what is in use and cached in it, its largest piece\n"
			"and the line that keeps it in place. --for: would SIZE fit? Without it\n"
			"the largest request of the run is asked about. Default: the end.",
		.examples = "  gputrace segments --at oom run.gtrace\n"
			    "  gputrace segments --at peak --for 2200M run.gtrace\n",
	},
	{
		.name = "errors",
		.run = gt_cmd_errors,
		.options = GT_OPT_TABLE,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "every refused request and how it ended",
		.text = "Outcomes: granted on retry (torch emptied its cache and went on),\n"
			"caught (the program went on), fatal, open (killed before it could go\n"
			"on), not memory. What was fatal is explained by oom.",
		.examples = "  gputrace errors run.gtrace\n"
			    "  gputrace errors --format json traces/ | jq .errors[].outcome\n",
	},
	{
		.name = "diff",
		.run = gt_cmd_diff,
		.picture = true,
		.options = GT_OPT_TABLE | GT_OPT_LEVEL | GT_OPT_BY | GT_OPT_AT | GT_OPT_FAIL |
			   GT_OPT_PART,
		.operands = "A [B]",
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "two traces, or --from/--to within one",
		.text = "Compares what was in use at the two peaks, or --at another moment.\n"
			"Rows are B - A and add up to the difference. Stacks of other\n"
			"checkouts, builds and versions are matched by function. Of one\n"
			"trace: the peaks in the windows --from and --to (a step, a range),\n"
			"or with --at end their ends. Three traces or more: see compare.",
		.examples = "  gputrace diff old.gtrace new.gtrace\n"
			    "  gputrace diff run.gtrace --from step:3 --to step:40\n"
			    "  gputrace diff --fail-if-peak-grows 5% main.gtrace branch.gtrace\n",
	},
	{
		.name = "plan",
		.run = gt_cmd_plan,
		.options = (GT_OPT_TABLE & ~GT_OPT_RANK) | GT_OPT_PLAN, /* its --rank is LoRA's */
		.operands = "[TRACE...]",
		.min_operands = 0,
		.max_operands = GT_PLAN_LIST,
		.summary = "largest batch that fits, from one or two runs",
		.text = "From runs with different batch sizes: bytes that do not depend on\n"
			"it, bytes per sample, the largest micro-batch for a card,\n"
			"accumulation for a target. Then what each technique would change, by\n"
			"formula. Without a trace: --params, and --sample if it is known.",
		.examples =
			"  gputrace plan b4.gtrace b8.gtrace --target 96\n"
			"  gputrace plan run.gtrace --batch 8 --gpu 24GiB --layers 12\n"
			"  gputrace plan --params 350M --gpu 24GiB --sample 410M --target 256\n",
	},
	{
		.name = "summary",
		.rare = true,
		.run = gt_cmd_summary,
		.options = GT_OPT_TABLE | GT_OPT_LEVEL | GT_OPT_BY | GT_OPT_TORCH,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "the answer in one screen (also without naming a command)",
		.text = "Totals, the peak and who held it, what is missing. Of a failed run:\n"
			"why it failed. TRACE may be a snapshot that torch dumped (.pickle), here\n"
			"and in every other command.",
		.examples =
			"  gputrace gputrace.python3.11.48213.gtrace\n"
			"  gputrace summary --torch snapshot.pickle\n"
			"  gputrace summary --format json traces/ | jq .processes[].devices[]\n",
	},
	{
		.name = "peak",
		.rare = true,
		.run = gt_cmd_peak,
		.options = GT_OPT_TABLE | GT_OPT_LEVEL | GT_OPT_BY | GT_OPT_WHY | GT_OPT_PART |
			   GT_OPT_FRAMES | GT_OPT_TREE,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "the same as at peak, of the run or of a part of it",
		.text = "Who held memory when most of it was in use. Exact even when the\n"
			"history is gone. Of a part of the run it comes from the history.",
		.examples = "  gputrace peak --device 0 run.gtrace\n"
			    "  gputrace peak --range forward run.gtrace\n",
	},
	{
		.name = "compare",
		.rare = true,
		.run = gt_cmd_compare,
		.options = GT_OPT_TABLE | GT_OPT_LEVEL,
		.operands = "TRACE|DIR...",
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "one row per run: configuration, peaks, speed, how it ended",
		.text = "What each run's command line and settings have of their own, its peak in\n"
			"use and held, that of the first step, activations and static memory at\n"
			"the peak, steps per second.",
		.examples = "  gputrace compare b4.gtrace b8.gtrace b16.gtrace\n"
			    "  gputrace compare --format md sweep/ >> notes.md\n",
	},
	{
		.name = "timeline",
		.rare = true,
		.run = gt_cmd_timeline,
		.picture = true,
		.options = GT_OPT_TABLE | GT_OPT_POINTS | GT_OPT_PART,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "memory over time: a plot, or a table in a pipe",
		.text = "Time is cut in slices; each shows the largest value in it, never the\n"
			"mean, so the peak is always there. --all: one row per event.\n"
			"--range: one row per range with its peaks; >= where part of its\n"
			"history is gone. -o with a name that ends in .svg, .png or .pdf\n"
			"draws it, also of steps, diff.",
		.examples = "  gputrace timeline run.gtrace\n"
			    "  gputrace timeline --format csv --points 500 run.gtrace > run.csv\n"
			    "  gputrace timeline run.gtrace -o run.svg\n",
	},
	{
		.name = "html",
		.rare = true,
		.run = gt_cmd_html,
		.options = GT_OPT_PAGE | GT_OPT_BUDGET | GT_OPT_DEVICE | GT_OPT_OUTPUT |
			   GT_OPT_PARTIAL,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "a page to look at: one file, no network",
		.text = "The answer, the timeline with who held what at any instant, stacks,\n"
			"steps, segments. Exact at the instants that it names; what was\n"
			"merged to fit the budget (default 5M) is said. Written to\n"
			"report.html unless -o names a file.",
		.examples = "  gputrace html run.gtrace\n"
			    "  gputrace html traces/ -o ranks.html --strip-paths\n"
			    "  gputrace html --diff old.gtrace new.gtrace -o diff.html\n",
	},
	{
		.name = "snapshot",
		.rare = true,
		.run = gt_cmd_snapshot,
		.options = GT_OPT_AT | GT_OPT_PART | GT_OPT_BUDGET | GT_OPT_DEVICE | GT_OPT_OUTPUT |
			   GT_OPT_PARTIAL,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "a file for pytorch.org/memory_viz, as torch's own snapshots",
		.text = "Segments and blocks at a moment (default: the end, before exit\n"
			"handlers ran) and the history that leads to it. Written beside\n"
			"TRACE unless -o names a file (-: standard output). Works without\n"
			"torch in the program. --from, --to: that part of the history. What does\n"
			"not fit --budget (default 50M) gives way: the beginning of the history\n"
			"first, then small blocks that touch are told as one; sums stay exact.",
		.examples = "  gputrace snapshot run.gtrace\n"
			    "  gputrace snapshot --at peak -o peak.pickle run.gtrace\n"
			    "  gputrace snapshot --from step:3 --to step:4 run.gtrace\n",
	},
	{
		.name = "export",
		.rare = true,
		.run = gt_cmd_export,
		.options = GT_OPT_EXPORT | GT_OPT_AT | GT_OPT_PART | GT_OPT_LEVEL | GT_OPT_POINTS |
			   GT_OPT_DEVICE | GT_OPT_RANK | GT_OPT_OUTPUT | GT_OPT_PARTIAL,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "a file for other tools: pprof, Perfetto, SQL, flame graphs",
		.text = "Stacks with what they hold at a moment (folded, pprof, speedscope; --at,\n"
			"default peak), every block with its life and line (sqlite, csv), memory\n"
			"over time (perfetto, chrome: ui.perfetto.dev), counters (openmetrics).\n"
			"Sums are those of the other commands. To standard output without -o.",
		.examples =
			"  gputrace export --format pprof run.gtrace -o run.pb.gz\n"
			"  gputrace export --format folded --at end run.gtrace | flamegraph.pl\n"
			"  gputrace export --format sqlite traces/ -o run.db\n",
	},
	{
		.name = "metrics",
		.rare = true,
		.run = gt_cmd_metrics,
		.options =
			GT_OPT_WATCH | GT_OPT_DEVICE | GT_OPT_RANK | GT_OPT_OUTPUT | GT_OPT_PARTIAL,
		.operands = "[TRACE|DIR...]",
		.min_operands = 0,
		.max_operands = ANY,
		.summary = "counters for node_exporter's textfile collector",
		.text = "In use, held, peaks, allocations and refused requests per process and\n"
			"GPU, now. With --watch it goes on until it is interrupted; OUT is\n"
			"replaced whole. The traced programs notice nothing.",
		.examples = "  gputrace metrics traces/\n"
			    "  gputrace metrics --watch traces/ "
			    "-o /var/lib/prometheus/node-exporter/gpu.prom\n",
	},
	{
		.name = "mcp",
		.rare = true,
		.run = gt_cmd_mcp,
		.operands = "DIR",
		.min_operands = 1,
		.max_operands = 1,
		.summary = "lets an assistant ask about the traces in DIR",
		.text = "A server on standard input and output, started by the assistant's\n"
			"program; no network. Its tools are summary, oom, peak, growth, steps,\n"
			"ledger, diff, plan, and SQL that only reads. Nothing outside DIR is\n"
			"opened as a trace, nothing is written but a database for SQL in TMPDIR,\n"
			"deleted at the end.",
		.examples = "  gputrace mcp traces/\n"
			    "  claude mcp add gputrace -- gputrace mcp \"$PWD\"\n",
	},
	{
		.name = "live",
		.rare = true,
		.run = gt_cmd_live,
		.options = GT_OPT_LIVE | GT_OPT_FORMAT | GT_OPT_DEVICE | GT_OPT_RANK |
			   GT_OPT_LEVEL | GT_OPT_ALL | GT_OPT_OUTPUT,
		.operands = "[PID|DIR|TRACE...]",
		.min_operands = 0,
		.max_operands = ANY,
		.summary = "running processes: devices, rates, what grows (also: top)",
		.text = "Cards, processes and the lines that hold memory, now. Without a\n"
			"name: every recorded process of yours. The programs notice nothing:\n"
			"it reads their traces. Ended ones stay, as exited or killed; --all\n"
			"also shows those that had ended before. json goes on, one answer a\n"
			"line, until all ended.",
		.examples = "  gputrace live\n"
			    "  gputrace live 48213\n"
			    "  gputrace live --once --sort growth --interval 200ms traces/\n"
			    "  gputrace live --once --format json traces/ | jq .sites[0]\n",
	},
	{
		.name = "merge",
		.rare = true,
		.run = gt_cmd_merge,
		.options = GT_OPT_OUTPUT,
		.operands = "TRACE SNAPSHOT.pickle -o OUT",
		.min_operands = 2,
		.max_operands = 2,
		.summary = "a trace with what a torch snapshot of its run knows beside it",
		.text = "Puts into a copy of the trace what was asked of torch before it rounded\n"
			"up, and the pool of each segment: of what both saw, matched by address,\n"
			"size, order and time. The snapshot may cover a part of the run. Refused\n"
			"when less than half of its events are the trace's: another run.",
		.examples = "  gputrace merge run.gtrace snapshot.pickle -o merged.gtrace\n"
			    "  gputrace segments merged.gtrace\n",
	},
	{
		.name = "pack",
		.rare = true,
		.run = gt_cmd_pack,
		.options = GT_OPT_OUTPUT,
		.operands = "TRACE -o OUT",
		.min_operands = 1,
		.max_operands = 1,
		.summary = "a copy that reads the same where the program is not",
		.text = "Puts the names and lines of every address that the trace holds, and the\n"
			"cited lines of the user's sources, into a copy of it. OUT may be TRACE.",
		.examples = "  gputrace pack run.gtrace -o packed.gtrace\n"
			    "  gputrace run --pack -- python train.py\n",
	},
	{
		.name = "dump",
		.rare = true,
		.run = gt_cmd_dump,
		.options = GT_OPT_DUMP | GT_OPT_FORMAT | GT_OPT_PARTIAL,
		.operands = FILES,
		.min_operands = 1,
		.max_operands = ANY,
		.summary = "raw events, definitions and lanes; --check: is the trace sound?",
		.text = "The events of a trace in order, one a line, as text or json; with --defs\n"
			"or --lanes those instead. --check, also of all traces in DIR, compares\n"
			"what is stored with what it can be derived from.",
		.examples = "  gputrace dump run.gtrace | grep mark\n"
			    "  gputrace dump --check traces/\n",
	},
	{
		.name = "doctor",
		.rare = true,
		.run = gt_cmd_doctor,
		.options = GT_OPT_FORMAT | GT_OPT_OUTPUT | GT_OPT_ALL,
		.operands = "[-- COMMAND [ARGS...]]",
		.min_operands = 0,
		.max_operands = ANY,
		.summary = "does recording work here: library, hooks, versions",
		.text = "Loads the recorder in a process of its own and says what it would see.\n"
			"With a command: runs it and says which allocation calls it could make,\n"
			"looked up how and by whom, and what else stands in the way. Its output\n"
			"goes to standard error; no trace is kept.",
		.examples = "  gputrace doctor\n"
			    "  gputrace doctor -- python train.py\n",
		.program = true,
	},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct gt_command *find_command(const char *name)
{
	if (strcmp(name, "smi") == 0)
		name = "ledger";
	if (strcmp(name, "top") == 0)
		name = "live";
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* Those for every day have a line each, the others only a name: together they fit a screen. */
static void print_commands(FILE *file)
{
	const char *before;
	int column = 0;

	for (size_t i = 0; i < COMMANDS; i++)
		if (!commands[i].rare)
			fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].summary);
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!commands[i].rare)
			continue;
		before = !column ? "Also: " : column < 65 ? ", " : ",\n  ";
		column = column < 65 ? column : 0;
		column += fprintf(file, "%s%s", before, commands[i].name);
	}
	fputc('\n', file);
}

static int print_usage(FILE *file, int status)
{
	fputs("Usage: gputrace [COMMAND] TRACE|DIR...       gputrace run [OPTIONS] -- PROGRAM\n"
	      "Where did the GPU memory go? Reads traces; needs no GPU. Without a COMMAND: the\n"
	      "answer in one screen.\n",
	      file);
	print_commands(file);
	fputs("A line on each: gputrace --commands. All about one: gputrace COMMAND --help\n"
	      "Everywhere: --format text|json|csv|md  --device N  --rank N  --all  -o FILE\n"
	      "  --level torch|driver  --mine GLOB (which files are yours)\n"
	      "Words: in use = allocated, held = reserved, cached = held but not in use.\n"
	      "Exit status: 0 fine, 1 a check failed, 2 usage, 3 unreadable file.\n"
	      "Example: gputrace run -- python train.py\n",
	      file);
	return status;
}

/* For completion, too. */
static int print_all(void)
{
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].summary);
	return GT_EXIT_FINE;
}

static int run_command(const struct gt_command *command, int argc, char **argv)
{
	struct gt_args args;
	int status = gt_parse_args(command, argc, argv, &args);

	if (status < 0)
		status = command->run(&args);
	free(args.operands);
	return status;
}

int gt_run_line(int argc, char **argv)
{
	const struct gt_command *command = find_command(argv[0]);

	return command ? run_command(command, argc, argv) : GT_EXIT_USAGE;
}

#define LONGEST_WORD 15

/* Letters to add, leave out or change to come from one word to the other. */
static size_t distance(const char *from, const char *to)
{
	size_t row[LONGEST_WORD + 1], length = strlen(to);

	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 1; from[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= length; j++) {
			size_t change = diagonal + (from[i - 1] != to[j - 1]);
			size_t least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

			diagonal = row[j];
			row[j] = change < least ? change : least;
		}
	}
	return row[length];
}

/* The command that was meant, if one is a slip or two away; else NULL. */
static const char *meant(const char *word)
{
	const char *nearest = NULL;
	size_t least = strlen(word) < 5 ? 2 : 3;

	for (size_t i = 0; strlen(word) <= LONGEST_WORD && i < COMMANDS; i++) {
		size_t away = distance(word, commands[i].name);

		if (away >= least)
			continue;
		least = away;
		nearest = commands[i].name;
	}
	return nearest;
}

static int unknown_command(const char *word)
{
	const char *nearest = meant(word);
	char *hint = nearest ? gt_xasprintf(" (%s?)", nearest) : gt_xstrdup("");
	int status = gt_message(GT_EXIT_USAGE, "%s: no such command or file%s; see gputrace --help",
				word, hint);

	free(hint);
	return status;
}

/* Without a command the whole line belongs to summary: gputrace --format json FILE. */
static int run_summary(int argc, char **argv)
{
	char **line = gt_xcalloc((size_t)argc + 1, sizeof(*line));
	int status;

	memcpy(line, argv, (size_t)argc * sizeof(*argv));
	line[0] = (char *)"summary";
	status = run_command(find_command(line[0]), argc, line);
	free(line);
	return status;
}

int main(int argc, char **argv)
{
	const struct gt_command *command;

	setlocale(LC_CTYPE, "C.UTF-8");
	if (argc < 2)
		return print_usage(stderr, GT_EXIT_USAGE);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return print_usage(stdout, GT_EXIT_FINE);
	if (strcmp(argv[1], "--commands") == 0)
		return print_all();
	if (strcmp(argv[1], "--version") == 0)
		return printf("gputrace %s, trace format %u\n", GT_TOOL_VERSION, GT_VERSION) < 0;
	command = find_command(argv[1]);
	if (command)
		return run_command(command, argc - 1, argv + 1);
	if (argv[1][0] != '-' && !strpbrk(argv[1], "./") && access(argv[1], F_OK))
		return unknown_command(argv[1]);
	return run_summary(argc, argv);
}
