/* SPDX-License-Identifier: MIT */
/*
 * A program that loads Python late, out of sight of the global scope, and ends it again: the
 * capture must find the interpreter after it has looked in vain, must say nothing before and after
 * its life, and must be right in its second life. usage: embed LIBPYTHON
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern void pylib_start(uint32_t depth);
extern uint32_t pylib_capture(void);
extern uint32_t pylib_node(uint32_t id, uint32_t *code, int32_t *line);
extern int32_t pylib_code(uint32_t id, uint32_t *file, uint32_t *name, uint32_t *qualname);
extern const char *pylib_string(uint32_t id, size_t *length);

struct method { /* PyMethodDef */
	const char *name;
	void *(*function)(void *self, void *arguments);
	int flags;
	const char *doc;
};

static void *python;
static void *(*from_long)(long);
static int called, wrong;

static void *symbol(const char *name)
{
	void *p = dlsym(python, name);

	if (!p)
		printf("no %s\n", name);
	return p;
}

static uint32_t expect(uint32_t node, const char *want_name, int want_line)
{
	uint32_t code, file, name, qualname, parent;
	size_t length;
	int32_t line;

	parent = pylib_node(node, &code, &line);
	pylib_code(code, &file, &name, &qualname);
	wrong += !node || line != want_line || strcmp(pylib_string(name, &length), want_name) ||
		 strcmp(pylib_string(file, &length), "<string>");
	return parent;
}

/* Called as capture() on line 2 of f, which line 3 calls. */
static void *capture(void *self, void *arguments)
{
	uint32_t node = pylib_capture();

	node = expect(node, "f", 2);
	node = expect(node, "<module>", 3);
	wrong += node != 0;
	called++;
	return from_long(0);
}

static void one_life(void)
{
	static struct method method = {"capture", capture, 4 /* METH_NOARGS */, NULL};
	void (*initialize)(int) = symbol("Py_InitializeEx");
	int (*finalize)(void) = symbol("Py_FinalizeEx");
	void *(*import)(const char *) = symbol("PyImport_AddModule");
	void *(*function)(struct method *, void *, void *) = symbol("PyCFunction_NewEx");
	int (*set)(void *, const char *, void *) = symbol("PyObject_SetAttrString");
	int (*run)(const char *) = symbol("PyRun_SimpleString");
	int i;

	initialize(0);
	set(import("__main__"), "capture", function(&method, NULL, NULL));
	wrong += pylib_capture() != 0; /* no Python code is running */
	for (i = 0; i < 3; i++)
		wrong += run("def f():\n    capture()\nf()\n") != 0;
	finalize();
	wrong += pylib_capture() != 0;
}

int main(int argc, char **argv)
{
	int i;

	pylib_start(512);
	for (i = 0; i < 100; i++)
		wrong += pylib_capture() != 0;
	python = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	from_long = python ? (void *(*)(long))symbol("PyLong_FromLong") : NULL;
	if (!from_long)
		return 2;
	for (i = 0; i < 100; i++)
		wrong += pylib_capture() != 0;
	one_life();
	one_life();
	printf("%d calls, %d wrong\n", called, wrong);
	return wrong || called != 6;
}
