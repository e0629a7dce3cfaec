/* SPDX-License-Identifier: MIT */
/*
 * What would have become of a refused request if something had been different: the blocks of the
 * trace laid out again, by torch's own rules, without what a remedy takes away or in segments that
 * can grow.
 */
#ifndef GT_REPLAY_H
#define GT_REPLAY_H

#include "model/trial.h"

enum gt_replayed {
	GT_REPLAY_NOT, /* the history does not reach, or the request is not of the kind */
	GT_REPLAY_FITS,
	GT_REPLAY_FAILS,
};

/* The same segments, without the blocks that `drop` names. */
enum gt_replayed gt_replay_without(const struct gt_trial *t,
				   bool (*drop)(const struct gt_trial *t,
						const struct gt_block *block));

/*
 * All blocks since the beginning in torch's expandable segments. ret_bytes: what pages without a
 * block would have given back.
 */
enum gt_replayed gt_replay_expandable(const struct gt_trial *t, uint64_t *ret_bytes);

#endif
