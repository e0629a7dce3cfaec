// SPDX-License-Identifier: MIT
/*
 * A library whose addresses the symbol tests look up: a C++ name with parameters, a function
 * inlined into it, a hidden function that only debug information or a full symbol table can name.
 * Each returns the address after a call inside it; the comments at the ends of lines are looked up
 * by the test.
 */
#include <cstdint>

#define NOINLINE __attribute__((noinline))

static NOINLINE uintptr_t here()
{
	return reinterpret_cast<uintptr_t>(__builtin_return_address(0));
}

namespace probe
{
inline __attribute__((always_inline)) uintptr_t inner()
{
	volatile uintptr_t pc = here(); /* line: inner */
	return pc;
}

struct Outer {
	uintptr_t place(int, const char *);
};

uintptr_t Outer::place(int, const char *)
{
	volatile uintptr_t pc = inner(); /* line: outer */
	return pc;
}
} // namespace probe

static NOINLINE uintptr_t hidden_place()
{
	volatile uintptr_t pc = here(); /* line: hidden */
	return pc;
}

extern "C" uintptr_t probe_cxx()
{
	return probe::Outer().place(1, "");
}

extern "C" uintptr_t probe_hidden()
{
	return hidden_place();
}

/* Stands for the interpreter's: stacks are merged by its name. */
extern "C" uintptr_t _PyEval_EvalFrameDefault()
{
	volatile uintptr_t pc = here();
	return pc;
}
