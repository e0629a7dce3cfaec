/* SPDX-License-Identifier: MIT */
/* Reads everything there is in a file that may be damaged in any way. */
#ifndef GT_TEST_SWALLOW_H
#define GT_TEST_SWALLOW_H

#include "read/trace.h"

enum swallowed {
	SWALLOWED_WHOLE,   /* read to the end, nothing wrong */
	SWALLOWED_REFUSED, /* one message, exit status 3 */
	SWALLOWED_BAD,	   /* anything else: text says what */
};

/* Opens, walks both ways and checks. text: the message, if any. */
enum swallowed swallow(const char *path, unsigned int flags, struct gt_error *ret);

#endif
