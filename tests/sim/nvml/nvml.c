/* SPDX-License-Identifier: MIT */
/*
 * nvml.c - the simulated management library: devices, memory, processes.
 *
 * It reads the same environment as the driver and takes memory figures from the driver of this
 * process, if there is one. Other processes on the device are scripted by GT_SIM_OTHERS
 * ("pid:MiB,..."). NVLink and fabric questions get a plain "not supported". The structures are the
 * public ones of NVML, written down here because its header comes with no toolkit.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 16

enum { NVML_SUCCESS, NVML_UNINITIALIZED, NVML_INVALID_ARGUMENT, NVML_NOT_SUPPORTED };
#define NVML_NOT_FOUND	       6
#define NVML_INSUFFICIENT_SIZE 7
#define NOT_AVAILABLE	       UINT32_MAX

typedef struct device *nvmlDevice_t; /* ordinal + 1, never followed */

struct memory {
	unsigned long long total, free, used;
};

struct memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

struct process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

struct process_v1 {
	unsigned int pid;
	unsigned long long used;
};

#define EXPORT(proto) \
	int proto;    \
	int proto

static int devices(void)
{
	const char *text = getenv("GT_SIM_DEVICES");

	return text && *text ? atoi(text) : 2;
}

static int ordinal(nvmlDevice_t device)
{
	return (int)(intptr_t)device - 1;
}

EXPORT(nvmlInit_v2(void))
{
	return NVML_SUCCESS;
}

EXPORT(nvmlInit(void))
{
	return NVML_SUCCESS;
}

EXPORT(nvmlInitWithFlags(unsigned int flags))
{
	return NVML_SUCCESS;
}

EXPORT(nvmlShutdown(void))
{
	return NVML_SUCCESS;
}

const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
	return code == NVML_NOT_SUPPORTED ? "Not Supported" : code ? "Unknown Error" : "Success";
}

EXPORT(nvmlDeviceGetCount_v2(unsigned int *count))
{
	*count = (unsigned int)devices();
	return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device))
{
	if (index >= (unsigned int)devices())
		return NVML_INVALID_ARGUMENT;
	*device = (nvmlDevice_t)(intptr_t)(index + 1);
	return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device))
{
	unsigned int bus = 0;

	if (sscanf(id, "%*x:%x:", &bus) != 1 || bus < 1 || bus > (unsigned int)devices())
		return NVML_NOT_FOUND;
	*device = (nvmlDevice_t)(intptr_t)bus;
	return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device))
{
	unsigned int last = 0;

	/* The simulated devices differ in the last byte only. */
	if (strlen(uuid) < 2 || sscanf(uuid + strlen(uuid) - 2, "%x", &last) != 1 ||
	    last >= (unsigned int)devices())
		return NVML_NOT_FOUND;
	*device = (nvmlDevice_t)(intptr_t)(last + 1);
	return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index))
{
	*index = (unsigned int)ordinal(device);
	return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length))
{
	snprintf(name, length, "Simulated GPU");
	return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length))
{
	snprintf(uuid, length, "GPU-51515151-5151-5151-5151-5151515151%02x", ordinal(device));
	return NVML_SUCCESS;
}

EXPORT(nvmlSystemGetDriverVersion(char *version, unsigned int length))
{
	snprintf(version, length, "580.0");
	return NVML_SUCCESS;
}

EXPORT(nvmlSystemGetCudaDriverVersion_v2(int *version))
{
	const char *text = getenv("GT_SIM_DRIVER_VERSION");

	*version = text && *text ? atoi(text) : 13000;
	return NVML_SUCCESS;
}

EXPORT(nvmlSystemGetCudaDriverVersion(int *version))
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* GT_SIM_OTHERS, on device 0. */
static unsigned long long others_bytes(int device)
{
	const char *others = getenv("GT_SIM_OTHERS");
	unsigned long long mib, bytes = 0;
	int length;

	while (others && device == 0 && sscanf(others, "%*u:%llu%n", &mib, &length) == 1) {
		bytes += mib << 20;
		others += length;
		others += *others == ',';
	}
	return bytes;
}

/* "8G", "512M", "4096". */
static size_t capacity(void)
{
	const char *text = getenv("GT_SIM_CAPACITY");
	char *unit = NULL;
	size_t bytes = text && *text ? strtoull(text, &unit, 0) : (size_t)8 << 30;

	if (!unit)
		return bytes;
	return *unit == 'G' ? bytes << 30 : *unit == 'M' ? bytes << 20 : bytes;
}

/* The driver of this process knows, if it has one that was started. */
static int driver_memory(int device, size_t *ret_used, size_t *ret_total)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*ask)(int, size_t *, size_t *) = NULL;
	int rc = -1;

	if (handle) {
		ask = (int (*)(int, size_t *, size_t *))dlsym(handle, "gtSimDeviceMemory");
		rc = ask ? ask(device, ret_used, ret_total) : -1;
		dlclose(handle);
	}
	return rc;
}

/* Without a driver here nothing of ours is on the device. */
static void device_memory(int device, size_t *ret_used, size_t *ret_total)
{
	if (!driver_memory(device, ret_used, ret_total))
		return;
	*ret_used = others_bytes(device);
	*ret_total = capacity();
}

EXPORT(nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *memory))
{
	size_t used, total;

	device_memory(ordinal(device), &used, &total);
	*memory = (struct memory){total, total - used, used};
	return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *memory))
{
	size_t used, total;

	device_memory(ordinal(device), &used, &total);
	memory->total = total;
	memory->reserved = 0;
	memory->free = total - used;
	memory->used = used;
	return NVML_SUCCESS;
}

/* This process and the scripted ones; returns how many there are, writes what fits. */
static unsigned int list_processes(int device, struct process *list, unsigned int room)
{
	const char *others = getenv("GT_SIM_OTHERS");
	unsigned int count = 0, pid;
	unsigned long long mib;
	size_t used, total;
	int length;

	while (others && device == 0 && sscanf(others, "%u:%llu%n", &pid, &mib, &length) == 2) {
		if (count < room)
			list[count] =
				(struct process){pid, mib << 20, NOT_AVAILABLE, NOT_AVAILABLE};
		count++;
		others += length;
		others += *others == ',';
	}
	if (driver_memory(device, &used, &total))
		return count;
	if (count < room)
		list[count] = (struct process){(unsigned int)getpid(), used - others_bytes(device),
					       NOT_AVAILABLE, NOT_AVAILABLE};
	return count + 1;
}

EXPORT(nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
					       struct process *list))
{
	unsigned int room = *count;

	*count = list_processes(ordinal(device), list, list ? room : 0);
	return *count > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
					       struct process *list))
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, list);
}

EXPORT(nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
					    struct process_v1 *list))
{
	struct process all[64];
	unsigned int room = *count < 64 ? *count : 64;

	*count = list_processes(ordinal(device), all, room);
	if (*count > room)
		return NVML_INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < *count; i++)
		list[i] = (struct process_v1){all[i].pid, all[i].used};
	return NVML_SUCCESS;
}

struct utilization {
	unsigned int gpu, memory;
};

/* GT_SIM_UTILIZATION ("gpu:memory", in percent). */
EXPORT(nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct utilization *rates))
{
	const char *text = getenv("GT_SIM_UTILIZATION");

	*rates = (struct utilization){0};
	if (text && sscanf(text, "%u:%u", &rates->gpu, &rates->memory) < 1)
		return NVML_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

/* Nothing here draws. */
EXPORT(nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
						struct process *list))
{
	*count = 0;
	return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, void *info))
{
	return NVML_NOT_SUPPORTED;
}

EXPORT(nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, void *type))
{
	return NVML_NOT_SUPPORTED;
}

EXPORT(nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, void *info))
{
	return NVML_NOT_SUPPORTED;
}
