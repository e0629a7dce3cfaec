/* SPDX-License-Identifier: MIT */
/* What symbols knows of a trace, put into a packed copy of it. */
#ifndef GT_SYMBOLS_EMBED_H
#define GT_SYMBOLS_EMBED_H

#include "read/pack.h"
#include "symbols/symbols.h"

/* Every address of every stack, and the lines of the user's own frames. */
void gt_symbols_embed(struct gt_symbols *symbols, struct gt_pack *pack);

#endif
