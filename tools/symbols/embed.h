/* SPDX-License-Identifier: MIT */
/* What symbols knows of a trace, for a copy of it: a packed trace, a database. */
#ifndef GT_SYMBOLS_EMBED_H
#define GT_SYMBOLS_EMBED_H

#include "read/pack.h"
#include "symbols/symbols.h"

struct gt_embed { /* who takes it */
	void (*name)(void *ctx, const struct gt_pack_name *name);
	void (*source)(void *ctx, const char *file, int line, const char *text); /* NULL = none */
	void *ctx;
};

/* Every address of every stack, and the lines of the user's own frames. */
void gt_symbols_embed(struct gt_symbols *symbols, const struct gt_embed *to);

#endif
