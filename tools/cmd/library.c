/* SPDX-License-Identifier: MIT */
/* See library.h. Relative to the tool, so that a build tree and any prefix work alike. */
#include "cmd/library.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "model/xalloc.h"

char *gt_find_library(void)
{
	static const char *const places[] = {
		"/libgputrace.so",
		"/../lib/libgputrace.so",
		"/../lib/gputrace/libgputrace.so",
		"/../lib64/libgputrace.so",
		"/../lib/x86_64-linux-gnu/libgputrace.so",
		"/../lib/aarch64-linux-gnu/libgputrace.so",
	};
	char self[PATH_MAX], *found = NULL;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length <= 0)
		return NULL;
	self[length] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; !found && i < sizeof(places) / sizeof(places[0]); i++) {
		char *path = gt_xcalloc(strlen(places[i]) + strlen(self) + 1, 1);

		strcpy(stpcpy(path, self), places[i]);
		found = realpath(path, NULL);
		free(path);
	}
	return found;
}

/* Behind what is there: sanitizers insist on being first. */
void gt_set_preload(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *value;

	if (!before || !*before)
		value = gt_xstrdup(library);
	else if (strstr(before, library))
		return;
	else
		value = gt_xasprintf("%s:%s", before, library);
	setenv("LD_PRELOAD", value, 1);
	free(value);
}
