/* SPDX-License-Identifier: MIT */
/*
 * A loadable module; compilations with other FRAME have the same layout and other frame sizes,
 * those with other BUILD nothing but another build-id.
 */
const char *build_of_module(void);
void enter(void (*call)(void *), void *arg);
static __attribute__((noinline)) void INNER(void (*call)(void *), void *arg);

static void INNER(void (*call)(void *), void *arg)
{
	volatile char local[FRAME];

	local[0] = 1;
	call(arg);
	local[FRAME - 1] = local[0];
}

const char *build_of_module(void)
{
	return BUILD;
}

void enter(void (*call)(void *), void *arg)
{
	volatile char local[FRAME * 2];

	local[0] = 1;
	INNER(call, arg);
	local[FRAME - 1] = local[0];
}
