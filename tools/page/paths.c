/* SPDX-License-Identifier: MIT */
/*
 * Pages are mailed around: with --strip-paths a file's name keeps only what tells it apart, below
 * its package or the folder it lies in, and nothing of whose home that is. Called from names.c.
 */
#define _GNU_SOURCE
#include "page/names.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "symbols/library.h"

struct gt_paths {
	bool strip;
};

struct gt_paths *gt_paths_new(bool strip)
{
	struct gt_paths *paths = gt_xcalloc(1, sizeof(*paths));

	paths->strip = strip;
	return paths;
}

struct gt_paths *gt_paths_free(struct gt_paths *paths)
{
	free(paths);
	return NULL;
}

const char *gt_paths_shown(struct gt_paths *paths, const char *path)
{
	static const char *const roots[] = {"/site-packages/", "/dist-packages/"};

	if (!paths->strip)
		return path;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		const char *found = strstr(path, roots[i]);

		if (found)
			return found + strlen(roots[i]);
	}
	return gt_base_name(path);
}
