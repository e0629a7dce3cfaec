/* SPDX-License-Identifier: MIT */
/* Refused requests and how they ended. */
#ifndef GT_FAILURE_H
#define GT_FAILURE_H

#include "read/trace.h"

#define GT_CUDA_OUT_OF_MEMORY 2

enum gt_end {
	GT_END_RECOVERED, /* the same request was granted later */
	GT_END_CAUGHT,	  /* the thread went on to allocate on this device */
	GT_END_FATAL,	  /* neither, and the process ended */
	GT_END_OPEN,	  /* still running, or killed before it could go on */
};

const char *gt_end_name(enum gt_end end);

enum gt_end gt_report_end(const struct gt_trace *trace, const struct gt_report *report);

/* Bytes of the block that the program wanted: torch's own figure if it came through torch. */
uint64_t gt_report_block(const struct gt_report *report);

/*
 * Bytes asked, as the program's error names them: torch's message has the segment that it wanted for
 * the block, or the block where it maps pages piece by piece.
 */
uint64_t gt_report_asked(const struct gt_report *report);

/* Pages of an expandable segment are asked of the driver a piece at a time. */
bool gt_report_is_piece(const struct gt_report *report);

/*
 * What was asked of the driver less what it had free; 0 = refused although that is enough, or not known.
 * Pieces that were given before the refused one are given back before anybody asks what is free: of a
 * piece it is what lacked at least, for one more piece than are free, and for the block if all that is
 * cached were its begin.
 */
uint64_t gt_report_short(const struct gt_report *report);

/* Bytes of other processes on the device, as far as NVML was there to ask. */
uint64_t gt_report_others(const struct gt_report *report);

/* False: refused for another reason than lack of memory. */
bool gt_is_memory(const struct gt_report *report);

/* The failure that ended the run: the last fatal one, else the last open one, else NULL. */
const struct gt_report *gt_headline(const struct gt_trace *trace);

/* The lane of a report, by index into trace->lanes; lane_count when there is none. */
size_t gt_report_lane(const struct gt_trace *trace, const struct gt_report *report);

/* Who asked; a site without stacks where the trace does not know. */
const struct gt_site_def *gt_report_site(const struct gt_trace *trace,
					 const struct gt_report *report);

#endif
