/* SPDX-License-Identifier: MIT */
/*
 * Code made at run time, outside all objects: with its frames announced to libgcc (as JIT compilers
 * do) stacks are whole, without they end there and say so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "jit.h"

#ifdef __x86_64__

void __register_frame(void *frames);
void __deregister_frame(void *frames);

/* push rbp; mov rbp, rsp; mov rax, rdi; mov rdi, rsi; call rax; pop rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
				     0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};

/* One CIE (zR, absolute pointers, CFA = rsp + 8), one FDE that follows the code above. */
static struct __attribute__((packed)) {
	uint32_t cie_length, cie_id;
	unsigned char cie[16];
	uint32_t fde_length, fde_back;
	uint64_t start, length;
	unsigned char fde[16];
	uint32_t end;
} frames = {
	.cie_length = 20,
	.cie = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1},
	.fde_length = 36,
	.fde_back = 28,
	.length = sizeof(code),
	.fde = {0, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x49, 0x0c, 7, 8},
};

static void call_through_code(void (*call)(void *), void *arg, unsigned times)
{
	static void *page;

	if (!page) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(page, code, sizeof(code));
	}
	frames.start = (uint64_t)page;
	while (times-- > 0)
		((void (*)(void (*)(void *), void *))page)(call, arg);
}

bool jit_here(void)
{
	return true;
}

void jit_announced(void (*call)(void *), void *arg, unsigned times)
{
	call_through_code(call, arg, 0);
	__register_frame(&frames);
	call_through_code(call, arg, times);
	__deregister_frame(&frames);
}

void jit_silent(void (*call)(void *), void *arg, unsigned times)
{
	call_through_code(call, arg, times);
}

#else

bool jit_here(void)
{
	return false;
}

void jit_announced(void (*call)(void *), void *arg, unsigned times)
{
}

void jit_silent(void (*call)(void *), void *arg, unsigned times)
{
}

#endif
