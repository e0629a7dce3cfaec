/* SPDX-License-Identifier: MIT */
/* Calls through code outside all objects; see jit.c. */
#ifndef JIT_H
#define JIT_H

#include <stdbool.h>
#include <stdint.h>

bool jit_here(void); /* is there such code for this machine? */
void jit_announced(void (*call)(void *), void *arg, unsigned times);
void jit_silent(void (*call)(void *), void *arg, unsigned times);

#endif
