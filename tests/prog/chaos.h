/* SPDX-License-Identifier: MIT */
/*
 * chaos.h - what the files of the chaos program share: its random numbers, its calls, its things.
 */
#ifndef GT_PROG_CHAOS_H
#define GT_PROG_CHAOS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIB	       ((size_t)1 << 20)
#define CHAOS_DEVICES  2
#define CHAOS_KEPT     48 /* of each kind, at most */
#define CHAOS_EXPORTED 8

enum chaos_kind {
	CHAOS_PTR, /* anything that cuMemFree takes */
	CHAOS_PINNED,
	CHAOS_REGISTERED,
	CHAOS_POOL,
	CHAOS_HANDLE,
	CHAOS_MAPPING,
	CHAOS_ARRAY,
	CHAOS_MODULE,
	CHAOS_EXTERNAL,
	CHAOS_OPENED,
	CHAOS_KINDS
};

struct chaos_thing {
	uint64_t value; /* pointer or handle */
	size_t size;
	int device;
};

/* Every call of the driver that may fail: counted, and at every n-th the books are printed. */
#define CALL(call) chaos_called(call)
CUresult chaos_called(CUresult rc);

/* Below n. */
uint64_t chaos_random(uint64_t n);
/* Log-uniform from 1 byte to `most`. */
size_t chaos_size(size_t most);

/* Kept for later, or false if there are enough of them; and a random one, taken out. */
bool chaos_room(enum chaos_kind kind);
void chaos_keep(enum chaos_kind kind, uint64_t value, size_t size);
bool chaos_take(enum chaos_kind kind, struct chaos_thing *ret);

/* The device whose primary context is current, and another one made current. */
extern int chaos_device;
void chaos_use_device(int device);

/* chaos_ops.c: does one thing, which is one call or a few. */
void chaos_do_something(void);
/* Gives back all that is left. */
void chaos_clean_up(void);

/* chaos_ipc.c: another process that exports memory, started before the driver. */
struct chaos_exports {
	CUipcMemHandle blocks[CHAOS_EXPORTED];
	int pid, fds[CHAOS_EXPORTED]; /* of VMM handles */
};
extern struct chaos_exports chaos_exports;
int chaos_start_exporter(void);
void chaos_stop_exporter(void);

#endif
