/* SPDX-License-Identifier: MIT */
/* Compiled, never run: what preload/nvtx.h says of NVTX is what NVIDIA's header says. */
#include <nvtx3/nvToolsExt.h>
#include "../../preload/nvtx.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define PLACE(ours, theirs)                                                  \
	_Static_assert(offsetof(struct gt_nvtx_attributes, ours) ==          \
			       offsetof(nvtxEventAttributes_t, theirs),      \
		       #theirs);                                             \
	_Static_assert(sizeof(((struct gt_nvtx_attributes *)0)->ours) ==     \
			       sizeof(((nvtxEventAttributes_t *)0)->theirs), \
		       #theirs)

PLACE(version, version);
PLACE(size, size);
PLACE(payload, payload);
PLACE(message_type, messageType);
PLACE(message, message);
_Static_assert(sizeof(struct gt_nvtx_attributes) == sizeof(nvtxEventAttributes_t), "attributes");
_Static_assert(sizeof(struct gt_nvtx_callbacks) == sizeof(NvtxExportTableCallbacks), "callbacks");
_Static_assert(offsetof(struct gt_nvtx_callbacks, table) ==
		       offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable),
	       "callbacks");
SAME(GT_NVTX_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(GT_NVTX_CORE, NVTX_CB_MODULE_CORE);
SAME(GT_NVTX_CORE2, NVTX_CB_MODULE_CORE2);
SAME(GT_NVTX_MARK_EX, NVTX_CBID_CORE_MarkEx);
SAME(GT_NVTX_MARK_A, NVTX_CBID_CORE_MarkA);
SAME(GT_NVTX_MARK_W, NVTX_CBID_CORE_MarkW);
SAME(GT_NVTX_START_EX, NVTX_CBID_CORE_RangeStartEx);
SAME(GT_NVTX_START_A, NVTX_CBID_CORE_RangeStartA);
SAME(GT_NVTX_START_W, NVTX_CBID_CORE_RangeStartW);
SAME(GT_NVTX_END, NVTX_CBID_CORE_RangeEnd);
SAME(GT_NVTX_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(GT_NVTX_PUSH_A, NVTX_CBID_CORE_RangePushA);
SAME(GT_NVTX_PUSH_W, NVTX_CBID_CORE_RangePushW);
SAME(GT_NVTX_POP, NVTX_CBID_CORE_RangePop);
SAME(GT_NVTX2_MARK_EX, NVTX_CBID_CORE2_DomainMarkEx);
SAME(GT_NVTX2_START_EX, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME(GT_NVTX2_END, NVTX_CBID_CORE2_DomainRangeEnd);
SAME(GT_NVTX2_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(GT_NVTX2_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(GT_NVTX2_REGISTER_A, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(GT_NVTX2_REGISTER_W, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(GT_NVTX2_CREATE_A, NVTX_CBID_CORE2_DomainCreateA);
SAME(GT_NVTX2_CREATE_W, NVTX_CBID_CORE2_DomainCreateW);
SAME(GT_NVTX_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(GT_NVTX_WIDE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(GT_NVTX_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(GT_NVTX_NO_LEVEL, NVTX_NO_PUSH_POP_TRACKING);
