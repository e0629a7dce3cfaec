/* SPDX-License-Identifier: MIT */
/*
 * All that NVTX offers and more than we record: messages of each kind, domains, registered strings,
 * payloads, categories, names for threads. Prints what the calls return.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static CUdeviceptr block(void)
{
	CUdeviceptr ptr = 0;
	CUcontext context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    cuMemAlloc(&ptr, 1 << 20))
		exit(1);
	return ptr;
}

static nvtxEventAttributes_t attributes(void)
{
	nvtxEventAttributes_t a = {0};

	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	return a;
}

static nvtxEventAttributes_t with_text(const char *text)
{
	nvtxEventAttributes_t a = attributes();

	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = text;
	return a;
}

static void plain(void)
{
	nvtxRangeId_t range;

	printf("%d\n", nvtxRangePushA("ascii"));
	printf("%d\n", nvtxRangePushW(L"wide \u00fc \u20ac \U0001F600"));
	nvtxMarkA("mark");
	nvtxMarkW(L"wide mark");
	printf("%d\n", nvtxRangePop());
	printf("%d\n", nvtxRangePop());
	range = nvtxRangeStartA("start");
	nvtxRangeEnd(range);
}

static void payloads(void)
{
	nvtxEventAttributes_t a = with_text("payload");

	a.category = 7;
	a.colorType = NVTX_COLOR_ARGB;
	a.color = 0xff00ff00;
	a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	a.payload.dValue = 1.5;
	nvtxNameCategoryA(7, "category");
	nvtxNameOsThreadA(1, "thread");
	nvtxMarkEx(&a);
	a = attributes(); /* no message at all */
	nvtxMarkEx(&a);
	a = with_text("short");
	a.size = 16; /* of a version without messages */
	nvtxMarkEx(&a);
}

static void domains(void)
{
	nvtxDomainHandle_t x = nvtxDomainCreateA("domain.x"), y = nvtxDomainCreateW(L"domain.y");
	nvtxStringHandle_t text = nvtxDomainRegisterStringA(x, "registered");
	nvtxEventAttributes_t a = with_text("in x"), b = with_text("in y"), c = attributes();

	c.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	c.message.registered = text;
	nvtxDomainRangePushEx(x, &a);
	nvtxDomainRangePushEx(y, &b);
	nvtxDomainRangePushEx(x, &c);
	nvtxDomainRangePop(y); /* of y, though x is innermost */
	nvtxDomainRangePop(x);
	nvtxDomainMarkEx(x, &c);
	nvtxDomainRangePop(x);
	nvtxDomainRangeEnd(x, nvtxDomainRangeStartEx(x, &c));
	nvtxDomainDestroy(x);
	nvtxDomainDestroy(y);
}

int main(void)
{
	CUdeviceptr ptr = block();

	plain();
	payloads();
	domains();
	return cuMemFree(ptr) != CUDA_SUCCESS;
}
