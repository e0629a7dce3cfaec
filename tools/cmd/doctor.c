/* SPDX-License-Identifier: MIT */
/*
 * gputrace doctor [-- CMD]: does recording work here, and what would it see of a program? Whatever
 * could disturb this process (loading the recorder, the program) happens in a child.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/library.h"
#include "cmd/probe.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"
#include "symbols/library.h"

struct doctor {
	struct gt_out out;
	json_t *checks; /* what is said in text, for JSON */
	char *library, *driver;
	int driver_version; /* 13000; 0 = not known */
	bool loads, ran;
	struct gt_names hooks;
	struct gt_probe probe;
};

/* What no preload can see; each is said once, so that nobody looks for it in the numbers. */
static const struct {
	const char *what, *why;
} not_covered[] = {
	{"objects opened with RTLD_DEEPBIND", "they see the driver before a preload"},
	{"objects in a namespace of their own (dlmopen)", "a preload is not in it"},
	{"static and setuid programs", "the loader does not preload into them"},
	{"functions of cuGetExportTable", "private to the runtime, passed on untouched"},
	{"memory that the driver takes for itself", "shown as unexplained"},
};

/* ---- saying ---------------------------------------------------------------------------------- */

static void say(struct doctor *d, bool fine, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct doctor *d, bool fine, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = gt_xvasprintf(format, arguments);
	va_end(arguments);
	if (d->out.format != GT_FORMAT_JSON)
		gt_line(&d->out, fine ? GT_PLAIN : GT_RED, "%-5s %s", fine ? "ok" : "warn", text);
	json_array_append_new(d->checks,
			      json_pack("{s:b, s:o}", "ok", fine, "text", gt_json_name(text)));
	free(text);
}

static char *joined(const struct gt_names *names)
{
	char *text = gt_xstrdup("");

	for (size_t i = 0; i < names->count; i++)
		text = gt_xappend(text, "%s%s", i ? ", " : "", names->names[i]);
	return text;
}

static void say_names(struct doctor *d, bool fine, const char *what, const struct gt_names *names)
{
	char *text = joined(names);

	if (names->count)
		say(d, fine, "%s: %s", what, text);
	free(text);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* In a child: a library that cannot be loaded must not end the doctor. */
static bool loads(const char *path)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(dlopen(path, RTLD_NOW | RTLD_LOCAL) ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* cuDriverGetVersion works before cuInit, without a device. */
static void find_driver(struct doctor *d)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	int (*version)(int *) = NULL;
	Dl_info info;

	if (handle)
		*(void **)&version = dlsym(handle, "cuDriverGetVersion");
	if (!version || !dladdr((void *)version, &info))
		return;
	d->driver = gt_xstrdup(info.dli_fname);
	if (version(&d->driver_version))
		d->driver_version = 0;
}

static size_t count_matching(const struct gt_names *names, const char *pattern)
{
	size_t count = 0;

	for (size_t i = 0; i < names->count; i++)
		count += fnmatch(pattern, names->names[i], 0) == 0;
	return count;
}

static void check_library(struct doctor *d)
{
	bool blocks = count_matching(&d->hooks, "*reportMemoryUsageToProfiler*") > 0;

	say(d, d->loads, "%s %s", d->library, d->loads ? "loads" : "does not load");
	say(d, d->hooks.count > 0, "%zu functions are hooked: %zu of the driver", d->hooks.count,
	    count_matching(&d->hooks, "cu[A-Z]*"));
	say(d, blocks, "torch blocks: %s", blocks ? "hooked" : "not hooked");
}

static void check_driver(struct doctor *d)
{
	size_t all = 0, hooked = 0;

	if (!d->driver) {
		say(d, false, "no libcuda.so.1 on this machine: nothing to record here");
		return;
	}
	for (size_t i = 0; i < d->probe.point_count; i++) {
		const struct gt_entry_point *point = &d->probe.points[i];

		if (!gt_is_memory_call(point->name))
			continue;
		all++;
		hooked += point->hooked;
		if (!point->hooked)
			say(d, false, "%s is not hooked%s: memory from it will not be seen",
			    point->name, point->resolved ? ", and was looked up" : "");
	}
	say(d, true, "driver %s, CUDA %d.%d: %zu of its %zu allocation calls are hooked", d->driver,
	    d->driver_version / 1000, d->driver_version % 1000 / 10, hooked, all);
}

static void check_environment(struct doctor *d)
{
	const char *preload = getenv("LD_PRELOAD"), *off = getenv("GPUTRACE");
	const char *directory = getenv("GPUTRACE_DIR"), *nvtx = getenv("NVTX_INJECTION64_PATH");

	if (off && strcmp(off, "0") == 0)
		say(d, false, "GPUTRACE=0 is set: recording is off");
	if (preload && *preload)
		say(d, true, "LD_PRELOAD holds %s already; run appends %s", preload, d->library);
	if (nvtx && strcmp(nvtx, "libgputrace.so"))
		say(d, false, "NVTX_INJECTION64_PATH is %s: NVTX ranges go there, not to the trace",
		    nvtx);
	if (!directory || !*directory)
		directory = ".";
	if (!strchr(directory, ':'))
		say(d, access(directory, W_OK | X_OK) == 0, "traces go to %s", directory);
	else
		say(d, true, "traces go to the first of %s that can be written", directory);
}

static void check_python(struct doctor *d)
{
	const char *state = d->probe.python.state, *version = d->probe.python.version;

	if (!state)
		return;
	if (!strcmp(state, "refused"))
		say(d, false, "Python %s has no stacks: %s", version, d->probe.python.why);
	else if (!strcmp(state, "read"))
		say(d, true, "Python %s: its frames are known and read", version);
	else
		say(d, true, "Python %s: its frames are known, none was on the way to CUDA",
		    version);
}

static void check_program(struct doctor *d)
{
	const struct gt_probe *probe = &d->probe;
	size_t seen = 0, own;

	for (size_t i = 0; i < probe->point_count; i++)
		seen += probe->points[i].resolved;
	own = probe->driver != NULL;
	say(d, probe->processes > 0, "the program ended with %d; %zu process%s reported",
	    probe->status, probe->processes, probe->processes == 1 ? "" : "es");
	say(d, seen > 0, "%zu hooked or allocating functions of the driver were looked up", seen);
	say_names(d, true, "CUDA runtimes, or what asks the driver like one", &probe->runtimes);
	say_names(d, true, "sanitizers (keep them first in LD_PRELOAD)", &probe->sanitizers);
	say_names(d, false, "also stands before dlsym or the driver", &probe->interposers);
	say_names(d, false,
		  "loaded before the recorder: what it looks up in libc itself escapes (put "
		  "libgputrace.so first in LD_PRELOAD)",
		  &probe->before);
	check_python(d);
	if (probe->other_drivers > own)
		say(d, false, "%zu copies of libcuda in namespaces of their own: not seen there",
		    probe->other_drivers - own);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void print_points(struct doctor *d)
{
	static const struct gt_field fields[] = {
		{"entry_point", "looked up", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"hooked", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"seen_via", "through", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"module", "by", GT_FIELD_TEXT, GT_SHOW_ALWAYS},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));

	for (size_t i = 0; i < d->probe.point_count; i++) {
		const struct gt_entry_point *point = &d->probe.points[i];
		char *via = joined(&point->seen), *by;

		if (point->resolved) {
			by = gt_xasprintf("%s%s", gt_base_name(point->modules.names[0]),
					  point->modules.count > 1 ? ", ..." : "");
			gt_table_row(table, 0, 0, point->hooked ? 0 : GT_ROW_ACT);
			gt_table_text(table, point->name);
			gt_table_text(table, point->hooked ? "yes" : "no");
			gt_table_text(table, via);
			gt_table_text(table, by);
			free(by);
		}
		free(via);
	}
	gt_table_print(table, &d->out, 0);
	gt_table_free(table);
}

static json_t *json_names(const struct gt_names *names)
{
	json_t *list = json_array();

	for (size_t i = 0; i < names->count; i++)
		json_array_append_new(list, gt_json_name(names->names[i]));
	return list;
}

static json_t *json_points(const struct gt_probe *probe)
{
	json_t *list = json_array();

	for (size_t i = 0; i < probe->point_count; i++) {
		const struct gt_entry_point *p = &probe->points[i];
		const char *module = p->modules.count ? p->modules.names[0] : NULL;

		json_array_append_new(
			list, json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", p->name, "hooked",
					p->hooked, "seen_via", json_names(&p->seen), "module",
					gt_json_name(module), "modules", json_names(&p->modules)));
	}
	return list;
}

static json_t *json_unknown(const struct gt_probe *probe)
{
	json_t *list = json_array();

	for (size_t i = 0; i < probe->point_count; i++)
		if (probe->points[i].resolved && !probe->points[i].hooked)
			json_array_append_new(list, json_string(probe->points[i].name));
	return list;
}

static json_t *json_python(const struct gt_probe *probe)
{
	if (!probe->python.state)
		return json_null();
	return json_pack("{s:o, s:s, s:o}", "version", gt_json_name(probe->python.version), "state",
			 probe->python.state, "why",
			 *probe->python.why ? gt_json_name(probe->python.why) : json_null());
}

static json_t *json_not_covered(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(not_covered) / sizeof(not_covered[0]); i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "what", not_covered[i].what,
						      "why", not_covered[i].why));
	return list;
}

static void print_json(struct doctor *d)
{
	json_t *answer = gt_json_answer("doctor");

	json_object_set_new(answer, "library", gt_json_name(d->library));
	json_object_set_new(answer, "loads", json_boolean(d->loads));
	json_object_set_new(answer, "driver", gt_json_name(d->driver));
	json_object_set_new(answer, "driver_version",
			    gt_json_number((uint64_t)d->driver_version, d->driver_version > 0));
	json_object_set_new(answer, "entry_points", json_points(&d->probe));
	json_object_set_new(answer, "unknown", json_unknown(&d->probe));
	json_object_set_new(answer, "exit_status",
			    gt_json_number((uint64_t)d->probe.status, d->ran));
	json_object_set_new(answer, "processes", gt_json_number(d->probe.processes, d->ran));
	json_object_set_new(answer, "runtimes", json_names(&d->probe.runtimes));
	json_object_set_new(answer, "interposers", json_names(&d->probe.interposers));
	json_object_set_new(answer, "interposers_before", json_names(&d->probe.before));
	json_object_set_new(answer, "python", json_python(&d->probe));
	json_object_set_new(answer, "sanitizers", json_names(&d->probe.sanitizers));
	json_object_set_new(answer, "checks", json_incref(d->checks));
	json_object_set_new(answer, "not_covered", json_not_covered());
	gt_json_print(&d->out, answer);
}

static void print_text(struct doctor *d)
{
	if (d->ran)
		print_points(d);
	for (size_t i = 0; i < sizeof(not_covered) / sizeof(not_covered[0]); i++)
		gt_line(&d->out, GT_DIM, "never %s: %s", not_covered[i].what, not_covered[i].why);
}

static int examine(struct doctor *d, struct gt_args *args)
{
	d->loads = loads(d->library);
	d->hooks = gt_exports_of(d->library);
	find_driver(d);
	if (args->operand_count) {
		args->operands[args->operand_count] = NULL;
		if (gt_probe_run(args->operands, d->library, &d->probe))
			return gt_message(GT_EXIT_UNREADABLE, "doctor: no temporary folder");
		d->ran = true;
		if (d->probe.driver) {
			free(d->driver);
			d->driver = gt_xstrdup(d->probe.driver);
		}
	}
	gt_probe_static(&d->hooks, d->driver, &d->probe);
	check_library(d);
	check_driver(d);
	check_environment(d);
	if (d->ran)
		check_program(d);
	if (d->out.format == GT_FORMAT_JSON)
		print_json(d);
	else
		print_text(d);
	return d->loads ? GT_EXIT_FINE : GT_EXIT_CHECK;
}

int gt_cmd_doctor(struct gt_args *args)
{
	struct doctor d = {.library = gt_find_library(), .checks = json_array()};
	int status = gt_args_out(args, &d.out);

	if (!status && !d.library) {
		say(&d, false, "libgputrace.so is not beside this tool: recording cannot work");
		if (d.out.format == GT_FORMAT_JSON)
			print_json(&d);
		status = gt_args_done(args, &d.out, GT_EXIT_CHECK);
	} else if (!status) {
		status = gt_args_done(args, &d.out, examine(&d, args));
	}
	json_decref(d.checks);
	gt_free_names(&d.hooks);
	gt_probe_clear(&d.probe);
	free(d.driver);
	free(d.library);
	return status;
}
