/* SPDX-License-Identifier: MIT */
/* Tables of the compilations of hook.c and scenes.cc; HOOKS and SCENES come from stacks.mk. */
#include "scenes.h"

#define X(name) uint32_t name(void);
HOOKS
#undef X

#define X(name) name,
uint32_t (*const check_hooks[])(void) = {HOOKS};
#undef X
const unsigned check_hook_count = sizeof(check_hooks) / sizeof(check_hooks[0]);

#define X(name) extern const struct scenes name;
SCENES
#undef X

#define X(name) &name,
const struct scenes *const all_scenes[] = {SCENES};
#undef X
const unsigned scenes_count = sizeof(all_scenes) / sizeof(all_scenes[0]);

uint32_t hook(void)
{
	static unsigned turn;

	return check_hooks[__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % check_hook_count]();
}
