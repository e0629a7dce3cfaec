/* SPDX-License-Identifier: MIT */
/* Lanes without their locks: what the race detector must report, or its silence about the others says nothing. */
#include "../../preload/recorder.h"
#define gt_lock(lock)	((void)(lock))
#define gt_unlock(lock) ((void)(lock))
#include "../../preload/lane.c" /* NOLINT */
