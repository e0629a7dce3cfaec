/* SPDX-License-Identifier: MIT */
/*
 * How files that somebody names are opened for reading. A server that is given names by others limits
 * itself to one folder: then the kernel resolves each name below it and refuses those that lead out,
 * by "..", by a link or from the root, in the very call that opens, so that nothing can be exchanged
 * between a check and its use.
 */
#ifndef GT_BENEATH_H
#define GT_BENEATH_H

/* A descriptor, or -1 with errno; EXDEV: it leads out of the folder. A FIFO does not wait for a writer. */
int gt_open_read(const char *path);

/* From now on, in the whole process: only below this folder, a descriptor that stays open. */
void gt_read_beneath(int directory);

#endif
