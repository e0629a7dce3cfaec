/* SPDX-License-Identifier: MIT */
/*
 * The table of library.h. Pure functions of names, but for
 * --mine; called for each frame once. The first row that
 * matches counts. Names are beginnings, because wheels bundle copies with a hash in the name
 * (libgomp-1234.so.1), and they come before folders, because wheels put NVIDIA's libraries and
 * torch's own into the same site-packages.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <string.h>
#include <fnmatch.h>

#include "symbols/library.h"

struct row {
	enum gt_library library;
	const char *words; /* separated by blanks */
};

/* Beginning of the base name. */
static const struct row by_name[] = {
	{GT_LIBRARY_CUDA, "libcudart. libcuda. libcudadebugger. libnvidia- libgputrace"},
	{GT_LIBRARY_VENDOR,
	 "libcublas libcudnn libcufft libcurand libcusolver libcusparse libnccl"},
	{GT_LIBRARY_VENDOR, "libnvrtc libnvJitLink libcupti libnvToolsExt libnvshmem libcufile"},
	{GT_LIBRARY_VENDOR, "libnpp"},
	{GT_LIBRARY_CXX, "libstdc++. libc++ libgcc_s libunwind"},
	{GT_LIBRARY_SYSTEM,
	 "libc.so libc-2. ld-linux ld-2. libpthread libdl. libm. librt. libgomp"},
	{GT_LIBRARY_SYSTEM, "libiomp libffi linux-vdso linux-gate ["},
	{GT_LIBRARY_TORCH, "libtorch libc10 libcaffe2"},
	{GT_LIBRARY_PYTHON, "libpython python3"},
};

/* Anywhere in the path. */
static const struct row by_folder[] = {
	{GT_LIBRARY_TORCH, "/site-packages/torch/ /dist-packages/torch/ <torch>"},
	{GT_LIBRARY_TORCH,
	 "/site-packages/triton/ /dist-packages/triton/ /.triton/ /torchinductor_"},
	{GT_LIBRARY_PACKAGE, "/site-packages/ /dist-packages/ <package>"},
	{GT_LIBRARY_PYTHON, "/lib-dynload/ /lib/python3 /lib64/python3 <frozen <python>"},
};

/* Beginning of the path of a header whose code was inlined. */
static const struct row by_header[] = {
	{GT_LIBRARY_SYSTEM, "/usr/include/ /usr/lib/"},
	{GT_LIBRARY_CUDA, "/usr/local/cuda"},
};

#define ROWS(table) (table), sizeof(table) / sizeof((table)[0])

const char *gt_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool matches(const char *words, const char *text, bool anywhere)
{
	size_t length;

	for (; *words; words += length + (words[length] == ' ')) {
		length = strcspn(words, " ");
		if (anywhere ? !!memmem(text, strlen(text), words, length)
			     : !strncmp(text, words, length))
			return true;
	}
	return false;
}

static enum gt_library find(const struct row *rows, size_t count, const char *text, bool anywhere)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (matches(rows[i].words, text, anywhere))
			return rows[i].library;
	return GT_LIBRARY_USER;
}

enum gt_library gt_library_of_object(const char *path)
{
	enum gt_library library = find(ROWS(by_name), gt_base_name(path), false);

	return library ? library : find(ROWS(by_folder), path, true);
}

static const char *mine_glob;

void gt_library_mine(const char *glob)
{
	mine_glob = glob;
}

/* "src/x.py" means so in any folder; what starts with a slash is a whole path. */
static bool is_mine(const char *file)
{
	const char *at = file;

	if (*mine_glob == '/')
		return fnmatch(mine_glob, file, 0) == 0;
	while (at && fnmatch(mine_glob, at, 0) != 0) {
		at = strchr(at, '/');
		at = at ? at + 1 : NULL;
	}
	return at;
}

enum gt_library gt_library_of_python(const char *file)
{
	enum gt_library found = find(ROWS(by_folder), file, true);

	if (!mine_glob || found == GT_LIBRARY_TORCH)
		return found;
	if (is_mine(file))
		return GT_LIBRARY_USER;
	return found == GT_LIBRARY_USER ? GT_LIBRARY_PACKAGE : found;
}

/*
 * A function of the statically linked CUDA runtime, which stands in the user's object:
 * "cudaMalloc",
 * "__cudart1287", but not someone's own "cuda_helper".
 */
static bool runtime_name(const char *name)
{
	if (!strncmp(name, "cuda", 4))
		return name[4] >= 'A' && name[4] <= 'Z';
	return matches("__cudart libcudart_static", name, false);
}

enum gt_library gt_library_of_frame(const char *function, const char *file)
{
	return runtime_name(function) ? GT_LIBRARY_CUDA : find(ROWS(by_header), file, false);
}
