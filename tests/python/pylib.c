/* SPDX-License-Identifier: MIT */
/*
 * The Python capture as a library for ctypes: the preload's own objects over a recorder that keeps
 * the definitions in memory, where the test can read them back. Checks what the file format
 * promises of them: ids dense and in order, parents and strings defined before they are used.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "../../preload/py.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* only ctypes calls these functions */

/* ---- a recorder in memory ------------------------------------------------------------------ */

enum { MAX_STRINGS = 1 << 16, MAX_CODES = 1 << 16, MAX_NODES = 1 << 20 };

struct text {
	char *bytes;
	size_t length;
};

static struct text strings[MAX_STRINGS];
static struct gt_rec_pycode codes[MAX_CODES];
static struct gt_rec_pynode nodes[MAX_NODES];
static uint32_t string_count, code_count, node_count;
static char infos[4096];
static uint64_t lost[GT_LOST_REASONS];
static int broken; /* promises of the format that were not kept */
static pthread_mutex_t defs = PTHREAD_MUTEX_INITIALIZER;

uint32_t gt_def_string(const char *text, size_t length)
{
	uint32_t id;

	pthread_mutex_lock(&defs);
	for (id = 1; id <= string_count; id++)
		if (strings[id].length == length && !memcmp(strings[id].bytes, text, length))
			break;
	if (id > string_count && id < MAX_STRINGS) {
		strings[id].bytes = calloc(1, length + 1);
		memcpy(strings[id].bytes, text, length);
		strings[id].length = length;
		string_count = id;
	}
	pthread_mutex_unlock(&defs);
	return id < MAX_STRINGS ? id : 0;
}

static bool add_code(const struct gt_rec_pycode *c)
{
	if (c->id != code_count + 1 || c->id >= MAX_CODES || !c->file || !c->name)
		return false;
	if (c->file > string_count || c->name > string_count || c->qualname > string_count)
		return false;
	codes[c->id] = *c;
	code_count = c->id;
	return true;
}

static bool add_node(const struct gt_rec_pynode *n)
{
	bool no_code = !n->line && n->rec.more; /* outer frames cut off, or calls without a frame */

	if (n->id != node_count + 1 || n->id >= MAX_NODES || n->parent >= n->id)
		return false;
	if (n->code > code_count || (!n->code && !no_code))
		return false;
	nodes[n->id] = *n;
	node_count = n->id;
	return true;
}

bool gt_def_append(struct gt_rec *rec, size_t size, const void *text, size_t text_length,
		   const void *text2, size_t text2_length)
{
	bool good = size == rec->length && !text_length && !text2_length;

	pthread_mutex_lock(&defs);
	if (rec->kind == GT_REC_PYCODE)
		good = good && add_code((const struct gt_rec_pycode *)rec);
	else if (rec->kind == GT_REC_PYNODE)
		good = good && add_node((const struct gt_rec_pynode *)rec);
	else
		good = false;
	broken += !good;
	pthread_mutex_unlock(&defs);
	return good;
}

void gt_def_info(const char *key, const void *value, size_t length)
{
	pthread_mutex_lock(&defs);
	strncat(infos, key, sizeof(infos) - strlen(infos) - 1);
	strncat(infos, "=", sizeof(infos) - strlen(infos) - 1);
	strncat(infos, value, length < sizeof(infos) - strlen(infos) - 2 ? length : 0);
	strncat(infos, "\n", sizeof(infos) - strlen(infos) - 1);
	pthread_mutex_unlock(&defs);
}

void gt_doctor_python(const char *version, const char *state, const char *why)
{
}

void gt_count_lost(enum gt_lost why)
{
	__atomic_add_fetch(&lost[why], 1, __ATOMIC_RELAXED);
}

struct gt_py_last *gt_python_last(void)
{
	static __thread struct {
		struct gt_py_last last;
		struct gt_py_known known[GT_PY_DEPTH_MAX];
	} mine;

	return &mine.last;
}

/* ---- for ctypes ---------------------------------------------------------------------------- */

GT_PUBLIC void pylib_start(uint32_t depth)
{
	gt_options.depth = depth;
	gt_python_start();
}

struct evaluations {
	const uint8_t *function;
	size_t size;
	int count;
};

/* Does the function jump there? Then that is its rest, which compilers put elsewhere. */
static bool goes_to(const struct evaluations *e, const uint8_t *piece)
{
	for (size_t i = 0; i + 6 <= e->size; i++) {
		const uint8_t *at = e->function + i;
		size_t length = *at == 0xe9 ? 5 : *at == 0x0f && (at[1] & 0xf0) == 0x80 ? 6 : 0;
		int32_t distance;

		memcpy(&distance, at + length - 4, length ? sizeof(distance) : 0);
		if (length && at + length + distance == piece)
			return true;
	}
	return false;
}

static _Unwind_Reason_Code count_evaluation(struct _Unwind_Context *context, void *arg)
{
	struct evaluations *e = arg;
	char *pc = (char *)_Unwind_GetIP(context);
	const uint8_t *piece = pc ? _Unwind_FindEnclosingFunction(pc - 1) : NULL;
	Dl_info info;

	if (!piece)
		return _URC_NO_REASON;
	e->count += piece == e->function ||
		    (!(dladdr(piece, &info) && info.dli_saddr == piece) && goes_to(e, piece));
	return _URC_NO_REASON;
}

static __thread int unmatched;

/* How often the interpreter's evaluation function stands in the native stack but not in a Python one. */
static void match(uint32_t id)
{
	struct evaluations e = {.function = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault")};

	const ElfW(Sym) * symbol;
	Dl_info info;

	if (!e.function || !dladdr1(e.function, &info, (void **)&symbol, RTLD_DL_SYMENT))
		return;
	e.size = symbol->st_size;
	_Unwind_Backtrace(count_evaluation, &e);
	for (; id; id = nodes[id].parent)
		e.count -= nodes[id].rec.more - 1;
	unmatched = e.count;
}

GT_PUBLIC int pylib_unmatched(void)
{
	return unmatched;
}

/* Without the nodes that stand for no frame. */
GT_PUBLIC uint32_t pylib_capture(void)
{
	uint32_t id = gt_python_capture();

	match(id);
	return id && !nodes[id].code && nodes[id].parent ? nodes[id].parent : id;
}

GT_PUBLIC uint32_t pylib_node(uint32_t id, uint32_t *code, int32_t *line)
{
	*code = nodes[id].code;
	*line = nodes[id].line;
	return nodes[id].parent;
}

/* Evaluations between its caller and the frame, -1 = not known. */
GT_PUBLIC int pylib_calls(uint32_t id)
{
	return nodes[id].rec.more - 1;
}

GT_PUBLIC int32_t pylib_code(uint32_t id, uint32_t *file, uint32_t *name, uint32_t *qualname)
{
	*file = codes[id].file;
	*name = codes[id].name;
	*qualname = codes[id].qualname;
	return codes[id].first_line;
}

GT_PUBLIC const char *pylib_string(uint32_t id, size_t *length)
{
	*length = strings[id].length;
	return strings[id].bytes;
}

GT_PUBLIC const char *pylib_infos(void)
{
	return infos;
}

GT_PUBLIC uint64_t pylib_lost(int why)
{
	return lost[why];
}

GT_PUBLIC int pylib_broken(void)
{
	return broken;
}

GT_PUBLIC uint32_t pylib_nodes(void)
{
	return node_count;
}

/* What fork.c does in a child: the recorder starts anew. */
GT_PUBLIC void pylib_fork_child(void)
{
	string_count = code_count = node_count = 0;
	infos[0] = 0;
	gt_python_last()->count = 0;
	gt_python_fork_child();
}

/* PYLIB_VERSION makes the interpreter call itself something else. */
static const char *other_version(void)
{
	return getenv("PYLIB_VERSION");
}

bool __real_gt_py_find(struct gt_py_api *ret);
bool __wrap_gt_py_find(struct gt_py_api *ret)
{
	bool found = __real_gt_py_find(ret);

	if (found && other_version())
		ret->version = other_version;
	return found;
}

/* Lines of a code object by our table decoder and by the interpreter's: how many differ. */
GT_PUBLIC int pylib_lines_differ(const char *code, int size, int *ret_compared)
{
	int (*theirs)(const void *, int) =
		(int (*)(const void *, int))dlsym(RTLD_DEFAULT, "PyCode_Addr2Line");
	const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
	const char *reason;
	const struct gt_py_layout *l = gt_py_layout_find(version(), &reason);
	int addr, line, wrong = 0;

	for (addr = 0; addr < size; addr += 2) {
		line = theirs(code, addr);
		if (line <= 0)
			line = gt_py_i32(code, l->code_first_line);
		wrong += gt_py_code_line(l, code, addr) != line;
	}
	*ret_compared += size / 2;
	return wrong;
}

/* Nanoseconds per capture of the calling thread's stack. */
GT_PUBLIC double pylib_bench(int n)
{
	struct timespec a, b;
	int i;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (i = 0; i < n; i++)
		gt_python_capture();
	clock_gettime(CLOCK_MONOTONIC, &b);
	return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n;
}

/* ---- scenarios that need C ----------------------------------------------------------------- */

/* A plain callback, as sort functions and visitors of C libraries make it. */
GT_PUBLIC int pylib_call(int (*callback)(int), int argument)
{
	return callback(argument);
}

struct job {
	int (*callback)(int);
	uint32_t node;
	int mode;
};

enum { JOB_CAPTURE, JOB_CALL, JOB_REGISTERED };

/* Registered as autograd's workers are: a thread state is made, no Python code is running. */
static uint32_t capture_registered(void)
{
	int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
	void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
	void *(*save)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
	void (*restore)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
	int state = ensure();
	void *ts = save();
	uint32_t node = gt_python_capture();

	restore(ts);
	release(state);
	return node;
}

static void *run_job(void *arg)
{
	struct job *job = arg;

	if (job->mode == JOB_CALL)
		job->callback(1);
	else if (job->mode == JOB_REGISTERED)
		job->node = capture_registered();
	else
		job->node = gt_python_capture();
	return NULL;
}

/* Runs a job in a thread that Python did not make; returns the node that it captured. */
GT_PUBLIC uint32_t pylib_native_thread(int mode, int (*callback)(int))
{
	struct job job = {.callback = callback, .node = UINT32_MAX, .mode = mode};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_job, &job))
		return UINT32_MAX - 1;
	pthread_join(thread, NULL);
	return job.node;
}

/* Runs source in a new interpreter of this thread; called with the GIL held. */
GT_PUBLIC int pylib_subinterpreter(const char *source)
{
	void *(*get)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyThreadState_Get");
	void *(*swap)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "PyThreadState_Swap");
	void *(*create)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "Py_NewInterpreter");
	void (*destroy)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "Py_EndInterpreter");
	int (*run)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
	void *outer = get(), *inner = create();
	int status = -1;

	if (inner) {
		status = run(source);
		destroy(inner);
	}
	swap(outer);
	return status;
}

static uint32_t kept;

GT_PUBLIC void pylib_keep(uint32_t node)
{
	kept = node;
}

GT_PUBLIC uint32_t pylib_kept(void)
{
	return kept;
}

/* ---- the end of the process ---------------------------------------------------------------- */

static int background = -1;

/* Captures as fast as it can while the interpreter ends, from a thread that Python knows. */
static void *capture_for_ever(void *arg)
{
	int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
	void *(*save)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");

	ensure();
	save();
	gt_store(&background, 0);
	while (gt_load(&background) >= 0) {
		gt_python_capture();
		gt_store(&background, 1);
	}
	return NULL;
}

GT_PUBLIC int pylib_capture_for_ever(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, capture_for_ever, NULL);
}

static void at_exit(void)
{
	static const char no[] = "a stack after the interpreter's end\n";

	if (gt_python_capture() != 0 && write(2, no, sizeof(no) - 1) > 0)
		_exit(9);
}

/* After Py_Finalize: runs when libc's exit does. */
GT_PUBLIC void pylib_capture_at_exit(void)
{
	atexit(at_exit);
}
