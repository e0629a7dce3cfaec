/* SPDX-License-Identifier: MIT */
/*
 * gputrace live: running processes on the screen, or printed once, or as JSON again and again. Where
 * the numbers come from and how they are drawn is in tools/live; here are the operands, and what is
 * said when there is nothing to look at.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/session.h"
#include "live/view.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/number.h"

/* ---- operands -------------------------------------------------------------------------------- */

static const char *folder(void)
{
	const char *where = getenv("GPUTRACE_DIR");

	return where && *where && !strchr(where, ':') ? where : ".";
}

static int no_process(const char *text, uint32_t pid)
{
	char *path = gt_live_trace_of(folder(), pid);
	int status;

	if (path)
		status = gt_message(GT_EXIT_UNREADABLE, "pid %u has ended; see: gputrace at end %s",
				    pid, path);
	else
		status =
			gt_message(GT_EXIT_UNREADABLE, "%s: no such process, file or folder", text);
	free(path);
	return status;
}

/* A number that is no file is a process; its open files say where its trace is. */
static int check_pid(const char *text)
{
	char *path;
	long pid;
	int status = 0;

	if (gt_parse_number(text, 1, INT_MAX, &pid))
		return gt_message(GT_EXIT_UNREADABLE, "%s: no such process, file or folder", text);
	path = gt_xasprintf("/proc/%ld", pid);
	if (access(path, F_OK))
		status = no_process(text, (uint32_t)pid);
	free(path);
	path = gt_xasprintf("/proc/%ld/fd", pid);
	if (!status && access(path, R_OK))
		status = gt_message(GT_EXIT_UNREADABLE,
				    "pid %ld: %s: look as the user who runs it, or name its trace",
				    pid, strerror(errno));
	free(path);
	return status;
}

static int check_file(const struct gt_args *args, const char *path)
{
	struct gt_trace *trace;
	struct gt_error err;
	int status = 0;

	if (gt_trace_open(path, GT_OPEN_TOTALS, &trace, &err))
		return gt_message_error(&err);
	if (!trace->running && !args->all)
		status = gt_message(GT_EXIT_UNREADABLE, "pid %u has ended; see: gputrace at end %s",
				    trace->header.pid, path);
	gt_trace_close(trace);
	return status;
}

static int check_operands(const struct gt_args *args)
{
	int status = 0;

	for (size_t i = 0; i < args->operand_count && !status; i++) {
		struct stat info;

		if (stat(args->operands[i], &info))
			status = check_pid(args->operands[i]);
		else if (!S_ISDIR(info.st_mode))
			status = check_file(args, args->operands[i]);
	}
	return status;
}

static void find(struct gt_live *live, void *ctx)
{
	const struct gt_args *args = ctx;

	if (!gt_live_due(live, !args->operand_count))
		return;
	for (size_t i = 0; i < args->operand_count; i++)
		gt_live_find(live, args->operands[i]);
	if (!args->operand_count)
		gt_live_find(live, NULL);
}

/* ---- printed --------------------------------------------------------------------------------- */

static json_t *rate(double value, bool known)
{
	return known ? json_integer((json_int_t)llround(value)) : json_null();
}

static json_t *json_device(const struct gt_live_device *device, bool running)
{
	const struct gt_ctr *now = &device->now;

	return json_pack(
		"{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "device",
		gt_json_ordinal(device->device), "total",
		gt_json_number(device->card, device->card), "allocated",
		(json_int_t)now->cur[GT_TOTAL_IN_USE], "reserved",
		(json_int_t)now->cur[GT_TOTAL_RESERVED], "torch_allocated",
		(json_int_t)now->cur[GT_TOTAL_TORCH], "peak_allocated",
		(json_int_t)now->peak[GT_TOTAL_IN_USE], "peak_reserved",
		(json_int_t)now->peak[GT_TOTAL_RESERVED], "blocks", (json_int_t)now->live_count,
		"allocations", (json_int_t)now->allocs, "frees", (json_int_t)now->frees,
		"refused_requests", (json_int_t)now->failed, "allocations_per_second",
		rate(device->allocs_per_second, device->rated && running), "bytes_per_second",
		rate(device->bytes_per_second, device->rated && running));
}

static json_t *json_process(const struct gt_live_process *process)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < process->device_count; i++)
		json_array_append_new(devices,
				      json_device(&process->devices[i], process->trace->running));
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:s, s:o}", "pid", gt_json_pid(process->trace), "rank",
		process->rank < 0 ? json_null() : json_integer((json_int_t)process->rank),
		"program", gt_json_name(process->program), "file", gt_json_name(process->path),
		"state", gt_live_state(process), "devices", devices);
}

static json_t *json_site(const struct gt_live *live, const struct gt_live_row *row, bool rated)
{
	const bool running = live->processes[row->process].trace->running;

	return json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "pid",
			 gt_json_pid(live->processes[row->process].trace), "device",
			 gt_json_ordinal(row->device), "level", row->torch ? "torch" : "driver",
			 "bytes", (json_int_t)row->bytes, "count", (json_int_t)row->count,
			 "allocations", (json_int_t)row->ever_count, "allocations_per_second",
			 rate(row->allocs_per_second, rated && running), "growth_per_second",
			 rate(row->growth, row->trend && running), "key", gt_json_name(row->full));
}

/* On one line: what comes again and again is read line by line. */
static void print_json(struct gt_out *out, const struct gt_live *live, const struct gt_view *view)
{
	json_t *answer = gt_json_answer("live"), *processes = json_array(), *sites = json_array();
	size_t count;
	struct gt_live_row **rows = gt_live_sorted(live, SIZE_MAX, view->total, view->sort, &count);

	for (size_t i = 0; i < live->count; i++)
		json_array_append_new(processes, json_process(&live->processes[i]));
	for (size_t i = 0; i < count; i++)
		json_array_append_new(sites, json_site(live, rows[i], live->looks > 1));
	json_object_set_new(answer, "interval", json_real(view->every));
	json_object_set_new(answer, "processes", processes);
	json_object_set_new(answer, "sites", sites);
	json_dumpf(answer, out->file, JSON_COMPACT);
	fputc('\n', out->file);
	fflush(out->file);
	json_decref(answer);
	free(rows);
}

static void print_table(struct gt_out *out, const struct gt_live *live, const struct gt_view *view)
{
	static const struct gt_field fields[] = {
		{"bytes", NULL, GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"count", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"allocations", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"pid", NULL, GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"device", "GPU", GT_FIELD_COUNT, GT_SHOW_ALWAYS},
		{"level", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"where", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));
	size_t count;
	struct gt_live_row **rows = gt_live_sorted(live, SIZE_MAX, view->total, view->sort, &count);

	for (size_t i = 0; i < count; i++) {
		gt_table_row(table, 1, 0, 0);
		gt_table_number(table, (int64_t)rows[i]->bytes);
		gt_table_number(table, (int64_t)rows[i]->count);
		gt_table_number(table, (int64_t)rows[i]->ever_count);
		gt_table_pid(table, live->processes[rows[i]->process].trace);
		gt_table_number(table, rows[i]->device);
		gt_table_text(table, rows[i]->torch ? "torch" : "driver");
		gt_table_text(table, rows[i]->full);
	}
	gt_table_print(table, out, 0);
	gt_table_free(table);
	free(rows);
}

static size_t all_lines(const struct gt_live *live, const struct gt_view *view)
{
	size_t count;
	struct gt_live_row **rows = gt_live_sorted(live, SIZE_MAX, view->total, view->sort, &count);

	for (size_t i = 0; i < live->count; i++)
		count += 2 * live->processes[i].device_count;
	free(rows);
	return 4 * (count + 8);
}

/* The screen that a terminal would show, as lines. */
static void print_screen(struct gt_out *out, struct gt_live *live, struct gt_view *view)
{
	struct gt_screen screen = {.utf8 = out->utf8 || !out->terminal};
	const bool cut = out->terminal && !out->all;
	int last;

	gt_screen_begin(&screen, cut ? GT_SCREEN_LINES : (int)all_lines(live, view),
			(int)out->width);
	gt_live_draw(&screen, live, view);
	for (last = screen.lines; last > 0; last--) {
		char *text = gt_screen_line(&screen, last - 1);
		bool blank = !*text;

		free(text);
		if (!blank)
			break;
	}
	for (int i = 0; i < last; i++) {
		char *text = gt_screen_line(&screen, i);

		gt_line(out, GT_PLAIN, "%s", text);
		free(text);
	}
	gt_screen_free(&screen);
}

static void print(struct gt_out *out, struct gt_live *live, struct gt_view *view)
{
	if (out->format == GT_FORMAT_JSON)
		print_json(out, live, view);
	else if (out->format == GT_FORMAT_TEXT)
		print_screen(out, live, view);
	else
		print_table(out, live, view);
}

static void look(struct gt_live *live, struct gt_args *args)
{
	find(live, args);
	gt_live_look(live);
}

static void pause_for(double seconds)
{
	struct timespec pause = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};

	nanosleep(&pause, NULL);
}

static int nothing(const struct gt_args *args)
{
	if (args->operand_count)
		return gt_message(GT_EXIT_UNREADABLE,
				  "%s: no recorded process is running; --all shows what has ended",
				  args->operands[0]);
	return gt_message(GT_EXIT_UNREADABLE, "no recorded process of yours is running; "
					      "try: gputrace run -- PROGRAM");
}

static int print_once(struct gt_out *out, struct gt_args *args, struct gt_live *live,
		      struct gt_view *view)
{
	/* A rate needs two; growth is trusted when it lasts as long as the screen remembers. */
	unsigned int looks = view->sort == GT_LIVE_BY_GROWTH ? GT_LIVE_PAST : 2;

	look(live, args);
	if (!live->count)
		return nothing(args);
	while (--looks && gt_live_running(live)) {
		pause_for(view->every);
		look(live, args);
	}
	print(out, live, view);
	return 0;
}

/* False: only processes were named, by number, and none of them is there any more. */
static bool may_come(const struct gt_args *args)
{
	bool may = !args->operand_count;

	for (size_t i = 0; i < args->operand_count && !may; i++) {
		char *process = gt_xasprintf("/proc/%s", args->operands[i]);

		may = access(args->operands[i], F_OK) == 0 || access(process, F_OK) == 0;
		free(process);
	}
	return may;
}

/* From before the first process begins until the last one has ended. */
static int print_again(struct gt_out *out, struct gt_args *args, struct gt_live *live,
		       struct gt_view *view)
{
	for (;;) {
		look(live, args);
		print(out, live, view);
		if (live->count && !gt_live_running(live))
			find(live, args); /* the last one may have been followed by another */
		if (ferror(out->file) || (live->count && !gt_live_running(live)))
			return 0;
		if (!live->count && !may_come(args))
			return nothing(args);
		pause_for(view->every);
	}
}

/* ---- the command ----------------------------------------------------------------------------- */

static const char *nothing_yet(const struct gt_args *args)
{
	return args->operand_count ? "nothing recorded is running there yet; waiting"
				   : "no recorded process of yours is running yet; waiting";
}

static int run(struct gt_out *out, struct gt_args *args, struct gt_live *live)
{
	struct gt_view view = {
		.process = SIZE_MAX,
		.total = args->total,
		.sort = (enum gt_live_sort)args->sort,
		.every = args->every_us ? (double)args->every_us / 1e6 : 1,
		.nothing = nothing_yet(args),
	};
	bool screen = out->terminal && out->format == GT_FORMAT_TEXT && !args->once &&
		      isatty(STDIN_FILENO);

	if (view.every < 0.1)
		return gt_message(GT_EXIT_USAGE, "live: --interval is at least 100ms");
	view.once = !screen;
	live->naming = screen ? 0 : INFINITY;
	if (!screen && (args->once || out->format != GT_FORMAT_JSON))
		return print_once(out, args, live, &view);
	if (!screen)
		return print_again(out, args, live, &view);
	if (gt_live_terminal(live, &view, out->utf8, find, args))
		return gt_message(GT_EXIT_USAGE,
				  "live: this terminal (TERM) is not known; use --once");
	return 0;
}

int gt_cmd_live(struct gt_args *args)
{
	struct gt_live live = {.all = args->all, .device = args->device, .rank = args->rank};
	struct gt_out out;
	int status = check_operands(args);

	if (!status)
		status = gt_args_out(args, &out);
	if (!status)
		status = gt_args_done(args, &out, run(&out, args, &live));
	gt_live_free(&live);
	return status;
}
