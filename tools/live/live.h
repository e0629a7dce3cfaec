/* SPDX-License-Identifier: MIT */
/*
 * Running processes, looked at again and again. Three parts that do not know each other's insides:
 *
 *   find.c     which traces: of a directory, a process, all processes
 *   look.c     counters and rates per process and device          rows.c     sites put together by line
 *   view.c     what the user chose: keys in, no drawing           screen.c   a buffer of cells
 *   draw.c     state and choice -> cells                          terminal.c cells -> ncurses, keys
 *
 * A look only loads from a read-only mapping of the file: no signal, no lock, no write, nothing that
 * the traced process could notice. Called from cmd/live.c.
 */
#ifndef GT_LIVE_H
#define GT_LIVE_H

#include <uthash.h>
#include "symbols/symbols.h"

#define GT_LIVE_PAST 16 /* looks that a trend is taken from, in four windows */

struct gt_live_row { /* what the sites of one line hold, of one device and level */
	UT_hash_handle hh;
	char *key;
	char *text, *full; /* short, and with whole paths */
	const char *file;  /* of the user's frame; "" = not known. As long as the row. */
	int line;
	size_t process; /* in gt_live */
	int device;
	uint32_t mask; /* totals that it counts in, by enum gt_total */
	bool torch, named;
	uint64_t bytes, count, ever, ever_count;
	uint64_t most;	     /* bytes of the site below */
	uint32_t lane, site; /* the largest, whose stack is shown */
	uint64_t ever_before;
	double allocs_per_second; /* since the look before */
	uint64_t past[GT_LIVE_PAST];
	int trend;     /* 1: its least bytes rose from window to window; -1: fell */
	double growth; /* bytes per second, while there is a trend */
};

struct gt_live_device { /* of a process */
	uint32_t lane;
	int device;
	uint64_t card; /* 0 = not known */
	uint8_t uuid[16];
	struct gt_ctr now;
	uint64_t allocs_before, bytes_before;
	bool rated;
	double allocs_per_second, bytes_per_second;
};

struct gt_live_sites { /* of a lane: the row of each site; NULL = not named yet */
	uint32_t lane;
	struct gt_live_row **rows;
	size_t count, next; /* next = first that may not be named */
};

struct gt_live_process {
	char *path;
	struct gt_trace *trace;
	struct gt_symbols *symbols; /* NULL until a name is asked for */
	struct gt_live_row *rows;
	struct gt_live_sites *sites;
	size_t site_lanes;
	struct gt_live_device *devices;
	size_t device_count;
	double looked; /* seconds, monotonic; 0 = never */
	long rank;     /* -1 = none */
	char *program; /* the script, of an interpreter */
	bool broken;   /* the file cannot be read any more */
};

struct gt_live {
	struct gt_live_process *processes; /* in the order found */
	size_t count;
	char **seen; /* paths that were looked at, shown or not */
	size_t seen_count;
	unsigned int looks;
	double times[GT_LIVE_PAST]; /* of the last looks */
	double searched;	    /* when processes were last searched for */
	double naming;		    /* seconds that a look may spend on new names, per process */
	bool all;		    /* also what had ended before it was found */
	int device;		    /* INT_MIN = all */
	long rank;		    /* -1 = all */
};

enum gt_live_sort {
	GT_LIVE_BY_BYTES,
	GT_LIVE_BY_GROWTH,
	GT_LIVE_BY_COUNT,
	GT_LIVE_BY_RATE,
	GT_LIVE_SORTS,
};

/* ---- find.c ---- */

/* Is it time to search again? It costs as much as a look, and finds something once in a while. */
bool gt_live_due(struct gt_live *live, bool everywhere);
/* Adds the traces of an operand that are not there yet: FILE, DIR, PID; NULL: every process. */
void gt_live_find(struct gt_live *live, const char *operand);
/* Is there a trace of this process below the folder? Its path, to be freed, or NULL. */
char *gt_live_trace_of(const char *folder, uint32_t pid);

/* ---- look.c ---- */

/* 0, or -1 with err. ended: also when its process has ended. */
int gt_live_add(struct gt_live *live, const char *path, bool ended, struct gt_error *err);
void gt_live_look(struct gt_live *live);
size_t gt_live_running(const struct gt_live *live);
const char *gt_live_state(const struct gt_live_process *process); /* running, exited, killed */
void gt_live_free(struct gt_live *live);
double gt_live_now(void);

/* ---- rows.c ---- */

/* Bytes of the rows from the trace's lanes; number = index of the process. */
void gt_live_fill(struct gt_live *live, size_t number, double seconds);
/* Those of a total with anything in them, of a process or all (SIZE_MAX). To be freed. */
struct gt_live_row **gt_live_sorted(const struct gt_live *live, size_t process, uint32_t total,
				    enum gt_live_sort sort, size_t *ret_count);
/* Lines of the row's stack, outermost first; to be freed. */
char **gt_live_stack(struct gt_live *live, const struct gt_live_row *row, size_t *ret_count);
void gt_live_rows_free(struct gt_live_process *process);

#endif
