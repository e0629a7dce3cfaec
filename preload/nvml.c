/* SPDX-License-Identifier: MIT */
/*
 * The other processes on a device, from NVML, for the report of a refused request: without them
 * half of all "out of memory" cannot be explained. Only on that path, which is slow and rare, with
 * no lock held: dlopen and NVML are foreign code. Nothing is needed: without the library the answer
 * is "none known". Prototypes are NVML's public API, written out here because the recorder builds
 * without CUDA.
 */
#include <dlfcn.h>
#include <string.h>
#include "libc_old.h"
#include "recorder.h"

#define PROCESSES 128u

struct process_info { /* nvmlProcessInfo_t of version 2 and 3 */
	unsigned int pid;
	unsigned long long bytes; /* all ones = not available */
	unsigned int gpu_instance, compute_instance;
};

struct nvml {
	int (*init)(void);
	int (*shutdown)(void);
	int (*by_uuid)(const char *uuid, void **ret);
	int (*processes)(void *device, unsigned int *count, struct process_info *ret);
};

static bool open_nvml(struct nvml *n)
{
	void *lib = gt_dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);

	gt_forget_dlerror();
	if (!lib)
		return false;
	*(void **)&n->init = dlsym(lib, "nvmlInit_v2");
	*(void **)&n->shutdown = dlsym(lib, "nvmlShutdown");
	*(void **)&n->by_uuid = dlsym(lib, "nvmlDeviceGetHandleByUUID");
	*(void **)&n->processes = dlsym(lib, "nvmlDeviceGetComputeRunningProcesses_v3");
	gt_forget_dlerror();
	return n->init && n->shutdown && n->by_uuid && n->processes;
}

/* "GPU-" and the five groups of the UUID. */
static void put_uuid(char *to, const uint8_t uuid[16])
{
	static const char digits[] = "0123456789abcdef";

	memcpy(to, "GPU-", 4);
	to += 4;
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		*to++ = digits[uuid[i] >> 4];
		*to++ = digits[uuid[i] & 15];
	}
	*to = 0;
}

static void put_name(struct gt_other *o)
{
	char path[40], name[32];
	struct gt_text t = {.buf = path, .size = sizeof(path)};

	gt_text_str(&t, "/proc/");
	gt_text_u64(&t, o->pid);
	gt_text_str(&t, "/comm");
	if (gt_read_file(path, name, sizeof(name)) <= 0)
		return;
	name[strcspn(name, "\n")] = 0;
	memcpy(o->name, name, strnlen(name, sizeof(o->name) - 1));
}

uint32_t gt_nvml_others(int device, struct gt_other *ret, uint32_t max)
{
	struct process_info list[PROCESSES];
	const uint8_t *uuid = gt_device_uuid(device);
	unsigned int count = PROCESSES;
	struct nvml n = {0};
	uint32_t used = 0;
	char name[64];
	void *handle;

	if (!uuid || !open_nvml(&n) || n.init())
		return 0;
	put_uuid(name, uuid);
	if (n.by_uuid(name, &handle) || n.processes(handle, &count, list))
		count = 0;
	n.shutdown();
	for (unsigned int i = 0; i < count && used < max; i++) {
		if (list[i].pid == gt_file->pid)
			continue;
		ret[used] = (struct gt_other){.bytes = list[i].bytes, .pid = list[i].pid};
		put_name(&ret[used++]);
	}
	return used;
}
