/* SPDX-License-Identifier: MIT */
/*
 * dlsym and dlvsym for aarch64: as dlsym_x86_64.S, where the reason stands. The caller is known by
 * x30, so it must hold what it held when the real function is reached.
 */
#ifdef __aarch64__

	.text

.macro	lookup	name, real, chosen
	.globl	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	hint	#34			/* bti c */
	add	x9, x0, #1
	cmp	x9, #1
	b.ls	1f
	ldrb	w9, [x1]
	cmp	w9, #'c'
	b.ne	1f
	ldrb	w9, [x1, #1]
	cmp	w9, #'u'
	b.ne	1f
	ldrb	w9, [x1, #2]
	sub	w9, w9, #'A'
	cmp	w9, #25
	b.hi	1f
	b	\chosen
1:	adrp	x16, \real
	ldr	x16, [x16, #:lo12:\real]
	cbz	x16, 2f
	br	x16
2:	stp	x29, x30, [sp, #-48]!	/* the first look-up of this process */
	.cfi_adjust_cfa_offset 48
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	bl	gt_loader_find
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	ldp	x29, x30, [sp], #48
	.cfi_restore x29
	.cfi_restore x30
	.cfi_adjust_cfa_offset -48
	adrp	x16, \real
	ldr	x16, [x16, #:lo12:\real]
	cbz	x16, 3f
	br	x16
3:	mov	x0, #0			/* no loader to ask: not found */
	ret
	.cfi_endproc
	.size	\name, . - \name
.endm

	lookup	dlsym, gt_real_dlsym, gt_dlsym_handle
	lookup	dlvsym, gt_real_dlvsym, gt_dlvsym_handle

#endif
	.section .note.GNU-stack, "", %progbits
