/* SPDX-License-Identifier: MIT */
/* The instruction by which an entry point of the simulator goes on in another function. */
#ifndef SIM_JUMP_H
#define SIM_JUMP_H

#if defined(__x86_64__)
#define JUMP "jmp "
#elif defined(__aarch64__)
#define JUMP "b "
#else
#error "write the jump instruction of this machine here"
#endif

#endif
