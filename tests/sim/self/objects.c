/* SPDX-License-Identifier: MIT */
/*
 * objects.c - devices, contexts, events, addresses, forks, and the management library.
 */
#include "self.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void devices(void)
{
	CUdevice device;
	size_t total;
	int count;

	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	EQUAL(count, 2); /* of three, two are visible */
	EQUAL(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceTotalMem_v2(&total, 1));
	EQUAL(total, 512 * MIB);
}

static void no_device(void)
{
	EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
	EQUAL(cuMemFree_v2(1), CUDA_ERROR_NOT_INITIALIZED);
}

static void contexts(void)
{
	CUcontext primary = self_start(), made, current;
	CUdeviceptr ptr;

	EQUAL(self_free_bytes(), 8192 * MIB - 300 * MIB);
	OK(cuCtxCreate_v2(&made, 0, 0));
	EQUAL(self_free_bytes(), 8192 * MIB - 600 * MIB);
	OK(cuCtxGetCurrent(&current));
	EQUAL(current, made);
	OK(cuCtxDestroy_v2(made));
	OK(cuCtxGetCurrent(&current));
	EQUAL(current, primary);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	EQUAL(cuMemAlloc_v2(&ptr, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuCtxSetCurrent(NULL));
	EQUAL(cuMemAlloc_v2(&ptr, 1), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

static void event_lag(void)
{
	CUevent event;

	self_start();
	OK(cuEventCreate(&event, 0));
	OK(cuEventQuery(event));
	OK(cuEventRecord(event, NULL));
	EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	OK(cuEventQuery(event));
	OK(cuEventRecord(event, NULL));
	OK(cuEventSynchronize(event));
	OK(cuEventQuery(event));
}

static void addresses(void)
{
	CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	unsigned int type = 9;
	void *data = &type;
	CUdeviceptr ptr, base;
	size_t size;
	int local;

	self_start();
	OK(cuMemAlloc_v2(&ptr, 10000));
	OK(cuMemGetAddressRange_v2(&base, &size, ptr + 9999));
	EQUAL(base, ptr);
	EQUAL(size, 10000);
	EQUAL(cuMemGetAddressRange_v2(&base, &size, ptr + 10000), CUDA_ERROR_NOT_FOUND);
	OK(cuPointerGetAttribute(&type, which, ptr));
	EQUAL(type, CU_MEMORYTYPE_DEVICE);
	EQUAL(cuPointerGetAttribute(&type, which, (uintptr_t)&local), CUDA_ERROR_INVALID_VALUE);
	OK(cuPointerGetAttributes(1, &which, &data, (uintptr_t)&local));
	EQUAL(type, 0);
}

/* What an allocation returns in a child of a process that has used the driver. */
static CUresult in_child(void)
{
	CUdeviceptr ptr;
	int status;
	pid_t child;

	self_start();
	child = fork();
	if (!child)
		_exit((int)cuMemAlloc_v2(&ptr, 1));
	EQUAL(waitpid(child, &status, 0), child);
	TRUE(WIFEXITED(status));
	return (CUresult)WEXITSTATUS(status);
}

static void fork_refused(void)
{
	EQUAL(in_child(), CUDA_ERROR_NOT_INITIALIZED);
}

static void fork_allowed(void)
{
	EQUAL(in_child(), CUDA_SUCCESS);
}

struct process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

static void other_processes(void)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*by_index)(unsigned int, void **);
	int (*running)(void *, unsigned int *, struct process *);
	struct process list[8];
	unsigned int count = 8;
	CUdeviceptr ptr;
	void *device;

	TRUE(nvml);
	self_start();
	OK(cuMemAlloc_v2(&ptr, 10 * MIB));
	EQUAL(self_free_bytes(), (8192 - 10 - 1500) * MIB);
	by_index = (__typeof__(by_index))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
	running = (__typeof__(running))dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
	OK(by_index(0, &device));
	OK(running(device, &count, list));
	EQUAL(count, 3);
	EQUAL(list[1].pid, 78);
	EQUAL(list[1].used, 500 * MIB);
	EQUAL(list[2].pid, getpid());
	EQUAL(list[2].used, 10 * MIB);
	count = 1;
	EQUAL(running(device, &count, list), 7); /* insufficient size, and how much is needed */
	EQUAL(count, 3);
}

struct nvml_memory {
	unsigned long long total, free, used;
};

/* A process that has no driver of its own sees the device all the same. */
static void no_driver(void)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*by_index)(unsigned int, void **);
	int (*memory_of)(void *, struct nvml_memory *);
	int (*rates_of)(void *, unsigned int *);
	struct nvml_memory memory;
	unsigned int rates[2];
	void *device;

	TRUE(nvml);
	by_index = (__typeof__(by_index))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
	memory_of = (__typeof__(memory_of))dlsym(nvml, "nvmlDeviceGetMemoryInfo");
	rates_of = (__typeof__(rates_of))dlsym(nvml, "nvmlDeviceGetUtilizationRates");
	OK(by_index(0, &device));
	OK(memory_of(device, &memory));
	EQUAL(memory.total, 4096 * MIB);
	EQUAL(memory.used, 1000 * MIB);
	OK(rates_of(device, rates));
	EQUAL(rates[0], 37);
	EQUAL(rates[1], 5);
}

const struct self_case self_object_cases[] = {
	{"devices", devices, "GT_SIM_DEVICES=3 CUDA_VISIBLE_DEVICES=2,0 GT_SIM_CAPACITY=512M"},
	{"no-device", no_device, "GT_SIM_DEVICES=0"},
	{"contexts", contexts, "GT_SIM_CONTEXT_COST=300M"},
	{"event-lag", event_lag, "GT_SIM_EVENT_LAG=2"},
	{"addresses", addresses, NULL},
	{"fork-refused", fork_refused, NULL},
	{"fork-allowed", fork_allowed, "GT_SIM_FORK=1"},
	{"other-processes", other_processes, "GT_SIM_OTHERS=77:1000,78:500"},
	{"no-driver", no_driver,
	 "GT_SIM_OTHERS=77:1000 GT_SIM_CAPACITY=4G GT_SIM_UTILIZATION=37:5"},
	{NULL, NULL, NULL},
};
