/* SPDX-License-Identifier: MIT */
/*
 * All memory of one device at a moment, as rows that add up to its size: what each process got and
 * for whom, contexts, modules, other processes, what is free, and what nothing here explains. That
 * last row may be negative (a context that another process shares, a driver that rounds) and is
 * never left out.
 */
#ifndef GT_LEDGER_H
#define GT_LEDGER_H

#include "model/state.h"
#include "symbols/symbols.h"

enum gt_ledger_kind {
	GT_LEDGER_TORCH,   /* blocks of torch */
	GT_LEDGER_CACHED,  /* torch's segments less its blocks */
	GT_LEDGER_LIBRARY, /* driver allocations that one library asked for */
	GT_LEDGER_POOLS,   /* what the driver's pools and graphs hold and nobody uses */
	GT_LEDGER_CONTEXT,
	GT_LEDGER_MODULES, /* code and global variables, by the library that loaded them */
	GT_LEDGER_OTHER,   /* a process without a trace */
	GT_LEDGER_UNEXPLAINED,
	GT_LEDGER_FREE,
	GT_LEDGER_REST, /* free and unexplained, where no sample of the device parts them */
};

enum gt_measured {
	GT_MEASURED_EXACT,   /* the program's own calls */
	GT_MEASURED_ALONE,   /* change of free memory while nothing else happened in the process */
	GT_MEASURED_MIXED,   /* the same, but something else did happen */
	GT_MEASURED_AT_MOST, /* all that was taken and not accounted for right afterwards */
	GT_MEASURED_SAMPLED,
	GT_MEASURED_NVML,
	GT_MEASURED_DERIVED, /* the sum less everything else; from an earlier sample */
	GT_MEASURED_NOT,     /* no figure: 0 here, the bytes are in what is unexplained */
};

#define GT_LEDGER_NOBODY SIZE_MAX

struct gt_ledger_process {
	const struct gt_trace *trace;
	struct gt_symbols *symbols;
	size_t lane_index;     /* of the device */
	uint64_t device_total; /* 0 = not known */
	/* Of the leading one: its state after the event, if it is known already; else NULL. */
	const struct gt_state *state;
};

struct gt_ledger_row {
	enum gt_ledger_kind kind;
	enum gt_measured measured;
	int64_t bytes;
	size_t process;		 /* index of the processes given, or GT_LEDGER_NOBODY */
	uint32_t pid;		 /* 0 = nobody's */
	const char *name;	 /* library, or other process; "" = none */
	struct gt_site_def site; /* who asked: the largest of a library; stacks only */
	bool idle;		 /* of a context: its process never allocated on this device */
};

struct gt_ledger {
	struct gt_ledger_row *rows; /* idle contexts first, then by process; free last */
	size_t row_count;
	struct gt_ledger_row *host; /* pinned host memory, one row per process and line */
	size_t host_count;
	uint64_t total;	   /* of the device; 0 = not known: rows do not add up to anything */
	uint64_t us;	   /* the moment, in the leading process's time */
	int64_t sample_us; /* when the device's free memory was asked last; in the same time */
	bool sampled;
	char (*names)[24]; /* of other processes */
};

/*
 * After event seq of processes[lead], at its time us; of the others at the same time, those that had
 * begun and not ended. 0, or -1 with err when a history does not reach back to then.
 */
int gt_ledger_make(const struct gt_ledger_process *processes, size_t count, size_t lead,
		   uint64_t seq, uint64_t us, struct gt_ledger *ret, struct gt_error *err);
void gt_ledger_clear(struct gt_ledger *ledger);

/* What nvidia-smi shows for a process: its rows. */
int64_t gt_ledger_of(const struct gt_ledger *ledger, size_t process);

const char *gt_ledger_kind_name(enum gt_ledger_kind kind); /* "torch-allocated" */
const char *gt_measured_name(enum gt_measured measured);   /* "exact", "at most" */

#endif
