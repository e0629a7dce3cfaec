/* SPDX-License-Identifier: MIT */
/*
 * What the stack walker knows of the machine: DWARF column numbers, how a plain rule fits into one
 * word beside its pc, where a frame keeps its return address. The rest is the same everywhere. Only
 * unwind.h includes this.
 *
 * A word of the rule cache, from the top: pc, CFA offset, slot of the saved frame pointer (0 = the
 * frame leaves it alone), kind (enum gt_rule_kind, 3 bits). What does not fit goes to the long
 * table.
 */
#ifndef GT_UNWIND_ARCH_H
#define GT_UNWIND_ARCH_H

#if defined(__x86_64__)

#define GT_DW_FP      6u /* rbp */
#define GT_DW_SP      7u /* rsp */
#define GT_DW_RA      16u
#define GT_DW_BREG_FP 0x76u /* DW_OP_breg6 */

/* 47 bits of pc | CFA / 8 in 11 bits | slot in 3 bits: fp at CFA - 8 - 8 * slot | kind */
#define GT_WORD_PC(pc)	  ((uint64_t)(pc) << 17)
#define GT_WORD_PC_MASK	  (~UINT64_C(0) << 17)
#define GT_WORD_CFA_SHIFT 6
#define GT_WORD_CFA_BITS  11
#define GT_WORD_CFA_UNIT  8
#define GT_WORD_SLOT_BITS 3
#define GT_SLOT_UNIT	  8
#define GT_SLOT_BASE	  (-8)

/* The call pushes the return address right below the CFA. */
static inline int64_t gt_plain_ra(int64_t fp_at)
{
	return -8;
}

/* Where the return address that led to a state was read: below its sp, wherever fp was. */
static inline uint64_t gt_ra_address(uint64_t sp, uint64_t fp_slot)
{
	return sp - 8;
}

static inline uint64_t gt_pc(uint64_t word)
{
	return word;
}

#elif defined(__aarch64__)

#define GT_DW_FP	  29u /* x29 */
#define GT_DW_SP	  31u
#define GT_DW_RA	  30u	/* x30 */
#define GT_DW_BREG_FP	  0x8du /* DW_OP_breg29 */

/* 48 bits of pc, the low two are zero | CFA / 16 in 9 bits | slot in 6 bits: fp at CFA - 16 * slot
 */
#define GT_WORD_PC(pc)	  ((uint64_t)(pc) >> 2 << 18)
#define GT_WORD_PC_MASK	  (~UINT64_C(0) << 18)
#define GT_WORD_CFA_SHIFT 9
#define GT_WORD_CFA_BITS  9
#define GT_WORD_CFA_UNIT  16
#define GT_WORD_SLOT_BITS 6
#define GT_SLOT_UNIT	  16
#define GT_SLOT_BASE	  0

/* Frame record: x29 and x30 side by side. Frames that save x30 alone are long rules. */
static inline int64_t gt_plain_ra(int64_t fp_at)
{
	return fp_at + 8;
}

static inline uint64_t gt_ra_address(uint64_t sp, uint64_t fp_slot)
{
	return fp_slot + 8;
}

/* Without a pointer authentication code. */
static inline uint64_t gt_pc(uint64_t word)
{
	return word & 0xffffffffffffull;
}

#else
#error "the stack walker knows x86-64 and aarch64"
#endif

#define GT_WORD_SLOT_SHIFT 3
#define GT_WORD_KIND_MASK  7u

#endif
