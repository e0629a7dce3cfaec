/* SPDX-License-Identifier: MIT */
/*
 * How callers reach the driver, and how we do. Rule: resolve first, substitute by address. The real
 * dlsym or cuGetProcAddress answers with the caller's own handle, version and flags; only if it
 * hands out the address of a function that we wrap does the caller get the wrapper. So no caller
 * gets a version it did not ask for, a function that its driver lacks, or somebody else's function
 * that only has the same name; a request for cuGetProcAddress itself is answered with ours like any
 * other.
 *
 * Real addresses are read from the symbol table of the loaded libcuda.so.1 (elf.c): no dlopen, no
 * dlsym, so dlerror stays the program's. May be reached before main, before cuInit and from any
 * thread; filling the table twice stores the same values. Shared with the nop library: nothing here
 * records.
 */
#include <string.h>

#include "elf.h"
#include "hook.h"

#define DRIVER "libcuda.so.1"

struct gt_driver gt_driver;
GT_TLS_SHARED struct gt_thread gt_thread;

/* dlsym_*.S jumps through the first two. */
__attribute__((visibility("hidden"))) void *(*gt_real_dlsym)(void *, const char *);
__attribute__((visibility("hidden"))) void *(*gt_real_dlvsym)(void *, const char *, const char *);
static int (*real_dlclose)(void *);

void gt_loader_find(void);
void *gt_dlsym_handle(void *handle, const char *name);
void *gt_dlvsym_handle(void *handle, const char *name, const char *version);

struct driver_entry {
	const char *name;
	void *wrapper;	 /* NULL: only called, not hooked */
	uint32_t offset; /* in struct gt_driver */
};

static const struct driver_entry entries[] = {
#define GT_DRIVER(kind, name, result, parameters, arguments, rule) \
	{#name, (void *)name, offsetof(struct gt_driver, name)},
#define GT_CALL(name, result, parameters) {#name, NULL, offsetof(struct gt_driver, name)},
#include "hooks.def"
};
#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

static void **real_of(const struct driver_entry *e)
{
	return (void **)((char *)&gt_driver + e->offset);
}

/* ---- finding the real ones ------------------------------------------------------------------- */

/* The loader's functions behind ours: another interposer's if one is loaded after us, else libc's.
 */
void gt_loader_find(void)
{
	int err = errno;

	gt_store(&real_dlclose, (int (*)(void *))gt_elf_next("dlclose"));
	gt_store(&gt_real_dlvsym,
		 (void *(*)(void *, const char *, const char *))gt_elf_next("dlvsym"));
	gt_store(&gt_real_dlsym, (void *(*)(void *, const char *))gt_elf_next("dlsym"));
	errno = err;
}

static bool is_driver(const struct gt_object *o, void *arg)
{
	if (strcmp(o->soname, DRIVER) != 0)
		return false;
	for (size_t i = 0; arg && i < ENTRIES; i++)
		gt_store_relaxed(real_of(&entries[i]), gt_elf_symbol(o, entries[i].name));
	return true;
}

static bool driver_found;

void gt_driver_find(void)
{
	int err = errno;

	if (!gt_load(&driver_found))
		gt_store(&driver_found, gt_elf_each(is_driver, (void *)entries));
	errno = err;
}

/* After a dlclose: addresses in an unloaded driver must not be called or substituted any more. */
static void forget_driver(void)
{
	if (!gt_load(&driver_found) || gt_elf_each(is_driver, NULL))
		return;
	gt_store(&driver_found, false);
	for (size_t i = 0; i < ENTRIES; i++)
		gt_store_relaxed(real_of(&entries[i]), NULL);
}

/* ---- handing out ours ------------------------------------------------------------------------ */

static const struct driver_entry *entry_of(void *real)
{
	for (size_t i = 0; real && i < ENTRIES; i++)
		if (*real_of(&entries[i]) == real && entries[i].wrapper)
			return &entries[i];
	return NULL;
}

/* What the code at pc gets that asked for a name and would have got the real function. */
static void *substitute(void *real, const char *via, const char *name, void *pc)
{
	const struct driver_entry *e = entry_of(real);

	gt_doctor_resolved(via, name, e ? e->name : real ? "-" : "!", (uint64_t)pc);
	return e ? e->wrapper : real;
}

/* The C part of dlsym: a name cu[A-Z]* on a real handle, where the caller's identity plays no role.
 */
void *gt_dlsym_handle(void *handle, const char *name)
{
	void *real;

	if (!gt_load(&gt_real_dlsym))
		gt_loader_find();
	if (!gt_real_dlsym)
		return NULL;
	real = gt_real_dlsym(handle, name);
	if (real)
		gt_driver_find();
	return substitute(real, "dlsym", name, __builtin_return_address(0));
}

void *gt_dlvsym_handle(void *handle, const char *name, const char *version)
{
	void *real;

	if (!gt_load(&gt_real_dlvsym))
		gt_loader_find();
	if (!gt_real_dlvsym)
		return NULL;
	real = gt_real_dlvsym(handle, name, version);
	if (real)
		gt_driver_find();
	return substitute(real, "dlvsym", name, __builtin_return_address(0));
}

int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	int rc;

	if (!GT_HAVE(cuGetProcAddress))
		return GT_CUDA_NOT_INITIALIZED;
	rc = gt_driver.cuGetProcAddress(name, out, version, flags);
	if (!rc && out)
		*out = substitute(*out, "cuGetProcAddress", name, __builtin_return_address(0));
	return rc;
}

/* A name that is not known is a success with a NULL address here; so is the "" that runtimes probe.
 */
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, uint32_t *status)
{
	int rc;

	if (!GT_HAVE(cuGetProcAddress_v2))
		return GT_CUDA_NOT_INITIALIZED;
	rc = gt_driver.cuGetProcAddress_v2(name, out, version, flags, status);
	if (!rc && out)
		*out = substitute(*out, "cuGetProcAddress_v2", name, __builtin_return_address(0));
	return rc;
}

/* ---- shared libcudart ------------------------------------------------------------------------ */

/*
 * Which libcudart a caller meant depends on the caller: a process may hold .12 and .13. The answer
 * stays with the call's return address, which cannot change its mind while it is loaded. Readers
 * take an entry only if its key is the same before and after; one writer at a time, others do
 * without.
 */
static struct runtime_entry {
	uint64_t key;
	void *real;
} runtime_cache[64];
static bool runtime_writing;

static void runtime_keep(struct runtime_entry *e, uint64_t key, void *real)
{
	if (__atomic_exchange_n(&runtime_writing, true, __ATOMIC_ACQUIRE))
		return;
	gt_store_relaxed(&e->key, 0);
	gt_store_barrier();
	gt_store_relaxed(&e->real, real);
	gt_store(&e->key, key);
	gt_store(&runtime_writing, false);
}

void *gt_runtime_find(uint64_t pc, const char *name)
{
	uint64_t key = pc ^ (uint64_t)name << 20;
	struct runtime_entry *e = &runtime_cache[(key ^ key >> 6 ^ key >> 20) % 64];
	int err = errno;
	void *real;

	if (gt_load(&e->key) == key) {
		real = gt_load(&e->real);
		if (gt_load(&e->key) == key)
			return real;
	}
	real = gt_elf_for_caller(pc, name);
	if (real)
		runtime_keep(e, key, real);
	errno = err;
	return real;
}

static void forget_runtime(void)
{
	for (size_t i = 0; i < sizeof(runtime_cache) / sizeof(runtime_cache[0]); i++)
		gt_store(&runtime_cache[i].key, 0);
}

/* ---- unloading ------------------------------------------------------------------------------- */

int dlclose(void *handle)
{
	int err = errno, rc;

	if (!gt_load(&real_dlclose))
		gt_loader_find();
	gt_modules_closing();
	errno = err;
	rc = real_dlclose ? real_dlclose(handle) : -1;
	err = errno;
	gt_modules_closed();
	forget_driver();
	forget_runtime();
	errno = err;
	return rc;
}
