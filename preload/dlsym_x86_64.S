/* SPDX-License-Identifier: MIT */
/*
 * dlsym and dlvsym. RTLD_NEXT and RTLD_DEFAULT mean "next after / visible to my caller", and the loader
 * learns who that is from the return address. A wrapper in C would make us the caller, so whatever is
 * not a driver name on a real handle jumps on with registers, stack and return address as they came.
 *
 *	handle is RTLD_DEFAULT (0) or RTLD_NEXT (-1)	-> jump to the real one
 *	name does not start with cu[A-Z]		-> jump to the real one
 *	else						-> jump to the C part (resolve.c)
 */
#ifdef __x86_64__

	.text

.macro	lookup	name, real, chosen
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	leaq	1(%rdi), %rax
	cmpq	$1, %rax
	jbe	1f
	cmpb	$'c', (%rsi)
	jne	1f
	cmpb	$'u', 1(%rsi)
	jne	1f
	movzbl	2(%rsi), %eax
	subl	$'A', %eax
	cmpl	$25, %eax
	ja	1f
	jmp	\chosen
1:	movq	\real(%rip), %rax
	testq	%rax, %rax
	jz	2f
	jmp	*%rax
2:	pushq	%rdi			/* the first look-up of this process */
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	call	gt_loader_find
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	movq	\real(%rip), %rax
	testq	%rax, %rax
	jz	3f
	jmp	*%rax
3:	ret				/* no loader to ask: not found */
	.cfi_endproc
	.size	\name, . - \name
.endm

	lookup	dlsym, gt_real_dlsym, gt_dlsym_handle
	lookup	dlvsym, gt_real_dlvsym, gt_dlvsym_handle

#endif
	.section .note.GNU-stack, "", @progbits
