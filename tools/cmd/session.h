/* SPDX-License-Identifier: MIT */
/* The traces that a command was given, opened, and what several commands say about them. */
#ifndef GT_SESSION_H
#define GT_SESSION_H

#include <dirent.h>
#include <jansson.h>
#include "cmd/cmd.h"
#include "model/answers.h"
#include "model/failure.h"
#include "model/group.h"
#include "out/table.h"

struct gt_input {
	struct gt_trace *trace;
	struct gt_symbols *symbols; /* made on first use: gt_input_symbols */
	enum gt_frames frames;	    /* which half of its stacks JSON shows */
	struct gt_answers *answers; /* likewise: gt_input_answers */
};

struct gt_session {
	struct gt_input *inputs;
	size_t count;
	char **paths;
	size_t path_count;
};

/* Files, and the traces in directories. 0, or the exit status after saying why. */
int gt_session_open(const struct gt_args *args, struct gt_session *ret);
void gt_session_close(struct gt_session *session);

/* The names of a folder's traces, as they are shown everywhere: pid 9 before pid 10. As scandir(). */
int gt_list_traces(const char *folder, struct dirent ***ret);

struct gt_symbols *gt_input_symbols(struct gt_input *input);

/* What is inferred about the trace; NULL without torch in it, or after damage that was told. */
const struct gt_answers *gt_input_answers(struct gt_input *input);

/* gt_state_get, with categories where there are some. 0, or the exit status after saying why. */
int gt_input_state(struct gt_input *input, size_t lane_index, enum gt_total total,
		   struct gt_when when, struct gt_state *ret);

/* gt_rows_of, with steps and phases where rows are those. 0, or the exit status. */
int gt_input_rows(struct gt_input *input, struct gt_state *state, enum gt_by by,
		  struct gt_rows *ret);

struct gt_place { /* a device of a process */
	struct gt_input *input;
	size_t lane_index;
	const struct gt_trace_lane *lane;
	uint64_t device_total; /* 0 = unknown */
};

struct gt_places {
	struct gt_session *session;
	struct gt_place *places; /* by input, then device */
	size_t count;
};

/* Devices that saw any event, those of --device only. */
struct gt_places gt_places_of(const struct gt_args *args, struct gt_session *session);

/* Both in one; what was opened is closed together. 0, or the exit status after saying why. */
int gt_places_open(const struct gt_args *args, struct gt_session *session, struct gt_places *ret);
void gt_places_close(struct gt_places *places);

/* 0, or the exit status after saying that --device names none of them. */
int gt_check_places(const struct gt_args *args, const struct gt_places *places);

/*
 * The frame of a command about devices: opens the traces and the destination, calls print with the
 * places, closes all. Returns the exit status.
 */
int gt_run_places(struct gt_args *args, int (*print)(struct gt_out *out, const struct gt_args *args,
						     const struct gt_places *places));

/* The place whose peak of the total comes closest to what its card has; NULL if there is none. */
const struct gt_place *gt_tightest(const struct gt_places *places, enum gt_total total);

uint64_t gt_device_total(const struct gt_trace *trace, int device);

/* "GPU 0", "host", "GPU ?". */
#define GT_DEVICE_TEXT 24
const char *gt_device_text(int device, char buffer[GT_DEVICE_TEXT]);

/* "5.23 of 8.00 GiB", or "5.23 GiB" when the card's size is not known. To be freed. */
char *gt_of_card(uint64_t bytes, uint64_t device_total);

/* The command line; with width > 0 without folders and cut to it. To be freed. */
char *gt_command_line(const struct gt_trace *trace, size_t width);

/* The chain of the user's frames of a site, short. To be freed. */
char *gt_where_text(struct gt_input *input, const struct gt_site_def *site);

/* A label in a sentence whose other words take that many columns of the screen. To be freed. */
char *gt_fitting(const struct gt_out *out, const char *text, size_t other_columns);

/* That of gt_where_text; rather than lose the middle of it, the innermost file and line alone. */
char *gt_where_fitting(const struct gt_out *out, struct gt_input *input,
		       const struct gt_site_def *site, size_t other_columns);

/* "pid 917"; "pid ?" of a torch snapshot, which does not say. */
#define GT_PID_TEXT 24
const char *gt_pid_text(const struct gt_trace *trace, char buffer[GT_PID_TEXT]);
void gt_table_pid(struct gt_table *table, const struct gt_trace *trace);
json_t *gt_json_pid(const struct gt_trace *trace);

/* "running", "exited", "killed", "snapshot". */
const char *gt_process_state(const struct gt_trace *trace);

/* "in use", "torch", "driver": the level that --level chose. */
const char *gt_level_text(enum gt_total total);

/* "torch", "driver" or "torch and driver": the level of the rows. */
const char *gt_rows_level(const struct gt_rows *rows);

/* Lines about what is missing; prints nothing when nothing is. */
void gt_print_loss(struct gt_out *out, const struct gt_trace *trace);

/* Above the answer about one of several traces: which. alone: the others are not shown. */
void gt_print_which(struct gt_out *out, const struct gt_places *places,
		    const struct gt_place *place, bool alone);

/* How an answer about a run without a refusal begins: a cut file may have lost the refusal. */
const char *gt_no_failure(const struct gt_trace *trace);
const char *gt_no_memory(const struct gt_trace *trace); /* and nothing was allocated */
size_t gt_loss_lines(const struct gt_trace *trace);

uint64_t gt_lost_events(const struct gt_trace *trace);

/* Since when all lanes have their history, in microseconds. */
uint64_t gt_history_starts(const struct gt_trace *trace);

/* ---- JSON ---- */

json_t *gt_json_frames(struct gt_stack stack);

/* {file, line, function} of a label's user frame; null when there is none. */
json_t *gt_json_where(const struct gt_label *label);

/* What was asked of torch for the row, as far as a torch snapshot tells. False: not known. */
bool gt_row_requested(const struct gt_trace *trace, const struct gt_row *row, uint64_t *ret);

/* "default", "private 0.1" of a graph or MemPool, "several"; "" where no torch snapshot tells. */
#define GT_POOL_TEXT 64
const char *gt_row_pool_text(const struct gt_trace *trace, const struct gt_row *row,
			     char buffer[GT_POOL_TEXT]);
const char *gt_private_pool_text(const struct gt_trace *trace, uint32_t pool,
				 char buffer[GT_POOL_TEXT]);
json_t *gt_json_ordinal(int device);

json_t *gt_json_category(uint8_t category); /* enum gt_category; null for none */

/* Bytes of each category at the state, which they add up to; null without any. */
json_t *gt_json_categories(const struct gt_state *state);

/* The same from their bytes. */
json_t *gt_json_category_bytes(const uint64_t bytes[GT_CATEGORIES]);

/* A holder: bytes, count, level, owner, category, stream, key, frames. */
json_t *gt_json_holder(struct gt_input *input, const struct gt_trace_lane *lane,
		       const struct gt_row *row, enum gt_by by, bool counted);

#endif
