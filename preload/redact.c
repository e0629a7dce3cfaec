/* SPDX-License-Identifier: MIT */
/*
 * GPUTRACE_REDACT: what is left of a path that goes into the trace. Called wherever one does; works
 * in place, since a redacted path is never longer.
 */
#include <string.h>
#include "preload.h"

static bool within(const char *folder, size_t length, const char *part)
{
	return memmem(folder, length, part, strlen(part));
}

/*
 * A library's file is told from the user's own by where it lies, so that much is kept of its folder:
 * a word, never longer than the folder, in front of the name. Shared libraries have telling names.
 */
static const char *word_for(const char *folder, size_t length)
{
	if (within(folder, length, "-packages/torch/"))
		return "<torch>";
	if (within(folder, length, "-packages/"))
		return "<package>";
	return within(folder, length, "/python3") ? "<python>" : "";
}

size_t gt_redact_path(char *text, size_t length)
{
	const char *slash = memrchr(text, '/', length), *word;
	size_t folder, rest;

	if (!gt_options.redact || !slash)
		return length;
	folder = (size_t)(slash + 1 - text);
	rest = length - folder;
	word = rest >= 3 && !memcmp(slash + 1, "lib", 3) ? "" : word_for(text, folder);
	memmove(text + strlen(word), text + folder, rest);
	memcpy(text, word, strlen(word));
	return strlen(word) + rest;
}
