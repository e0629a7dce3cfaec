/* SPDX-License-Identifier: MIT */
/*
 * NVTX ranges and marks. NVTX is a header: each object that uses it asks, at its first call, the
 * library named by NVTX_INJECTION64_PATH to take part, and calls the functions that it sets from
 * then on. That is us unless the program or a profiler has named somebody else: the variable is set
 * before main, in a process that we are preloaded into, if it is not set already. It holds our
 * SONAME, not a path: the loader finds the library that is there under it, and finds nothing in a
 * child that runs without us, where NVTX then does what it does without any tool.
 *
 * The program sees what it sees without a tool: push and pop return the same "no level". Handles
 * and numbers of ranges, which are for the tool alone, are ours. Payloads, colours and categories
 * are ignored; functions that we do not set do nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "hook.h"
#include "nvtx.h"

#define TEXT_SIZE 1024

/* ---- names ----------------------------------------------------------------------------------- */

/* UTF-32 to UTF-8. What is not a character becomes '?'. */
static size_t utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return utf8(to, '?');
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

static const char *narrow(const wchar_t *text, char buf[TEXT_SIZE])
{
	size_t n = 0;

	if (!text)
		return NULL;
	while (*text && n < TEXT_SIZE - 4)
		n += utf8(buf + n, (uint32_t)*text++);
	buf[n] = 0;
	return buf;
}

static const struct gt_note *note_of(const char *text)
{
	return gt_note(text, text ? strlen(text) : 0);
}

/* A name of any kind; buf is for those that must be converted. */
static const char *message(const struct gt_nvtx_attributes *a, char buf[TEXT_SIZE])
{
	if (!a || a->size < sizeof(*a) || !a->message)
		return NULL;
	switch (a->message_type) {
	case GT_NVTX_ASCII:
		return a->message;
	case GT_NVTX_WIDE:
		return narrow(a->message, buf);
	case GT_NVTX_REGISTERED:
		return ((const struct gt_note *)a->message)->text;
	default:
		return NULL;
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

static const struct gt_note *domain_of(void *handle)
{
	return handle ? handle : gt_note(NULL, 0);
}

static uint64_t tell(enum gt_op op, void *domain, const char *name, uint64_t range)
{
	int err = errno;

	gt_mark(op, domain_of(domain), name, range);
	errno = err;
	return range;
}

static uint64_t tell_message(enum gt_op op, void *domain, const struct gt_nvtx_attributes *a,
			     uint64_t range)
{
	char buf[TEXT_SIZE];

	return tell(op, domain, message(a, buf), range);
}

static void mark_ex(const struct gt_nvtx_attributes *a)
{
	tell_message(GT_OP_MARK, NULL, a, 0);
}

static void mark_a(const char *name)
{
	tell(GT_OP_MARK, NULL, name, 0);
}

static void mark_w(const wchar_t *name)
{
	char buf[TEXT_SIZE];

	tell(GT_OP_MARK, NULL, narrow(name, buf), 0);
}

static uint64_t start_ex(const struct gt_nvtx_attributes *a)
{
	return tell_message(GT_OP_BEGIN, NULL, a, gt_mark_range());
}

static uint64_t start_a(const char *name)
{
	return tell(GT_OP_BEGIN, NULL, name, gt_mark_range());
}

static uint64_t start_w(const wchar_t *name)
{
	char buf[TEXT_SIZE];

	return tell(GT_OP_BEGIN, NULL, narrow(name, buf), gt_mark_range());
}

static void end(uint64_t range)
{
	tell(GT_OP_END, NULL, NULL, range);
}

static int push_ex(const struct gt_nvtx_attributes *a)
{
	tell_message(GT_OP_PUSH, NULL, a, 0);
	return GT_NVTX_NO_LEVEL;
}

static int push_a(const char *name)
{
	tell(GT_OP_PUSH, NULL, name, 0);
	return GT_NVTX_NO_LEVEL;
}

static int push_w(const wchar_t *name)
{
	char buf[TEXT_SIZE];

	tell(GT_OP_PUSH, NULL, narrow(name, buf), 0);
	return GT_NVTX_NO_LEVEL;
}

static int pop(void)
{
	tell(GT_OP_POP, NULL, NULL, 0);
	return GT_NVTX_NO_LEVEL;
}

static void domain_mark_ex(void *domain, const struct gt_nvtx_attributes *a)
{
	tell_message(GT_OP_MARK, domain, a, 0);
}

static uint64_t domain_start_ex(void *domain, const struct gt_nvtx_attributes *a)
{
	return tell_message(GT_OP_BEGIN, domain, a, gt_mark_range());
}

static void domain_end(void *domain, uint64_t range)
{
	tell(GT_OP_END, domain, NULL, range);
}

static int domain_push_ex(void *domain, const struct gt_nvtx_attributes *a)
{
	tell_message(GT_OP_PUSH, domain, a, 0);
	return GT_NVTX_NO_LEVEL;
}

static int domain_pop(void *domain)
{
	tell(GT_OP_POP, domain, NULL, 0);
	return GT_NVTX_NO_LEVEL;
}

/* ---- handles --------------------------------------------------------------------------------- */

static const void *register_a(void *domain, const char *text)
{
	return note_of(text);
}

static const void *register_w(void *domain, const wchar_t *text)
{
	char buf[TEXT_SIZE];

	return note_of(narrow(text, buf));
}

static const void *create_a(const char *name)
{
	return note_of(name);
}

static const void *create_w(const wchar_t *name)
{
	char buf[TEXT_SIZE];

	return note_of(narrow(name, buf));
}

/* ---- attaching ------------------------------------------------------------------------------- */

struct entry {
	unsigned module, id;
	gt_nvtx_function *function;
};

static const struct entry entries[] = {
#define CORE(id, function)                                                         \
	{                                                                          \
		GT_NVTX_CORE, GT_NVTX_##id, (gt_nvtx_function *)(void *)(function) \
	}
#define CORE2(id, function)                                                          \
	{                                                                            \
		GT_NVTX_CORE2, GT_NVTX2_##id, (gt_nvtx_function *)(void *)(function) \
	}
	CORE(MARK_EX, mark_ex),
	CORE(MARK_A, mark_a),
	CORE(MARK_W, mark_w),
	CORE(START_EX, start_ex),
	CORE(START_A, start_a),
	CORE(START_W, start_w),
	CORE(END, end),
	CORE(PUSH_EX, push_ex),
	CORE(PUSH_A, push_a),
	CORE(PUSH_W, push_w),
	CORE(POP, pop),
	CORE2(MARK_EX, domain_mark_ex),
	CORE2(START_EX, domain_start_ex),
	CORE2(END, domain_end),
	CORE2(PUSH_EX, domain_push_ex),
	CORE2(POP, domain_pop),
	CORE2(REGISTER_A, register_a),
	CORE2(REGISTER_W, register_w),
	CORE2(CREATE_A, create_a),
	CORE2(CREATE_W, create_w),
};

/* A table may be shorter than we know it, of an older NVTX. */
int InitializeInjectionNvtx2(gt_nvtx_export_table *get)
{
	const struct gt_nvtx_callbacks *callbacks = get ? get(GT_NVTX_CALLBACKS) : NULL;

	if (!callbacks || callbacks->size < sizeof(*callbacks))
		return 0;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		const struct entry *e = &entries[i];
		gt_nvtx_function **table;
		unsigned size;

		if (callbacks->table((int)e->module, &table, &size) && e->id < size && table[e->id])
			*(gt_nvtx_function **)table[e->id] = e->function;
	}
	return 1;
}

/*
 * Before main, while the process has one thread that could look. Nothing is copied by putenv, and
 * this library is never unloaded.
 */
static __attribute__((constructor)) void offer(void)
{
	static char variable[] = "NVTX_INJECTION64_PATH=libgputrace.so";
	const char *on = getenv("GPUTRACE");
	int err = errno;

	if (!getenv("NVTX_INJECTION64_PATH") && !(on && !strcmp(on, "0")))
		putenv(variable);
	errno = err;
}
