/* SPDX-License-Identifier: MIT */
/*
 * Which node of PyTorch's autograd the calling thread evaluates. Much of what a backward pass asks
 * for is asked for by the engine after the node has returned (the sum of a broadcast gradient, the
 * sum of two), where no frame says whose it is; the engine itself keeps the node in a variable of
 * the thread until all of that is done. Asked by the capture of native stacks.
 *
 * The variable is read by torch's own function, and only below the engine's, which has made it:
 * elsewhere its first use in a thread would allocate. That function copies a std::shared_ptr; the
 * count is lowered here again, which cannot be the last one, as the variable holds one too.
 */
#include "elf.h"
#include "unwind.h"

#define LOOP "_ZN5torch8autograd6Engine11thread_mainERKSt10shared_ptrINS0_9GraphTaskEE"
#define EVALUATION                                                          \
	"_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_" \
	"9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE"
#define ROOTS 16u /* outermost frames among which the engine's are */

/* As large as it need be to be returned in memory, as C++ returns every class with a destructor. */
struct shared_node {
	const uint64_t *node; /* its first word: the table of its class */
	struct {
		const void *table;
		int32_t uses, weak;
	} * counts;
	uint64_t spare[2];
};

struct range {
	uint64_t start, end;
};

static struct range loop, evaluation;
static struct shared_node (*current_node)(void);
static bool looked;
bool gt_autograd_known;

void gt_autograd_find(void)
{
	static const char cpu[] = "libtorch_cpu.so";

	if (gt_likely(gt_load_relaxed(&looked)))
		return;
	gt_store_relaxed(&looked, true);
	loop.start = gt_elf_code(cpu, LOOP, &loop.end);
	evaluation.start = gt_elf_code(cpu, EVALUATION, &evaluation.end);
	current_node = gt_elf_in(cpu, "_ZN5torch8autograd16get_current_nodeEv");
	gt_store(&gt_autograd_known, loop.start && evaluation.start && current_node);
}

static bool below(const struct gt_stack *s, struct range code)
{
	for (uint32_t i = 0; i < s->n && i < ROOTS; i++)
		if (s->frames[i].pc - 1 - code.start < code.end - code.start)
			return true;
	return false;
}

/* A thread is the engine's for all its life or never. */
static bool is_engine(struct gt_stack *s)
{
	if (s->autograd == GT_AUTOGRAD_UNKNOWN && s->n)
		s->autograd = below(s, loop) ? GT_AUTOGRAD_ENGINE : GT_AUTOGRAD_NONE;
	return s->autograd == GT_AUTOGRAD_ENGINE;
}

uint64_t gt_autograd_class(struct gt_stack *s)
{
	struct shared_node shared;
	uint64_t class;

	if (!is_engine(s) || !below(s, evaluation))
		return 0;
	shared = current_node();
	class = shared.node ? *shared.node : 0;
	if (shared.counts)
		__atomic_sub_fetch(&shared.counts->uses, 1, __ATOMIC_RELEASE);
	return class;
}
