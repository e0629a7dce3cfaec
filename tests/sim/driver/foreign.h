/* SPDX-License-Identifier: MIT */
/*
 * foreign.h - memory of other processes, as the files about sharing use it. All under sim.lock.
 */
#ifndef GT_SIM_FOREIGN_H
#define GT_SIM_FOREIGN_H

#include "sim.h"

enum sim_foreign_kind { SIM_FOREIGN_BUFFER, SIM_FOREIGN_IPC, SIM_FOREIGN_POOL };

struct sim_foreign {
	enum sim_foreign_kind kind;
	CUdeviceptr ptr;
	size_t size;
	struct CUctx_st *ctx;
	unsigned int refs;
	uint64_t owner, id; /* of the exporting process, of the memory there */
	void *shared;	    /* the owner's table and the entry in it, for ipc.c */
	int entry;
	struct sim_foreign *next;
};

struct sim_foreign *sim_foreign_find(enum sim_foreign_kind kind, uint64_t owner, uint64_t id);

/* A copy of `what` with an address: contents of the file from offset on if it is long enough. */
struct sim_foreign *sim_foreign_add(const struct sim_foreign *what, int fd, size_t offset);

/* One reference less; false if no range starts there. */
bool sim_foreign_put(CUdeviceptr ptr, bool ipc);

/* ipc.c: the last reference of this process has gone. */
void sim_ipc_closed(const struct sim_foreign *range);

/* A descriptor that says what is shared, for another process or this one to read. */
int sim_share(const void *what, size_t size);
bool sim_shared(int fd, void *ret_what, size_t size);

#endif
