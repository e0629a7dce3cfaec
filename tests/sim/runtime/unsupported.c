/* SPDX-License-Identifier: MIT */
/*
 * unsupported.c - runtime functions that exist so that programs load, and answer "not supported".
 */
#include "../jump.h"

int rt_not_supported(void);

int rt_not_supported(void)
{
	return 801; /* cudaErrorNotSupported */
}

#ifdef RT_STATIC /* the other files are compiled with hidden visibility then */
#define HIDE ".hidden "
#else
#define HIDE ".globl "
#endif

#define RT_NO(symbol)                                          \
	__asm__(".text\n"                                      \
		".globl " #symbol "\n" HIDE #symbol "\n"       \
		".type " #symbol ", %function\n" #symbol ":\n" \
		"\t" JUMP "rt_not_supported\n"                 \
		".size " #symbol ", . - " #symbol "\n");

RT_NO(cudaGraphKernelNodeGetParams)
RT_NO(cudaGraphKernelNodeSetParams)
RT_NO(cudaStreamSetAttribute)
RT_NO(cudaMemcpyFromArray)
RT_NO(cudaMemcpy3D)
RT_NO(cudaMemcpy3DAsync)
RT_NO(cudaMemPrefetchAsync)
RT_NO(cudaMemAdvise)
RT_NO(cudaCtxResetPersistingL2Cache)
RT_NO(cudaOccupancyMaxActiveClusters)
RT_NO(cudaOccupancyMaxPotentialClusterSize)
RT_NO(cudaFuncGetName)
RT_NO(cudaLibraryLoadData)
RT_NO(cudaLibraryUnload)
RT_NO(cudaGetFuncBySymbol)
RT_NO(cudaGetKernel)
RT_NO(cudaGraphConditionalHandleCreate)
RT_NO(cudaKernelSetAttributeForDevice)
RT_NO(cudaLibraryGetGlobal)
RT_NO(cudaLibraryGetKernel)
RT_NO(cudaLibraryGetKernelCount)
RT_NO(cudaLibraryGetManaged)
RT_NO(cudaLibraryGetUnifiedFunction)
RT_NO(cudaLibraryLoadFromFile)
