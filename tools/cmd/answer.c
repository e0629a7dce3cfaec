/* SPDX-License-Identifier: MIT */
/*
 * Where a command's answer goes, and its messages: one line each on standard error. Called from every
 * command and from the parser of options.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "chart/canvas.h"
#include "out/bar.h"

int gt_message(int status, const char *format, ...)
{
	va_list arguments;
	char text[2048], *safe;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	safe = gt_escape(text);
	gt_bar_erase();
	fprintf(stderr, "gputrace: %s\n", safe);
	free(safe);
	return status;
}

int gt_args_out(const struct gt_args *args, struct gt_out *ret)
{
	bool may = args->command->picture && args->format == GT_FORMAT_TEXT;
	enum gt_picture picture = may ? gt_picture_of(args->output) : GT_PICTURE_NONE;

	if (picture == GT_PICTURE_OTHER)
		return gt_message(GT_EXIT_USAGE, "%s: pictures are .svg, .png or .pdf",
				  args->output);
	*ret = (struct gt_out){.picture = picture, .path = args->output};
	if (picture)
		return 0;
	if (gt_out_open(ret, args->output, args->format, args->all) == 0)
		return 0;
	return gt_message(GT_EXIT_USAGE, "%s: cannot write: %s", args->output, strerror(errno));
}

int gt_args_done(const struct gt_args *args, struct gt_out *out, int status)
{
	if (gt_out_close(out, status == GT_EXIT_FINE || status == GT_EXIT_CHECK) == 0)
		return status;
	return gt_message(GT_EXIT_UNREADABLE, "%s: not everything was written: %s",
			  args->output ? args->output : "standard output", strerror(errno));
}
