/* SPDX-License-Identifier: MIT */
/*
 * gputrace pack: a copy of a trace that reads the same on a machine without the program, its
 * libraries and its sources.
 */
#include "cmd/pack.h"

#include "symbols/embed.h"

static void take_name(void *ctx, const struct gt_pack_name *name)
{
	gt_pack_name(ctx, name);
}

static void take_source(void *ctx, const char *file, int line, const char *text)
{
	gt_pack_source(ctx, file, line, text);
}

int gt_pack_input(struct gt_input *input, const char *path)
{
	const struct gt_trace *trace = input->trace;
	struct gt_error err = {0};
	struct gt_pack *pack;
	int status = 0;

	if (trace->running)
		return gt_message(GT_EXIT_UNREADABLE,
				  "%s: its process is running: pack it when that has ended",
				  trace->path);
	pack = gt_pack_new(trace);
	if (pack && !trace->name_count)
		gt_symbols_embed(gt_input_symbols(input),
				 &(struct gt_embed){take_name, take_source, pack});
	if (!pack || gt_pack_write(pack, path, &err))
		status = gt_message_error(&err);
	gt_pack_free(pack);
	return status;
}

static void say_missing(struct gt_input *input)
{
	size_t count;
	const struct gt_missing *missing = gt_symbols_missing(gt_input_symbols(input), &count);

	for (size_t i = 0; i < count; i++)
		gt_message(0, "%s: %s, so its functions have no names in the packed trace",
			   missing[i].path,
			   missing[i].changed ? "another build than in the run" : "not here");
}

int gt_cmd_pack(struct gt_args *args)
{
	struct gt_session session;
	int status;

	if (!args->output)
		return gt_message(GT_EXIT_USAGE, "pack: -o OUT is needed: where to write");
	status = gt_session_open(args, &session);
	if (status)
		return status;
	if (session.count == 1 && session.inputs[0].trace->snapshot)
		status = gt_message(GT_EXIT_USAGE,
				    "pack: %s: a torch snapshot has its names in it already",
				    session.paths[0]);
	else if (session.count == 1 && session.inputs[0].trace->database)
		status = gt_message(GT_EXIT_USAGE,
				    "pack: %s: a database has its names in it already",
				    session.paths[0]);
	else if (session.count == 1)
		status = gt_pack_input(&session.inputs[0], args->output);
	else
		status = gt_message(GT_EXIT_USAGE, "pack: one trace at a time");
	if (!status)
		say_missing(&session.inputs[0]);
	gt_session_close(&session);
	return status;
}
