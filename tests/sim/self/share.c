/* SPDX-License-Identifier: MIT */
/*
 * share.c - memory that crosses processes: IPC, handles as descriptors, pools, external memory.
 *
 * The cases with two processes fork before either has started the driver.
 */
#define _GNU_SOURCE /* memfd_create */
#include "self.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int ours[2]; /* a socket pair: [0] is the exporter's end, [1] the importer's */

static void tell(int side, const void *data, size_t size)
{
	EQUAL(write(ours[side], data, size), size);
}

static void hear(int side, void *data, size_t size)
{
	EQUAL(read(ours[side], data, size), size);
}

/* Descriptors do not travel through write(): the other process opens them in /proc. */
static void tell_fd(int side, int fd)
{
	int what[2] = {getpid(), fd};

	tell(side, what, sizeof(what));
}

static int hear_fd(int side)
{
	char path[64];
	int what[2], fd;

	hear(side, what, sizeof(what));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", what[0], what[1]);
	fd = open(path, O_RDONLY);
	TRUE(fd >= 0);
	return fd;
}

static void two_processes(void (*exporter)(void), void (*importer)(void))
{
	int status;
	pid_t child;

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ours));
	child = fork();
	if (!child) {
		alarm(60);
		importer();
		_exit(0);
	}
	exporter();
	EQUAL(waitpid(child, &status, 0), child);
	EQUAL(status, 0);
}

static void ipc_exporter(void)
{
	CUdeviceptr ptr, managed;
	CUipcMemHandle handle;
	char step;

	self_start();
	OK(cuMemAlloc_v2(&ptr, 5 * MIB));
	OK(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
	EQUAL(cuIpcGetMemHandle(&handle, managed), CUDA_ERROR_INVALID_VALUE);
	OK(cuIpcGetMemHandle(&handle, ptr));
	EQUAL(cuIpcOpenMemHandle_v2(&managed, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(gtSimIpcOpens(ptr), 0);
	tell(0, &handle, sizeof(handle));
	hear(0, &step, 1);
	EQUAL(gtSimIpcOpens(ptr), 1);
	tell(0, &step, 1);
	hear(0, &step, 1);
	EQUAL(gtSimIpcOpens(ptr), 0);
	OK(cuMemFree_v2(ptr));
	tell(0, &step, 1);
	hear(0, &step, 1);
}

static void ipc_importer(void)
{
	CUdeviceptr ptr[2], base;
	CUipcMemHandle handle;
	char step = 0;
	size_t size;

	self_start();
	hear(1, &handle, sizeof(handle));
	OK(cuIpcOpenMemHandle_v2(&ptr[0], handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcOpenMemHandle_v2(&ptr[1], handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	EQUAL(ptr[0], ptr[1]);
	EQUAL(self_free_bytes(), 8192 * MIB);
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 5 * MIB);
	EQUAL(self_bytes(0, GT_SIM_PLAIN), 0);
	OK(cuMemGetAddressRange_v2(&base, &size, ptr[0] + 1));
	EQUAL(size, 5 * MIB);
	EQUAL(cuMemFree_v2(ptr[0]), CUDA_ERROR_INVALID_VALUE);
	tell(1, &step, 1);
	hear(1, &step, 1);
	OK(cuIpcCloseMemHandle(ptr[0]));
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 5 * MIB);
	OK(cuIpcCloseMemHandle(ptr[0]));
	EQUAL(cuIpcCloseMemHandle(ptr[0]), CUDA_ERROR_INVALID_VALUE);
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 0);
	tell(1, &step, 1);
	hear(1, &step, 1); /* the block is freed */
	EQUAL(cuIpcOpenMemHandle_v2(&ptr[0], handle, 1), CUDA_ERROR_INVALID_HANDLE);
	tell(1, &step, 1);
}

static void ipc(void)
{
	two_processes(ipc_exporter, ipc_importer);
}

static const CUmemAllocationProp shareable = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
};

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static void handle_exporter(void)
{
	CUmemAllocationProp private = shareable;
	CUmemGenericAllocationHandle handle, again;
	char step;
	int fd;

	self_start();
	private.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	OK(cuMemCreate(&handle, 2 * MIB, &private, 0));
	EQUAL(cuMemExportToShareableHandle(&fd, handle, FD, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemRelease(handle));
	OK(cuMemCreate(&handle, 4 * MIB, &shareable, 0));
	OK(cuMemExportToShareableHandle(&fd, handle, FD, 0));
	/* Imported here it is the same memory once more. */
	OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, FD));
	EQUAL(again, handle);
	OK(cuMemRelease(handle));
	EQUAL(self_bytes(0, GT_SIM_VMM), 4 * MIB);
	tell_fd(0, fd);
	hear(0, &step, 1);
	OK(cuMemRelease(handle));
	EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	EQUAL(self_bytes(0, GT_SIM_VMM), 0);
}

static void handle_importer(void)
{
	CUmemGenericAllocationHandle handle, retained;
	CUmemAllocationProp prop;
	CUdeviceptr ptr;
	char step = 0;
	int fd;

	self_start();
	EQUAL(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)0, FD),
	      CUDA_ERROR_INVALID_VALUE);
	fd = hear_fd(1);
	OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, FD));
	EQUAL(self_free_bytes(), 8192 * MIB);
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 4 * MIB);
	OK(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
	EQUAL(prop.location.id, 0);
	OK(cuMemAddressReserve(&ptr, 4 * MIB, 0, 0, 0));
	OK(cuMemMap(ptr, 4 * MIB, 0, handle, 0));
	OK(cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)(ptr + 1)));
	EQUAL(retained, handle);
	OK(cuMemRelease(handle));
	OK(cuMemRelease(handle));
	EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 4 * MIB); /* mapped */
	OK(cuMemUnmap(ptr, 4 * MIB));
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 0);
	tell(1, &step, 1);
}

static void handles(void)
{
	two_processes(handle_exporter, handle_importer);
}

static void host_handles(void)
{
	CUmemAllocationProp prop = shareable;
	CUmemGenericAllocationHandle handle;

	self_start();
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	OK(cuMemCreate(&handle, 6 * MIB, &prop, 0));
	EQUAL(self_bytes(-1, GT_SIM_VMM), 6 * MIB);
	EQUAL(self_bytes(0, GT_SIM_VMM), 0);
	EQUAL(self_free_bytes(), 8192 * MIB);
	OK(cuMemRelease(handle));
	EQUAL(self_bytes(-1, GT_SIM_VMM), 0);
	prop.location.type = CU_MEM_LOCATION_TYPE_INVALID;
	EQUAL(cuMemCreate(&handle, 6 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}

static void pool_exporter(void)
{
	const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .handleTypes = FD,
				      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	CUdeviceptr ptr;
	char step;
	int fd;

	self_start();
	OK(cuMemAllocAsync(&ptr, MIB, NULL));
	EQUAL(cuMemPoolExportPointer(&data, ptr), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	EQUAL(cuMemPoolExportToShareableHandle(&fd, pool, FD, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolExportToShareableHandle(&fd, pool, FD, 0));
	OK(cuMemAllocFromPoolAsync(&ptr, 3 * MIB, pool, NULL));
	OK(cuMemPoolExportPointer(&data, ptr));
	tell_fd(0, fd);
	tell(0, &data, sizeof(data));
	hear(0, &step, 1);
}

static void pool_importer(void)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	CUdeviceptr ptr;
	char step = 0;
	int fd;

	self_start();
	fd = hear_fd(1);
	hear(1, &data, sizeof(data));
	OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, FD, 0));
	EQUAL(cuMemAllocFromPoolAsync(&ptr, MIB, pool, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolImportPointer(&ptr, pool, &data));
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 3 * MIB);
	EQUAL(self_bytes(0, GT_SIM_POOL_USED), 0);
	OK(cuMemFreeAsync(ptr, NULL));
	EQUAL(cuMemFreeAsync(ptr, NULL), CUDA_ERROR_INVALID_VALUE);
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 0);
	OK(cuMemPoolDestroy(pool));
	tell(1, &step, 1);
}

static void pools(void)
{
	two_processes(pool_exporter, pool_importer);
}

static void external(void)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
						 .size = 6 * MIB};
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = 2 * MIB, .size = 5 * MIB};
	CUexternalMemory memory;
	CUdeviceptr ptr;
	char byte = 0;

	self_start();
	desc.handle.fd = memfd_create("vulkan", MFD_CLOEXEC);
	OK(ftruncate(desc.handle.fd, (off_t)desc.size));
	EQUAL(pwrite(desc.handle.fd, "x", 1, 2 * MIB), 1);
	OK(cuImportExternalMemory(&memory, &desc));
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 6 * MIB);
	EQUAL(cuExternalMemoryGetMappedBuffer(&ptr, memory, &buffer), CUDA_ERROR_INVALID_VALUE);
	buffer.size = 4 * MIB;
	OK(cuExternalMemoryGetMappedBuffer(&ptr, memory, &buffer));
	OK(cuMemcpyDtoH_v2(&byte, ptr, 1));
	EQUAL(byte, 'x');
	EQUAL(self_free_bytes(), 8192 * MIB);
	OK(cuDestroyExternalMemory(memory));
	EQUAL(cuDestroyExternalMemory(memory), CUDA_ERROR_INVALID_HANDLE);
	EQUAL(fcntl(desc.handle.fd, F_GETFD), -1); /* it was the driver's */
	OK(cuMemFree_v2(ptr));
	EQUAL(cuMemFree_v2(ptr), CUDA_ERROR_INVALID_VALUE);
	EQUAL(self_bytes(0, GT_SIM_FOREIGN), 0);
}

static void arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR flat = {1000, 500, CU_AD_FORMAT_HALF, 4};
	CUDA_ARRAY3D_DESCRIPTOR cube = {64, 32, 16, CU_AD_FORMAT_FLOAT, 2, 0};
	CUarray array[2], level;
	CUmipmappedArray mipmap;

	self_start();
	OK(cuArrayCreate_v2(&array[0], &flat));
	EQUAL(self_bytes(0, GT_SIM_ARRAY), 1000 * 500 * 8);
	EQUAL(self_free_bytes(), 60 * MIB);
	OK(cuArray3DCreate_v2(&array[1], &cube));
	EQUAL(self_bytes(0, GT_SIM_ARRAY), 1000 * 500 * 8 + 64 * 32 * 16 * 8);
	flat.NumChannels = 3;
	EQUAL(cuArrayCreate_v2(&array[1], &flat), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(array[0]));
	EQUAL(cuArrayDestroy(array[0]), CUDA_ERROR_INVALID_HANDLE);
	OK(cuArrayDestroy(array[1]));
	/* 64x32x16, 32x16x8, 16x8x4, then no more were asked for. */
	OK(cuMipmappedArrayCreate(&mipmap, &cube, 3));
	EQUAL(self_bytes(0, GT_SIM_ARRAY), 8 * (64 * 32 * 16 + 32 * 16 * 8 + 16 * 8 * 4));
	OK(cuMipmappedArrayGetLevel(&level, mipmap, 2));
	EQUAL(cuMipmappedArrayGetLevel(&level, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
	OK(cuArray3DGetDescriptor_v2(&cube, level));
	EQUAL(cube.Depth, 4);
	EQUAL(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMipmappedArrayDestroy(mipmap));
	EQUAL(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
	cube.Flags = CUDA_ARRAY3D_SPARSE;
	OK(cuArray3DCreate_v2(&array[0], &cube));
	EQUAL(self_bytes(0, GT_SIM_ARRAY), 0);
	EQUAL(self_free_bytes(), 64 * MIB);
}

const struct self_case self_share_cases[] = {
	{"ipc", ipc, NULL},
	{"shared-handles", handles, NULL},
	{"host-handles", host_handles, NULL},
	{"shared-pools", pools, NULL},
	{"external-memory", external, NULL},
	{"arrays", arrays, "GT_SIM_CAPACITY=64M"},
	{NULL, NULL, NULL},
};
