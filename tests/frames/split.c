/* SPDX-License-Identifier: MIT */
/* A function of the interpreter's name, part of which the compiler puts elsewhere. Then stripped. */
typedef int allocate_fn(unsigned long size);

/* Whoever calls this is on a way that is hardly taken. */
static __attribute__((cold, noinline)) void seldom(void)
{
	__asm__ volatile("");
}

int _PyEval_EvalFrameDefault(allocate_fn *allocate, unsigned long size)
{
	if (size) {
		seldom();
		return allocate(size) + 1; /* no tail call */
	}
	return 0;
}
