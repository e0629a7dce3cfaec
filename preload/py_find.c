/* SPDX-License-Identifier: MIT */
/*
 * Finds the interpreter: the object that defines the C API, be it the executable (static builds,
 * also stripped: extension modules need the symbols) or libpython, also one loaded with RTLD_LOCAL.
 * With two of them in the process the one that has been initialised is meant. Walks the loader's
 * list under its lock: called at the start, and seldom while there is no interpreter.
 */
#include "elf.h"
#include "py.h"

struct search {
	struct gt_object program; /* the executable: first in load order */
	bool have_program, found;
	struct gt_py_api api;
};

/* The executable's copy of a data symbol, if it has one (copy relocation), is everyone's. */
static void *symbol(const struct search *s, const struct gt_object *object, const char *name)
{
	void *p = gt_elf_symbol(&s->program, name);

	return p ? p : gt_elf_symbol(object, name);
}

static bool fill(const struct search *s, const struct gt_object *object, struct gt_py_api *api)
{
	void *finalizing = symbol(s, object, "Py_IsFinalizing");

	if (!finalizing)
		finalizing = symbol(s, object, "_Py_IsFinalizing");
	*api = (struct gt_py_api){
		.this_thread_state = symbol(s, object, "PyGILState_GetThisThreadState"),
		.is_initialized = symbol(s, object, "Py_IsInitialized"),
		.is_finalizing = finalizing,
		.version = symbol(s, object, "Py_GetVersion"),
		.code_type = symbol(s, object, "PyCode_Type"),
		.unicode_type = symbol(s, object, "PyUnicode_Type"),
		.bytes_type = symbol(s, object, "PyBytes_Type"),
		.type_type = symbol(s, object, "PyType_Type"),
		.runtime = symbol(s, object, "_PyRuntime"),
	};
	return api->this_thread_state && api->is_initialized && finalizing && api->version &&
	       api->code_type && api->unicode_type && api->bytes_type && api->type_type;
}

static bool visit(const struct gt_object *object, void *arg)
{
	struct search *s = arg;
	struct gt_py_api api;

	if (!s->have_program) {
		s->program = *object;
		s->have_program = true;
	}
	if (!gt_elf_symbol(object, "PyGILState_GetThisThreadState") || !fill(s, object, &api))
		return false;
	s->api = api;
	s->found = true;
	return api.is_initialized() != 0;
}

bool gt_py_find(struct gt_py_api *ret)
{
	struct search s = {.have_program = false};

	gt_elf_each(visit, &s);
	if (s.found)
		*ret = s.api;
	return s.found;
}
