/* SPDX-License-Identifier: MIT */
/*
 * A progress bar on standard error, for people who wait: only on a terminal, only after a second, and
 * gone before anything else is printed there. Begun and ended by cmd/session.c, around reading.
 */
#ifndef GT_BAR_H
#define GT_BAR_H

void gt_bar_begin(void);
void gt_bar_erase(void); /* before a message; it may come again */
void gt_bar_end(void);

#endif
