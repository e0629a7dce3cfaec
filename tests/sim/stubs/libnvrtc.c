/* SPDX-License-Identifier: MIT */
/* libnvrtc.c - what must not be 0 in NVRTC: its version and the texts. Nothing is compiled. */
#include "handle.h"

int nvrtcVersion(int *major, int *minor);

int nvrtcVersion(int *major, int *minor)
{
	*major = SO_MAJOR;
	*minor = 0;
	return 0;
}

STUB_TEXT(nvrtcGetErrorString)
