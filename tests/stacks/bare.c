/* SPDX-License-Identifier: MIT */
/* Compiled without unwind information: what is outside of these frames cannot be known. */
void bare_outer(void (*call)(void *), void *arg, int depth);
void bare_outer(void (*call)(void *), void *arg, int depth)
{
	volatile char local[48];

	local[depth] = 1;
	if (depth)
		bare_outer(call, arg, depth - 1);
	else
		call(arg);
	local[depth] += local[0];
}
