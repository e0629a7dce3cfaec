/* SPDX-License-Identifier: MIT */
/* Where the recorder is installed. */
#ifndef GT_CMD_LIBRARY_H
#define GT_CMD_LIBRARY_H

/* Absolute path of libgputrace.so beside the tool or in its library folder; NULL. To be freed. */
char *gt_find_library(void);

/* Puts it into LD_PRELOAD of this process, for the children. */
void gt_set_preload(const char *library);

#endif
