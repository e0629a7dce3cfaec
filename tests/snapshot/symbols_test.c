/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of tools/symbols. Traces are built in memory: the modules are those of probe.cc, built
 * with debug information, stripped, and stripped with the debug information in a separate folder.
 * PROBE_DIR holds them, PROBE_SOURCE is the path of probe.cc as the compiler saw it.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/library.h"
#include "symbols/symbols.h"
#include "symbols/text.h"

#define NODES 16

struct world { /* a trace of one loaded module: its id is 1 */
	void *handle;
	struct gt_trace trace;
	struct gt_module modules[2];
	struct gt_node nodes[NODES];
};

static struct gt_bytes bytes(const char *text)
{
	return (struct gt_bytes){text, (uint32_t)strlen(text)};
}

static void read_build_id(struct gt_module *module, const ElfW(Phdr) * note)
{
	const char *at = (const char *)(module->bias + note->p_vaddr), *end = at + note->p_memsz;

	while (at < end) {
		const ElfW(Nhdr) *head = (const void *)at;
		const char *name = (const char *)(head + 1),
			   *id = name + (head->n_namesz + 3) / 4 * 4;

		if (head->n_type == NT_GNU_BUILD_ID && !strcmp(name, "GNU")) {
			module->build_id_length = head->n_descsz;
			memcpy(module->build_id, id, head->n_descsz);
		}
		at = id + (head->n_descsz + 3) / 4 * 4;
	}
}

static int find_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct gt_module *module = data;
	int i;

	if (strcmp(info->dlpi_name, module->path.text))
		return 0;
	module->bias = info->dlpi_addr;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			read_build_id(module, &info->dlpi_phdr[i]);
	return 1;
}

static void load(struct world *world, const char *path)
{
	memset(world, 0, sizeof(*world));
	world->handle = dlopen(path, RTLD_NOW);
	cr_assert(world->handle, "%s", dlerror());
	world->modules[1].path = bytes(path);
	cr_assert(dl_iterate_phdr(find_module, &world->modules[1]));
	cr_assert(world->modules[1].build_id_length > 0);
	world->trace.modules = world->modules;
	world->trace.module_count = 2;
	world->trace.nodes = world->nodes;
	world->trace.node_count = 1;
}

/* A node whose caller is the node before it. */
static uint32_t push(struct world *world, uint64_t pc, uint32_t module)
{
	uint32_t id = (uint32_t)world->trace.node_count++;

	cr_assert(id < NODES);
	world->nodes[id] = (struct gt_node){pc, id - 1, module};
	return id;
}

static uint64_t call(struct world *world, const char *name)
{
	uint64_t (*function)(void) = (uint64_t(*)(void))dlsym(world->handle, name);

	cr_assert(function);
	return function();
}

static int line_of(const char *mark)
{
	char want[64], line[256];
	FILE *source = fopen(PROBE_SOURCE, "re");
	int number = 0, found = 0;

	snprintf(want, sizeof(want), "/* line: %s */", mark);
	cr_assert(source);
	while (fgets(line, sizeof(line), source)) {
		number++;
		if (strstr(line, want))
			found = number;
	}
	fclose(source);
	cr_assert(found);
	return found;
}

static void expect_frame(const struct gt_frame *frame, enum gt_frame_kind kind,
			 const char *function, const char *mark)
{
	cr_expect_str_eq(frame->function, function);
	cr_expect_eq(frame->kind, kind, "kind %d", frame->kind);
	cr_expect_str_eq(frame->file, mark ? PROBE_SOURCE : "");
	cr_expect_eq(frame->line, mark ? line_of(mark) : 0, "line %d", frame->line);
}

Test(symbols, inlined_frames_stand_before_the_function_around_them)
{
	struct world world;
	struct gt_symbols *symbols;
	struct gt_stack stack;

	load(&world, PROBE_DIR "/probe.so");
	push(&world, call(&world, "probe_cxx"), 1);
	symbols = gt_symbols_new(&world.trace);
	stack = gt_symbols_stack(symbols, 1, 0);
	cr_assert_eq(stack.count, 2);
	expect_frame(&stack.frames[0], GT_FRAME_INLINE, "probe::inner", "inner");
	expect_frame(&stack.frames[1], GT_FRAME_NATIVE, "probe::Outer::place", "outer");
	cr_expect_str_eq(stack.frames[1].module, PROBE_DIR "/probe.so");
	gt_symbols_free(symbols);
}

static void expect_hidden(const char *path, const char *mark)
{
	struct world world;
	struct gt_symbols *symbols;
	struct gt_stack stack;

	load(&world, path);
	push(&world, call(&world, "probe_hidden"), 1);
	symbols = gt_symbols_new(&world.trace);
	stack = gt_symbols_stack(symbols, 1, 0);
	cr_assert_eq(stack.count, 1);
	expect_frame(&stack.frames[0], GT_FRAME_NATIVE, "hidden_place", mark);
	gt_symbols_free(symbols);
}

Test(symbols, hidden_function_by_debug_information)
{
	expect_hidden(PROBE_DIR "/probe.so", "hidden");
}

Test(symbols, units_without_address_table_are_found_by_their_ranges)
{
	expect_hidden(PROBE_DIR "/probe-noaranges.so", "hidden");
}

Test(symbols, separate_debug_information_by_build_id)
{
	setenv("GPUTRACE_DEBUG_PATH", PROBE_DIR "/debug", 1);
	expect_hidden(PROBE_DIR "/probe-split.so", "hidden");
}

Test(symbols, stripped_library_names_what_it_exports_and_nothing_else)
{
	struct world world;
	struct gt_symbols *symbols;
	const struct gt_frame *frame;
	char want[64];

	load(&world, PROBE_DIR "/probe-stripped.so");
	push(&world, call(&world, "probe_hidden"), 1);
	push(&world, call(&world, "probe_cxx"), 1);
	symbols = gt_symbols_new(&world.trace);
	frame = gt_symbols_stack(symbols, 1, 0).frames;
	snprintf(want, sizeof(want), "probe-stripped.so+0x%llx",
		 (unsigned long long)(world.nodes[1].pc - world.modules[1].bias));
	expect_frame(frame, GT_FRAME_NATIVE, want, NULL);
	expect_frame(gt_symbols_stack(symbols, 2, 0).frames, GT_FRAME_NATIVE, "probe::Outer::place",
		     NULL);
	gt_symbols_free(symbols);
}

/* The frame of one pc in the module as the trace now describes it, and what is reported missing. */
static void expect_unreadable(struct world *world, const char *function, bool changed)
{
	struct gt_symbols *symbols = gt_symbols_new(&world->trace);
	const struct gt_missing *missing;
	size_t count;

	gt_symbols_missing(symbols, &count);
	cr_expect_eq(count, 0, "opened before it was asked for");
	cr_expect_str_eq(gt_symbols_stack(symbols, 1, 0).frames[0].function, function);
	gt_symbols_stack(symbols, 2, 0);
	missing = gt_symbols_missing(symbols, &count);
	cr_assert_eq(count, 1);
	cr_expect_str_eq(missing[0].path, world->modules[1].path.text);
	cr_expect_eq(missing[0].changed, changed);
	gt_symbols_free(symbols);
}

Test(symbols, other_build_is_not_the_same_file)
{
	struct world world;

	load(&world, PROBE_DIR "/probe.so");
	push(&world, world.modules[1].bias + 0x1234, 1);
	push(&world, world.modules[1].bias + 0x2345, 1);
	world.modules[1].build_id[3] ^= 1;
	expect_unreadable(&world, "probe.so+0x1234", true);
}

Test(symbols, missing_or_strange_files_give_module_and_offset)
{
	const char *paths[] = {"/nowhere/lib.so", "/dev/zero", "/etc/passwd", "/"};
	const char *names[] = {"lib.so+0x7", "zero+0x7", "passwd+0x7", "+0x7"};
	struct world world;
	size_t i;

	load(&world, PROBE_DIR "/probe.so");
	push(&world, world.modules[1].bias + 7, 1);
	push(&world, world.modules[1].bias + 9, 1);
	for (i = 0; i < 4; i++) {
		world.modules[1].path = bytes(paths[i]);
		expect_unreadable(&world, names[i], false);
	}
}

Test(symbols, markers_and_unknown_addresses)
{
	struct world world;
	struct gt_symbols *symbols;
	struct gt_stack stack;
	size_t count;

	load(&world, PROBE_DIR "/probe.so");
	push(&world, GT_PC_TRUNCATED, 0);
	push(&world, 0x1234, 0);
	push(&world, 0x1234, 99);				   /* no such module */
	world.nodes[4] = (struct gt_node){GT_PC_INCOMPLETE, 4, 0}; /* its own caller */
	world.trace.node_count = 5;
	symbols = gt_symbols_new(&world.trace);
	stack = gt_symbols_stack(symbols, 3, 0);
	cr_assert_eq(stack.count, 3);
	expect_frame(&stack.frames[0], GT_FRAME_NATIVE, "[anon]", NULL);
	expect_frame(&stack.frames[1], GT_FRAME_NATIVE, "[anon]", NULL);
	expect_frame(&stack.frames[2], GT_FRAME_MARKER, "[truncated]", NULL);
	cr_expect_eq(gt_symbols_stack(symbols, 3, 0).frames, stack.frames, "not cached");
	stack = gt_symbols_stack(symbols, 4, 0);
	cr_assert_eq(stack.count, 1);
	expect_frame(&stack.frames[0], GT_FRAME_MARKER, "[incomplete]", NULL);
	cr_expect_eq(gt_symbols_stack(symbols, 0, 0).count, 0);
	cr_expect_eq(gt_symbols_stack(symbols, 1000, 1000).count, 0);
	cr_expect_null(gt_symbols_user_frame(symbols, 0, 0));
	cr_expect_str_eq(gt_symbols_owner(symbols, 3), "");
	gt_symbols_missing(symbols, &count);
	cr_expect_eq(count, 0);
	gt_symbols_free(symbols);
}

/* ---- whose frame --------------------------------------------------------------------------- */

struct owner_case {
	const char *modules[4]; /* innermost first */
	const char *owner;
	size_t user; /* index of the frame that stands for the stack */
};

static const struct owner_case owner_cases[] = {
	{{"/x/libcudart.so.12", "/home/u/a.out", "/lib/libc.so.6"}, "a.out", 1},
	{{"/x/libgputrace.so", "/x/libcuda.so.1", "/x/libnccl.so.2", "/home/u/app"},
	 "libnccl.so.2",
	 3},
	{{"/v/site-packages/torch/lib/libc10_cuda.so", "/v/site-packages/torch/lib/libtorch_cpu.so",
	  "/usr/bin/python3.11", "/home/u/ext.so"},
	 "libc10_cuda.so",
	 3},
	{{"/usr/lib/libstdc++.so.6", "/v/site-packages/nvidia/cublas/lib/libcublas.so.12",
	  "/v/site-packages/numpy/core.so", "/opt/tool"},
	 "libcublas.so.12",
	 3},
	{{"/x/libcuda.so.1", "/lib/libc.so.6"}, "", 0},
};

static void expect_owner(const struct owner_case *c)
{
	struct gt_module modules[5] = {0};
	struct gt_node nodes[5] = {0};
	struct gt_trace trace = {
		.modules = modules, .module_count = 5, .nodes = nodes, .node_count = 5};
	struct gt_symbols *symbols;
	const struct gt_frame *user;
	uint32_t i, count = 0;

	while (count < 4 && c->modules[count])
		count++;
	for (i = 1; i <= count; i++) {
		modules[i].path = bytes(c->modules[count - i]);
		nodes[i] = (struct gt_node){0x1000 * i, i - 1, i};
	}
	symbols = gt_symbols_new(&trace);
	cr_expect_str_eq(gt_symbols_owner(symbols, count), c->owner);
	user = gt_symbols_user_frame(symbols, count, 0);
	cr_assert(user);
	cr_expect_str_eq(user->module, c->modules[c->user], "%s", user->module);
	gt_symbols_free(symbols);
}

Test(symbols, owner_and_user_frame)
{
	size_t i;

	for (i = 0; i < sizeof(owner_cases) / sizeof(owner_cases[0]); i++)
		expect_owner(&owner_cases[i]);
}

Test(symbols, machinery_inside_the_users_object)
{
	cr_expect_eq(gt_library_of_frame("cudaMalloc", ""), GT_LIBRARY_CUDA);
	cr_expect_eq(gt_library_of_frame("__cudart1287", ""), GT_LIBRARY_CUDA);
	cr_expect_eq(gt_library_of_frame("cuda_helper", "/home/u/helper.c"), GT_LIBRARY_USER);
	cr_expect_eq(gt_library_of_frame("std::vector<int>::reserve",
					 "/usr/include/c++/12/bits/vector.tcc"),
		     GT_LIBRARY_SYSTEM);
	cr_expect_eq(gt_library_of_python("<frozen importlib._bootstrap>"), GT_LIBRARY_PYTHON);
	cr_expect_eq(gt_library_of_python("/usr/lib/python3.11/runpy.py"), GT_LIBRARY_PYTHON);
	cr_expect_eq(gt_library_of_python("/v/lib/python3.11/site-packages/torch/nn/x.py"),
		     GT_LIBRARY_TORCH);
	cr_expect_eq(gt_library_of_python("/v/lib/python3.11/site-packages/lib/x.py"),
		     GT_LIBRARY_PACKAGE);
	cr_expect_eq(gt_library_of_python("python3_train.py"), GT_LIBRARY_USER);
}

Test(symbols, python_frames_take_the_place_of_the_interpreter)
{
	struct gt_bytes strings[] = {{0},
				     bytes("/v/site-packages/torch/nn/modules/linear.py"),
				     bytes("Linear.forward"),
				     bytes("/home/u/tr\xe4in\n.py"),
				     bytes("main")};
	struct gt_pycode codes[] = {{0}, {1, 2, 0, 1, false}, {3, 4, 0, 1, false}};
	struct gt_pynode pynodes[] = {{0}, {0, 2, 25, 0}, {1, 1, 114, 0}};
	struct gt_module modules[] = {{.start = 0},
				      {.path = bytes("/v/site-packages/torch/lib/libtorch_cpu.so")},
				      {.path = bytes("/usr/bin/python3.11")},
				      {.path = bytes("/lib/libc.so.6")}};
	struct gt_node nodes[] = {{0}, {9, 0, 3}, {8, 1, 2}, {7, 2, 2}, {6, 3, 1}};
	struct gt_trace trace = {.strings = strings,
				 .string_count = 5,
				 .pycodes = codes,
				 .pycode_count = 3,
				 .pynodes = pynodes,
				 .pynode_count = 3,
				 .modules = modules,
				 .module_count = 4,
				 .nodes = nodes,
				 .node_count = 5};
	struct gt_symbols *symbols = gt_symbols_new(&trace);
	struct gt_stack stack = gt_symbols_stack(symbols, 4, 2);
	const struct gt_frame *user = gt_symbols_user_frame(symbols, 4, 2);

	cr_assert_eq(stack.count, 4);
	cr_expect_str_eq(stack.frames[0].function, "libtorch_cpu.so+0x6");
	cr_expect_str_eq(stack.frames[1].function, "Linear.forward");
	cr_expect_eq(stack.frames[1].line, 114);
	cr_expect_str_eq(stack.frames[2].file, "/home/u/tr\xef\xbf\xbdin\xef\xbf\xbd.py");
	cr_expect_eq(stack.frames[2].kind, GT_FRAME_PYTHON);
	cr_expect_str_eq(stack.frames[3].function, "libc.so.6+0x9");
	cr_expect_eq(user, &stack.frames[2]);
	gt_symbols_free(symbols);
}

/* step(), called by main(); inner: 1 + calls of the interpreter that began between the two. */
static struct gt_stack merged(struct world *world, uint16_t inner, struct gt_symbols **ret)
{
	static struct gt_bytes strings[4];
	static struct gt_pycode codes[] = {{0}, {1, 2, 0, 1, false}, {1, 3, 0, 1, false}};
	static struct gt_pynode pynodes[] = {
		{0}, {.code = 1, .line = 25, .calls = 2}, {.parent = 1, .code = 2, .line = 114}};

	strings[1] = bytes("/home/u/train.py");
	strings[2] = bytes("main");
	strings[3] = bytes("step");
	pynodes[2].calls = inner;
	world->trace.strings = strings;
	world->trace.string_count = 4;
	world->trace.pycodes = codes;
	world->trace.pycode_count = 3;
	world->trace.pynodes = pynodes;
	world->trace.pynode_count = 3;
	*ret = gt_symbols_new(&world->trace);
	return gt_symbols_stack(*ret, (uint32_t)world->trace.node_count - 1, 2);
}

static void expect_functions(struct gt_stack stack, const char *const *wanted, size_t count)
{
	cr_assert_eq(stack.count, count, "%zu frames", stack.count);
	for (size_t i = 0; i < count; i++)
		cr_expect_str_eq(stack.frames[i].function, wanted[i]);
}

/* Of two calls of the interpreter between a frame and its caller the outer one executes none. */
Test(symbols, calls_that_execute_no_frame_take_the_place_of_none)
{
	static const char *const calls[] = {"_PyEval_EvalFrameDefault", "probe_cxx",
					    "_PyEval_EvalFrameDefault", "probe_hidden",
					    "_PyEval_EvalFrameDefault"};
	static const char *const wanted[] = {"step", "hidden_place", "probe::inner",
					     "probe::Outer::place", "main"};
	struct gt_symbols *symbols;
	struct world world;

	load(&world, PROBE_DIR "/probe.so");
	for (size_t i = 0; i < 5; i++)
		push(&world, call(&world, calls[i]), 1);
	expect_functions(merged(&world, 3, &symbols), wanted, 5);
	gt_symbols_free(symbols);
}

/* Code of no file between two frames of the interpreter is its own; outside them it is anyone's. */
Test(symbols, code_that_the_interpreter_made_is_part_of_it)
{
	static const char *const wanted[] = {"step", "main", "[anon]", "hidden_place"};
	struct gt_symbols *symbols;
	struct world world;

	load(&world, PROBE_DIR "/probe.so");
	push(&world, call(&world, "probe_hidden"), 1);
	push(&world, 0x2000, 0);
	push(&world, call(&world, "_PyEval_EvalFrameDefault"), 1);
	push(&world, 0x1000, 0);
	push(&world, call(&world, "_PyEval_EvalFrameDefault"), 1);
	expect_functions(merged(&world, 2, &symbols), wanted, 4);
	gt_symbols_free(symbols);
}

/* ---- texts --------------------------------------------------------------------------------- */

#define BAD "\xef\xbf\xbd"

static const char *const clean_cases[][2] = {
	{"plain", "plain"},
	{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
	{"\xe6\xbc\xa2\xf0\x9f\x98\x80", "\xe6\xbc\xa2\xf0\x9f\x98\x80"},
	{"latin\xe9", "latin" BAD},
	{"a\nb\x1b[31m\x7f", "a" BAD "b" BAD "[31m" BAD},
	{"c1\xc2\x9b", "c1" BAD BAD},
	{"overlong\xc0\xaf", "overlong" BAD BAD},
	{"surrogate\xed\xa0\x80", "surrogate" BAD BAD BAD},
	{"beyond\xf4\x90\x80\x80", "beyond" BAD BAD BAD BAD},
	{"cut\xe6\xbc", "cut" BAD BAD},
	{"\xff\xfe", BAD BAD},
	{"", ""},
};

Test(text, clean_text_is_printable_utf8_and_unique)
{
	struct gt_text *text = gt_text_new();
	size_t i;

	for (i = 0; i < sizeof(clean_cases) / sizeof(clean_cases[0]); i++) {
		const char *dirty = clean_cases[i][0];
		const char *clean = gt_text_clean(text, dirty, strlen(dirty));

		cr_expect_str_eq(clean, clean_cases[i][1]);
		cr_expect_eq(clean, gt_text_clean(text, dirty, strlen(dirty)));
	}
	cr_expect_str_eq(gt_text_clean(text, "nul\0inside", 10), "nul" BAD "inside");
	gt_text_free(text);
}

static const char *const function_cases[][2] = {
	{"main", "main"},
	{"_ZN2at6native10empty_cudaEN3c108ArrayRefIlEE", "at::native::empty_cuda"},
	{"_ZN5probe5Outer5placeEiPKc", "probe::Outer::place"},
	{"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
	{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
	{"_Znotmangled", "_Znotmangled"},
};

Test(text, functions_are_demangled_without_parameters)
{
	struct gt_text *text = gt_text_new();
	size_t i;

	for (i = 0; i < sizeof(function_cases) / sizeof(function_cases[0]); i++)
		cr_expect_str_eq(gt_text_function(text, function_cases[i][0]),
				 function_cases[i][1]);
	gt_text_free(text);
}
