/* SPDX-License-Identifier: MIT */
/*
 * What gputrace doctor knows: the functions of the recorder and of the driver, and, after a command
 * has run, who looked up what and which objects were in its processes.
 */
#ifndef GT_PROBE_H
#define GT_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct gt_names {
	char **names;
	size_t count;
};

/* Functions that an object file exports. Empty if it is none. */
struct gt_names gt_exports_of(const char *path);
void gt_free_names(struct gt_names *names);

/* A function of the driver that hands out or takes memory, by its name. */
bool gt_is_memory_call(const char *name);

struct gt_entry_point {
	char *name;
	bool hooked;		 /* we stand before it */
	bool resolved;		 /* somebody got it, through us or the loader */
	struct gt_names seen;	 /* elf, dlsym, dlvsym, cuGetProcAddress, cuGetProcAddress_v2 */
	struct gt_names modules; /* who asked */
};

struct gt_probe {
	struct gt_entry_point *points; /* by name */
	size_t point_count;
	struct gt_names objects;  /* of all processes, in the order seen */
	struct gt_names runtimes; /* asked for cuGetProcAddress: each holds a CUDA runtime, */
				  /* or knows the driver as one does */
	struct gt_names
		interposers; /* other objects that define dlsym or functions of the driver */
	struct gt_names
		before; /* those of them with a dlsym that were loaded before the recorder */
	struct gt_names sanitizers;
	struct {
		char *version, *state, *why; /* found, read, refused; NULL = no interpreter */
	} python;
	size_t processes, other_drivers; /* copies of libcuda in namespaces of their own, at most */
	char *driver;			 /* path, NULL = none was loaded */
	int status;			 /* of the command */
};

/* Runs the command with the recorder preloaded; its traces go to a folder that is removed. */
int gt_probe_run(char **command, const char *library, struct gt_probe *ret);
/* Without a command: only what the driver has and the library hooks. */
void gt_probe_static(const struct gt_names *hooks, const char *driver, struct gt_probe *probe);
void gt_probe_clear(struct gt_probe *probe);

#endif
