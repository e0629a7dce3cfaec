/* SPDX-License-Identifier: MIT */
/*
 * device.c - start of the simulator, its environment, and what a device says about itself.
 *
 * Everything that a test may change comes from the environment, read once in cuInit:
 * GT_SIM_DEVICES, GT_SIM_CAPACITY, GT_SIM_CONTEXT_COST, GT_SIM_MODULE_COST, GT_SIM_DRIVER_VERSION,
 * GT_SIM_EVENT_LAG, GT_SIM_OTHERS and GT_SIM_FORK; CUDA_VISIBLE_DEVICES limits the devices as
 * usual.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim sim = {.lock = PTHREAD_MUTEX_INITIALIZER, .driver_version = 13000};

const char *sim_env(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

/* "8G", "512M", "4096"; anything else is `otherwise`. */
size_t sim_parse_size(const char *text, size_t otherwise)
{
	char *end = NULL;
	size_t value = text ? strtoull(text, &end, 0) : 0;

	if (!text || end == text)
		return otherwise;
	switch (*end) {
	case 'G':
	case 'g':
		return value << 30;
	case 'M':
	case 'm':
		return value << 20;
	case 'K':
	case 'k':
		return value << 10;
	default:
		return value;
	}
}

/* Like the real driver: the list ends at the first entry that is no device. */
static int visible_devices(int devices)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	int visible = 0;

	while (list && *list) {
		char *end;
		long ordinal = strtol(list, &end, 10);

		if (end == list || ordinal < 0 || ordinal >= devices)
			break;
		visible++;
		list = *end == ',' ? end + 1 : end;
	}
	return list ? visible : devices;
}

/* GT_SIM_OTHERS ("pid:MiB,..."): what other processes hold of device 0. */
static void start_others(void)
{
	const char *others = getenv("GT_SIM_OTHERS");
	unsigned long long mib;
	int length;

	while (others && sscanf(others, "%*u:%llu%n", &mib, &length) == 1) {
		if (!sim_charge(&sim.device[0], mib << 20))
			sim_book(&sim.device[0].books, GT_SIM_OTHERS, mib << 20);
		others += length;
		others += *others == ',';
	}
}

static int init_device(struct sim_device *device, int ordinal, size_t capacity)
{
	pthread_mutex_init(&device->lock, NULL);
	device->capacity = capacity;
	device->primary.device = ordinal;
	device->primary.primary = true;
	sim_pool_init(device, &device->default_pool);
	device->pool = &device->default_pool;
	return sim_arena_init(&device->arena, capacity);
}

/* A fork while another thread is in the driver must not leave a lock held in the child. */
static void lock_all(void)
{
	pthread_mutex_lock(&sim.lock);
	for (int i = 0; i < sim.devices; i++)
		pthread_mutex_lock(&sim.device[i].lock);
}

static void unlock_all(void)
{
	for (int i = sim.devices; i-- > 0;)
		pthread_mutex_unlock(&sim.device[i].lock);
	pthread_mutex_unlock(&sim.lock);
}

/* The real driver cannot be used in a forked child; GT_SIM_FORK=1 lets the child go on. */
static void in_child(void)
{
	sim.forked = !atoi(sim_env("GT_SIM_FORK", "0"));
	unlock_all();
}

static CUresult start(void)
{
	size_t capacity = sim_parse_size(getenv("GT_SIM_CAPACITY"), (size_t)8 << 30);
	int devices = atoi(sim_env("GT_SIM_DEVICES", "2"));

	sim.context_cost = sim_parse_size(getenv("GT_SIM_CONTEXT_COST"), 0);
	sim.module_cost = sim_parse_size(getenv("GT_SIM_MODULE_COST"), 0);
	sim.event_lag = atoi(sim_env("GT_SIM_EVENT_LAG", "0"));
	devices = visible_devices(devices < SIM_MAX_DEVICES ? devices : SIM_MAX_DEVICES);
	if (devices < 1)
		return CUDA_ERROR_NO_DEVICE;
	for (int i = 0; i < devices; i++) {
		if (init_device(&sim.device[i], i, capacity))
			return CUDA_ERROR_SYSTEM_NOT_READY;
	}
	sim.devices = devices;
	start_others();
	pthread_atfork(lock_all, unlock_all, in_child);
	sim.initialised = true;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned int flags)
{
	CUresult rc;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim.forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&sim.lock);
	rc = sim.initialised ? CUDA_SUCCESS : start();
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

CUresult CUDAAPI cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = atoi(sim_env("GT_SIM_DRIVER_VERSION", "13000"));
	return CUDA_SUCCESS;
}

CUresult sim_check_device(CUdevice dev)
{
	SIM_ENTER();
	return dev >= 0 && dev < sim.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult rc = sim_check_device(ordinal);

	if (!rc)
		*device = ordinal;
	return rc;
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
	SIM_ENTER();
	*count = sim.devices;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (!rc)
		snprintf(name, (size_t)len, "Simulated GPU");
	return rc;
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (!rc)
		*bytes = sim.device[dev].capacity;
	return rc;
}

CUresult CUDAAPI cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	size_t whole;
	CUresult rc = cuDeviceTotalMem_v2(&whole, dev);

	if (!rc)
		*bytes = whole > UINT32_MAX ? UINT32_MAX : (unsigned int)whole;
	return rc;
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (rc)
		return rc;
	memset(uuid->bytes, 0x51, sizeof(uuid->bytes));
	uuid->bytes[15] = (char)dev;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (!rc)
		snprintf(id, (size_t)len, "0000:%02X:00.0", dev + 1);
	return rc;
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	unsigned int bus = 0;

	SIM_ENTER();
	if (sscanf(id, "%*x:%x:", &bus) != 1 || bus < 1 || bus > (unsigned int)sim.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = (int)bus - 1;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (!rc) {
		*major = 9;
		*minor = 0;
	}
	return rc;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	CUresult rc = sim_check_device(dev);

	rc = rc ? rc : sim_check_device(peer);
	if (!rc)
		*can = dev != peer;
	return rc;
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice dev,
					 CUdevice peer)
{
	CUresult rc = sim_check_device(dev);

	rc = rc ? rc : sim_check_device(peer);
	if (!rc)
		*value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
	return rc;
}

/* A Hopper-like device. What is not listed is 0: the feature is not there. */
static const struct {
	CUdevice_attribute attribute;
	int value;
} attributes[] = {
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
	{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
	{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
	{CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
	{CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
	{CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
	{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
	{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
	{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
	{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
	{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
	{CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
	{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
	{CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
	{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 1},
};

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	CUresult rc = sim_check_device(dev);

	if (rc)
		return rc;
	*value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? dev + 1 : 0;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	}
	return CUDA_SUCCESS;
}
