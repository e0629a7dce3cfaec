/* SPDX-License-Identifier: MIT */
/*
 * Follows the events of a running process as they are committed: for the tests of the reader, which see
 * each event of a recorder at work once. No command needs it: they ask for the state at one moment,
 * which gt_trace_open and gt_trace_look give exactly while the writer runs. A reader that is slower
 * than the writer and the ring misses events; they are counted.
 */
#ifndef GT_FOLLOW_H
#define GT_FOLLOW_H

#include "read/trace.h"

struct gt_follow;

int gt_follow_open(const char *path, struct gt_follow **ret, struct gt_error *err);
struct gt_follow *gt_follow_close(struct gt_follow *follow); /* accepts NULL, returns NULL */

/*
 * The next event of any lane, in order inside each lane, valid until the next call. NULL: there is
 * none now (err->status 0), or the file is damaged. Starts at the oldest event that is still held.
 */
const struct gt_event *gt_follow_next(struct gt_follow *follow, struct gt_error *err);
uint64_t gt_follow_missed(const struct gt_follow *follow);
bool gt_follow_running(const struct gt_follow *follow); /* the writer's process is alive */

#endif
