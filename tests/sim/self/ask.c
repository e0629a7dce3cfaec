/* SPDX-License-Identifier: MIT */
/* ask.c - loads the runtime library named on the command line and makes it look for devices. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *handle = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*count_devices)(int *) = NULL;
	int count = 0;

	if (handle)
		count_devices = (int (*)(int *))dlsym(handle, "cudaGetDeviceCount");
	if (!count_devices) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	printf("%d\n", count_devices(&count));
	return 0;
}
