/* SPDX-License-Identifier: MIT */
/*
 * The words for numbers of the format: one per value, the same in every output.
 */
#include "read/trace.h"

static const char *name_of(const char *const *names, size_t count, unsigned int value)
{
	return value < count && names[value] ? names[value] : "unknown";
}

#define NAME(table, value) name_of(table, sizeof(table) / sizeof((table)[0]), value)

const char *gt_op_name(unsigned int op)
{
	static const char *const names[] = {
		[GT_OP_ALLOC] = "alloc",
		[GT_OP_FREE] = "free",
		[GT_OP_IMPLICIT_FREE] = "implicit_free",
		[GT_OP_UNFREE] = "unfree",
		[GT_OP_UNKNOWN_FREE] = "unknown_free",
		[GT_OP_FAILED] = "failed",
		[GT_OP_OOM] = "oom",
		[GT_OP_EXIT] = "exit",
		[GT_OP_MARK] = "mark",
		[GT_OP_PUSH] = "push",
		[GT_OP_POP] = "pop",
		[GT_OP_STEP] = "step",
		[GT_OP_SAMPLE] = "sample",
		[GT_OP_PENDING] = "pending",
		[GT_OP_SETTLED] = "settled",
		[GT_OP_BEGIN] = "begin",
		[GT_OP_END] = "end",
	};

	return NAME(names, op);
}

const char *gt_space_name(unsigned int space)
{
	static const char *const names[] = {
		[GT_SPACE_NONE] = "none",	[GT_SPACE_DRIVER] = "driver",
		[GT_SPACE_TORCH] = "torch",	[GT_SPACE_HANDLE] = "handle",
		[GT_SPACE_MAPPING] = "mapping", [GT_SPACE_POOL] = "pool",
		[GT_SPACE_HOST] = "host",	[GT_SPACE_ARRAY] = "array",
		[GT_SPACE_IPC] = "ipc",		[GT_SPACE_CONTEXT] = "context",
		[GT_SPACE_MODULE] = "module",	[GT_SPACE_GRAPH] = "graph",
		[GT_SPACE_RANGE] = "range",
	};

	return NAME(names, space);
}

const char *gt_api_name(unsigned int api)
{
	static const char *const names[] = {
#define X(id, name) [GT_API_##id] = name,
		GT_APIS(X)
#undef X
	};

	return NAME(names, api);
}

const char *gt_lost_name(unsigned int reason)
{
	static const char *const names[] = {
		[GT_LOST_EVENTS] = "events",   [GT_LOST_SITES] = "sites",
		[GT_LOST_STACKS] = "stacks",   [GT_LOST_TRUNCATED] = "truncated_stacks",
		[GT_LOST_STREAMS] = "streams", [GT_LOST_THREADS] = "threads",
		[GT_LOST_REPORTS] = "reports", [GT_LOST_PYTHON] = "python_stacks",
	};

	return NAME(names, reason);
}
