/* SPDX-License-Identifier: MIT */
/*
 * See merge.h. The interpreter's C frames are replaced by the Python frames that they executed, each
 * where it ran, so that a call from C in the middle of a Python stack (an operator, a callback, a
 * module's hook) stands between the right two lines.
 *
 * Which frames one call of the interpreter's evaluation function executed is recorded: from Python
 * 3.11 on it runs a Python function that another one calls without calling itself again, so depths
 * do not tell. Both stacks are matched from the innermost call outwards; there they agree even if
 * outer frames are missing, as below a greenlet or in a stack cut at the depth limit.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/merge.h"

struct merge {
	const struct gt_trace *trace;
	struct gt_naming *naming;
	struct gt_text *text;
	struct gt_known_list *list;
	uint32_t python;	 /* innermost node that is still to be placed */
	uint32_t idle;		 /* evaluations, from here outwards, that execute no frame */
	size_t evaluations;	 /* still to come in the native stack */
	bool replacing;		 /* the interpreter's frames are left out */
	bool known;		 /* its evaluations have names */
	bool cut;		 /* outer native frames are missing */
	bool inside;		 /* the last frame was the interpreter's */
	struct gt_named_pc held; /* frame of no module behind it; count 0 = none */
	size_t held_times;
};

static void add(struct gt_known_list *list, const struct gt_known *known, size_t count)
{
	if (list->count + count > list->room) {
		size_t room = 2 * list->room + count + 64;
		struct gt_known *grown = reallocarray(list->items, room, sizeof(*grown));

		if (!grown)
			return;
		list->items = grown;
		list->room = room;
	}
	memcpy(list->items + list->count, known, count * sizeof(*known));
	list->count += count;
}

static bool is_marker(uint64_t pc)
{
	return pc == GT_PC_TRUNCATED || pc == GT_PC_INCOMPLETE;
}

void gt_known_marker(struct gt_known_list *list, const char *text)
{
	struct gt_known known = {
		.frame = {text, "", "", 0, GT_FRAME_MARKER, false},
		.library = GT_LIBRARY_SYSTEM,
	};

	add(list, &known, 1);
}

static void add_marker(struct gt_known_list *list, uint64_t pc)
{
	gt_known_marker(list, pc == GT_PC_TRUNCATED ? "[truncated]" : "[incomplete]");
}

/* ---- Python frames ------------------------------------------------------------------------- */

static const char *string_of(const struct gt_trace *trace, struct gt_text *text, uint32_t id)
{
	const struct gt_bytes *string;

	if (!id || id >= trace->string_count)
		return "";
	string = &trace->strings[id];
	return gt_text_clean(text, string->text, string->length);
}

/*
 * A frame of C++ that torch named: the file is a source file, an object, or "??". Only an object that
 * is nobody else's says that the code is the user's; a source file may be anyone's.
 */
static void judge_native(struct gt_known *known)
{
	const char *function = known->frame.function, *file = known->frame.file;

	known->frame.kind = GT_FRAME_NATIVE;
	known->named = strcmp(function, "??") != 0 && function[0];
	if (strstr(file, ".so")) {
		known->frame.module = file;
		known->library = gt_library_of_object(file);
	} else if (strstr(function, "at::") || strstr(function, "torch::") ||
		   strstr(function, "c10::")) {
		known->library = GT_LIBRARY_TORCH;
	} else {
		known->library = GT_LIBRARY_SYSTEM;
	}
}

struct gt_known gt_merge_python(const struct gt_trace *trace, struct gt_text *text,
				const struct gt_pynode *node)
{
	struct gt_pycode code = {0};
	struct gt_known known = {.named = true};

	if (node->code < trace->pycode_count)
		code = trace->pycodes[node->code];
	known.frame = (struct gt_frame){
		.function = string_of(trace, text, code.qualname ? code.qualname : code.name),
		.file = string_of(trace, text, code.file),
		.module = "",
		.line = node->line,
		.kind = GT_FRAME_PYTHON,
	};
	known.library = gt_library_of_python(known.frame.file);
	if (code.native)
		judge_native(&known);
	return known;
}

static void add_python(struct merge *m, const struct gt_pynode *node)
{
	struct gt_known known = gt_merge_python(m->trace, m->text, node);

	add(m->list, &known, 1);
}

/* Evaluations that began between the frame's caller and the frame. */
static uint32_t calls_of(const struct gt_pynode *node)
{
	return node->calls ? node->calls - 1u : 0;
}

/* Places one frame; true: the evaluation that executed it has no more. */
static bool place_frame(struct merge *m)
{
	const struct gt_pynode *node = &m->trace->pynodes[m->python];
	uint32_t calls = calls_of(node);

	if (node->code)
		add_python(m, node);
	else if (!node->parent)
		add_marker(m->list, GT_PC_TRUNCATED);
	m->python = node->parent < m->python ? node->parent : 0;
	m->idle = calls ? calls - 1 : 0;
	return calls > 0;
}

/* What one evaluation executed. */
static void place_evaluation(struct merge *m)
{
	if (m->idle) {
		m->idle--;
		return;
	}
	while (m->python && !place_frame(m))
		;
}

static void place_rest(struct merge *m)
{
	while (m->python)
		place_frame(m);
}

/* A node without code that is no root: the frame in question is only being entered or left. */
static void begin_python(struct merge *m, uint32_t python)
{
	const struct gt_pynode *node;

	if (python >= m->trace->pynode_count)
		return;
	m->python = python;
	node = &m->trace->pynodes[python];
	if (python && !node->code && node->parent) {
		m->idle = calls_of(node);
		m->python = node->parent < python ? node->parent : 0;
	}
}

/* ---- native frames ------------------------------------------------------------------------- */

static bool is_interpreter(struct gt_named_pc named)
{
	return named.known[0].library == GT_LIBRARY_PYTHON;
}

/* Its name may have an ending of the compiler's (".cold"); builds export it even when stripped. */
static bool is_evaluation(struct gt_named_pc named)
{
	static const char name[] = "_PyEval_EvalFrameDefault";

	return !strncmp(named.known[named.count - 1].frame.function, name, sizeof(name) - 1);
}

/* The recorder's own frames, where a call went through it, say nothing to anyone. */
static bool is_recorder(struct gt_named_pc named)
{
	return !strncmp(gt_base_name(named.known[0].frame.module), "libgputrace", 11);
}

/* Code that the interpreter made for itself (perf trampolines, its JIT) is part of it. */
static void release_held(struct merge *m)
{
	for (; m->held_times; m->held_times--)
		add(m->list, m->held.known, m->held.count);
}

static void interpreter_frame(struct merge *m, struct gt_named_pc named)
{
	m->held_times = 0;
	m->inside = true;
	if (is_evaluation(named)) {
		place_evaluation(m);
		m->evaluations--;
	}
	if (!m->known || (!m->evaluations && !m->cut))
		place_rest(m);
}

static void native_frame(struct merge *m, struct gt_named_pc named, bool in_module)
{
	if (m->replacing && (is_interpreter(named) || is_evaluation(named))) {
		interpreter_frame(m, named);
	} else if (m->inside && !in_module) {
		m->held = named;
		m->held_times++;
	} else if (!is_recorder(named)) {
		release_held(m);
		m->inside = false;
		add(m->list, named.known, named.count);
	}
}

/* A walk outwards: fills named, and *id with the next. False: no (usable) frame at *id. */
static bool look(struct merge *m, uint32_t id, struct gt_named_pc *ret)
{
	const struct gt_node *node = &m->trace->nodes[id];

	*ret = gt_naming_at(m->naming, node->module, node->pc);
	return ret->count > 0;
}

static uint32_t caller(const struct gt_trace *trace, uint32_t id)
{
	return trace->nodes[id].parent < id ? trace->nodes[id].parent : 0;
}

/* How often the interpreter's evaluation function stands in the stack, and is the stack whole? */
static void count_evaluations(struct merge *m, uint32_t native)
{
	struct gt_named_pc named;

	for (; native; native = caller(m->trace, native)) {
		if (is_marker(m->trace->nodes[native].pc))
			m->cut = true;
		else if (look(m, native, &named))
			m->evaluations += is_evaluation(named);
	}
}

static void walk(struct merge *m, uint32_t native)
{
	struct gt_named_pc named;

	for (; native; native = caller(m->trace, native)) {
		const struct gt_node *node = &m->trace->nodes[native];

		if (is_marker(node->pc)) {
			release_held(m);
			add_marker(m->list, node->pc);
		} else if (look(m, native, &named)) {
			native_frame(m, named, node->module != 0);
		}
	}
	release_held(m);
}

void gt_merge_frames(const struct gt_trace *trace, struct gt_naming *naming, struct gt_text *text,
		     uint32_t native, uint32_t python, struct gt_known_list *list)
{
	struct merge m = {.trace = trace, .naming = naming, .text = text, .list = list};

	begin_python(&m, python);
	if (native >= trace->node_count)
		native = 0;
	m.replacing = m.python != 0;
	if (m.replacing)
		count_evaluations(&m, native);
	m.known = m.evaluations > 0;
	walk(&m, native);
	place_rest(&m);
}
