/* SPDX-License-Identifier: MIT */
/*
 * table.c - the entry points that driver.def lists and no other file defines.
 *
 * Two kinds, each a jump so that every exported name has an address of its own, as in the real
 * driver: the per-thread-stream twin of a function (streams do nothing here, so the function
 * itself does the work) and functions that the simulator does not have, which say so.
 */
#include "../jump.h"

int sim_not_supported(void);

int sim_not_supported(void)
{
	return 801; /* CUDA_ERROR_NOT_SUPPORTED */
}

#define ENTRY(symbol, target)                    \
	__asm__(".text\n"                        \
		".globl " #symbol "\n"           \
		".type " #symbol ", %function\n" \
		".p2align 4\n" #symbol ":\n"     \
		"\t" JUMP #target "\n"           \
		".size " #symbol ", . - " #symbol "\n");

#define TWIN_none(symbol, target)
#define TWIN_ptsz(symbol, target) ENTRY(symbol##_ptsz, target)
#define TWIN_ptds(symbol, target) ENTRY(symbol##_ptds, target)

#define SIM_FN(name, since, symbol, twin, asked) TWIN_##twin(symbol, symbol)
#define SIM_NO(name, since, symbol, twin, asked) \
	ENTRY(symbol, sim_not_supported) TWIN_##twin(symbol, sim_not_supported)

#include "driver.def"
