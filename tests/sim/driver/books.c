/* SPDX-License-Identifier: MIT */
/*
 * books.c - how much of each device is given away, refusals on order, and the books for tests.
 *
 * Two accounts per device. `charged` is what cuMemGetInfo sees: granules, pools, physical handles,
 * contexts, modules, other processes. The books (gtsim.h) are what the program asked for, by
 * family.
 */
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* GT_SIM_FAIL_NTH=n: the n-th request for device memory, counted over all devices, is refused. */
bool sim_fail_now(void)
{
	static long requests;
	long nth = atol(sim_env("GT_SIM_FAIL_NTH", "0"));

	return nth && __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED) == nth;
}

/*
 * Every request for device memory ends here. GT_SIM_KILL_REFUSED=n: the process is killed, as by an
 * out-of-memory killer, inside the n-th request that is refused.
 */
CUresult sim_answer(CUresult rc)
{
	static long refused;

	if (rc == CUDA_ERROR_OUT_OF_MEMORY && __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED) ==
						      atol(sim_env("GT_SIM_KILL_REFUSED", "0")))
		kill(getpid(), SIGKILL);
	return rc;
}

/* Before a request is refused, pools give back what no block of theirs uses. */
CUresult sim_charge(struct sim_device *device, size_t bytes)
{
	if (bytes > device->capacity - device->charged)
		sim_pool_reclaim(device, true);
	if (bytes > device->capacity - device->charged)
		return CUDA_ERROR_OUT_OF_MEMORY;
	device->charged += bytes;
	return CUDA_SUCCESS;
}

void sim_uncharge(struct sim_device *device, size_t bytes)
{
	device->charged -= bytes;
}

void sim_book(struct gt_sim_books *books, enum gt_sim_family family, size_t bytes)
{
	books->bytes[family] += bytes;
	books->count[family]++;
}

void sim_unbook(struct gt_sim_books *books, enum gt_sim_family family, size_t bytes)
{
	books->bytes[family] -= bytes;
	books->count[family]--;
}

int gtSimBooks(int ordinal, struct gt_sim_books *ret_books)
{
	pthread_mutex_t *lock;

	if (ordinal < -1 || ordinal >= sim.devices)
		return -1;
	lock = ordinal < 0 ? &sim.lock : &sim.device[ordinal].lock;
	pthread_mutex_lock(lock);
	*ret_books = ordinal < 0 ? sim.host : sim.device[ordinal].books;
	pthread_mutex_unlock(lock);
	return 0;
}

int gtSimLedger(int ordinal, size_t *ret_bytes, size_t *ret_count)
{
	static const enum gt_sim_family asked_for[] = {
		GT_SIM_PLAIN, GT_SIM_MANAGED,	 GT_SIM_POOL_USED, GT_SIM_VMM,
		GT_SIM_ARRAY, GT_SIM_GRAPH_USED, GT_SIM_PINNED,	   GT_SIM_REGISTERED};
	struct gt_sim_books books;

	if (gtSimBooks(ordinal, &books))
		return -1;
	*ret_bytes = 0;
	*ret_count = 0;
	for (size_t i = 0; i < sizeof(asked_for) / sizeof(asked_for[0]); i++) {
		*ret_bytes += books.bytes[asked_for[i]];
		*ret_count += books.count[asked_for[i]];
	}
	return 0;
}

/* For the simulated management library. */
int gtSimDeviceMemory(int ordinal, size_t *ret_used, size_t *ret_total)
{
	if (ordinal < 0 || ordinal >= sim.devices)
		return -1;
	pthread_mutex_lock(&sim.device[ordinal].lock);
	*ret_used = sim.device[ordinal].charged;
	*ret_total = sim.device[ordinal].capacity;
	pthread_mutex_unlock(&sim.device[ordinal].lock);
	return 0;
}
