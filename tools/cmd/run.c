/* SPDX-License-Identifier: MIT */
/*
 * gputrace run: starts a program with the recorder preloaded and says afterwards, per process that
 * used CUDA, how it went. Everything it says goes to standard error, so the program's output is
 * untouched; the exit status is the program's.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/library.h"
#include "cmd/pack.h"
#include "cmd/program.h"
#include "cmd/refusals.h"
#include "model/xalloc.h"
#include "out/number.h"

/* ---- the environment ------------------------------------------------------------------------- */

static int set_environment(const struct gt_args *args)
{
	char *library = gt_find_library();

	if (!library)
		return gt_message(GT_EXIT_USAGE, "run: libgputrace.so is not beside this tool");
	if (strpbrk(library, " :")) {
		gt_message(0, "run: %s: LD_PRELOAD cannot hold a path with a blank or colon",
			   library);
		free(library);
		return GT_EXIT_USAGE;
	}
	gt_set_preload(library);
	free(library);
	if (args->dir) {
		/* What cannot be made is named by the library, which then does not record. */
		mkdir(args->dir, 0777);
		setenv("GPUTRACE_DIR", args->dir, 1);
	}
	if (args->ring)
		setenv("GPUTRACE_RING", args->ring, 1);
	if (args->stacks)
		setenv("GPUTRACE_STACKS", args->stacks, 1);
	return 0;
}

static void warn_program(const char *name)
{
	enum gt_program_kind kind = gt_program_kind(name);

	if (kind == GT_PROGRAM_STATIC)
		gt_message(0,
			   "%s: static binary, nothing can be preloaded: not traced; its dynamic "
			   "children are",
			   name);
	else if (kind == GT_PROGRAM_SETUID)
		gt_message(0,
			   "%s: setuid: the loader drops LD_PRELOAD: not traced; run the real "
			   "program as its owner",
			   name);
}

/* ---- which traces are new -------------------------------------------------------------------- */

struct file {
	char *path;
	ino_t inode;
	dev_t device;
};

struct files {
	struct file *files;
	size_t count;
};

static void list_directory(const char *directory, struct files *files)
{
	struct dirent **entries;
	int count = gt_list_traces(directory, &entries);

	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		char *path = strcmp(directory, ".") ? gt_xasprintf("%s/%s", directory, name)
						    : gt_xstrdup(name);
		struct stat info;

		if (stat(path, &info) == 0)
			*GT_PUSH(files->files, files->count) =
				(struct file){path, info.st_ino, info.st_dev};
		else
			free(path);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* GPUTRACE_DIR is a list; processes may have ended up in any of it. */
static struct files list_traces(void)
{
	const char *value = getenv("GPUTRACE_DIR");
	char *list = gt_xstrdup(value && *value ? value : "."), *rest;
	struct files files = {0};

	for (char *dir = strtok_r(list, ":", &rest); dir; dir = strtok_r(NULL, ":", &rest))
		list_directory(dir, &files);
	free(list);
	return files;
}

static bool is_in(const struct files *files, const struct file *file)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].inode == file->inode && files->files[i].device == file->device)
			return true;
	return false;
}

static void free_files(struct files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->files[i].path);
	free(files->files);
}

/* ---- the program ----------------------------------------------------------------------------- */

static pid_t child;

static void pass_on(int number)
{
	if (child > 0)
		kill(child, number);
}

/* Signals of the terminal reach the program by itself; those sent to us are meant for it too. */
static void wait_quietly(void)
{
	static const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
	struct sigaction ignore = {.sa_handler = SIG_IGN, .sa_flags = SA_RESTART};
	struct sigaction pass = {.sa_handler = pass_on, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGQUIT, &ignore, NULL);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaction(passed[i], &pass, NULL);
}

/* As shells have it: 126 cannot be run, 127 not found, 128 + signal. */
static int run_program(char **command)
{
	int status;

	child = fork();
	if (child < 0)
		return gt_message(126, "run: cannot start a process: %s", strerror(errno));
	if (child == 0) {
		execvp(command[0], command);
		status = errno == ENOENT ? 127 : 126;
		gt_message(0, "run: %s: %s", command[0], strerror(errno));
		_exit(status);
	}
	wait_quietly();
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- how it went ----------------------------------------------------------------------------- */

static char *ending_of(const struct gt_trace *trace, int status)
{
	if (trace->header.pid != (uint32_t)child)
		return gt_xstrdup(gt_process_state(trace));
	if (status > 128)
		return gt_xasprintf("killed by signal %d (%s)", status - 128,
				    strsignal(status - 128));
	return gt_xasprintf("exit %d", status);
}

static void say_failure(struct gt_input *input, const struct gt_report *report, const char *ending)
{
	size_t lane = gt_report_lane(input->trace, report);
	char device[GT_DEVICE_TEXT], asked[GT_SIZE_TEXT];
	char *where = gt_where_text(input, gt_report_site(input->trace, report));

	gt_message(0, "pid %u %.32s: out of memory on %s, %s asked at %s, %s",
		   input->trace->header.pid, input->trace->header.comm,
		   gt_device_text(input->trace->lanes[lane].device, device),
		   gt_size_text(gt_report_asked(report), asked), where, ending);
	free(where);
}

static void say_peak(struct gt_input *input, struct gt_session *session, const char *ending)
{
	struct gt_args args = {.device = GT_ANY_DEVICE, .rank = -1};
	struct gt_places places = gt_places_of(&args, session);
	const struct gt_place *place = gt_tightest(&places, GT_TOTAL_IN_USE);
	char device[GT_DEVICE_TEXT];
	char *peak = place ? gt_of_card(place->lane->ctr.peak[GT_TOTAL_IN_USE], place->device_total)
			   : NULL;

	if (place)
		gt_message(0, "pid %u %.32s: peak %s on %s, %s", input->trace->header.pid,
			   input->trace->header.comm, peak,
			   gt_device_text(place->lane->device, device), ending);
	else
		gt_message(0, "pid %u %.32s: no GPU memory asked for, %s", input->trace->header.pid,
			   input->trace->header.comm, ending);
	free(peak);
	free(places.places);
}

/* True when the process ran out of memory. */
static bool say_one(char *path, int status, bool pack)
{
	struct gt_args args = {
		.operands = &path, .operand_count = 1, .device = GT_ANY_DEVICE, .rank = -1};
	struct gt_session session;
	const struct gt_report *report;
	char *ending;

	if (gt_session_open(&args, &session))
		return false;
	report = gt_input_headline(&args, &session.inputs[0]);
	ending = ending_of(session.inputs[0].trace, status);
	if (report)
		say_failure(&session.inputs[0], report, ending);
	else
		say_peak(&session.inputs[0], &session, ending);
	free(ending);
	if (pack)
		gt_pack_input(&session.inputs[0], path);
	gt_session_close(&session);
	return report != NULL;
}

static void say_how(const struct files *before, int status, bool pack)
{
	struct files after = list_traces();
	const char *last = NULL, *failed = NULL;
	size_t count = 0;

	for (size_t i = 0; i < after.count; i++) {
		if (is_in(before, &after.files[i]))
			continue;
		count++;
		last = after.files[i].path;
		if (say_one(after.files[i].path, status, pack) && !failed)
			failed = last;
	}
	if (!count && status != 126 && status != 127) /* those never ran, and that is said */
		gt_message(0, "no process used CUDA, so no trace was written");
	else if (!count)
		;
	else if (failed)
		gt_message(0, "next: gputrace oom %s", failed);
	else
		gt_message(0, "next: gputrace %s%s", last,
			   count > 1 ? "   (or the folder, for all processes)" : "");
	free_files(&after);
}

int gt_cmd_run(struct gt_args *args)
{
	struct files before;
	int status = set_environment(args);

	if (status)
		return status;
	warn_program(args->operands[0]);
	before = list_traces();
	status = run_program(args->operands);
	say_how(&before, status, args->pack);
	free_files(&before);
	return status;
}
