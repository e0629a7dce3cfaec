/* SPDX-License-Identifier: MIT */
/*
 * See unpickle.h. One loop over opcodes and a table of what each does; no function calls itself, so
 * that no nesting in a file can exhaust our stack. Every length is compared with what is left of the
 * file before memory is taken for it, and every opcode makes at most one value or refers to one that
 * is there: memory is bounded by the file's size. A memo number above the file's size is refused for
 * the same reason. Called by open.c; fuzzed by tests/fuzz/pickle.c.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/progress.h"
#include "torch/escape.h"
#include "torch/memory.h"
#include "torch/unpickle.h"

#define TELL	 65536u	    /* steps between two words on how far we are */
#define NONE_YET UINT32_MAX /* in the memo */

struct numbers { /* of values, or places in the stack */
	uint32_t *at;
	size_t count, capacity;
};

struct vm {
	const uint8_t *bytes, *at, *end;
	struct gt_values values;
	size_t capacity; /* of values */
	struct numbers stack, marks, memo;
	size_t memo_size; /* entries set: where MEMOIZE goes on */
	bool stopped;
	char detail[200];
};

/* What an opcode does; arg tells apart those that differ in a length or a kind. NULL, or what is wrong. */
typedef const char *handler(struct vm *vm, unsigned int arg);

static const char *const no_memory = "not enough memory";
static const char *const cut = "the file ends inside it";
static const char *const empty = "the stack is empty";
static const char *const no_mark = "there is no mark";
static const char *const no_number = "not a number";

/* ---- parts --------------------------------------------------------------------------------- */

static const char *push_number(struct numbers *numbers, uint32_t value)
{
	if (gt_torch_grow(&numbers->at, &numbers->capacity, numbers->count, sizeof(*numbers->at)))
		return no_memory;
	numbers->at[numbers->count++] = value;
	return NULL;
}

static struct gt_value *make(struct vm *vm, enum gt_value_kind kind)
{
	struct gt_values *values = &vm->values;

	if (values->count >= UINT32_MAX ||
	    gt_torch_grow(&values->at, &vm->capacity, values->count, sizeof(*values->at)))
		return NULL;
	values->at[values->count] = (struct gt_value){.kind = (uint8_t)kind};
	return &values->at[values->count++];
}

static const char *push(struct vm *vm, const struct gt_value *value)
{
	struct gt_value *made = make(vm, (enum gt_value_kind)value->kind);

	if (!made)
		return no_memory;
	*made = *value;
	return push_number(&vm->stack, (uint32_t)(vm->values.count - 1));
}

static const char *push_int(struct vm *vm, int64_t integer)
{
	return push(vm, &(struct gt_value){.kind = GT_VALUE_INT,
					   .negative = integer < 0,
					   .integer = (uint64_t)integer});
}

/* What the innermost mark hides belongs to whoever set it. */
static size_t floor_of(const struct vm *vm)
{
	return vm->marks.count ? vm->marks.at[vm->marks.count - 1] : 0;
}

static bool pop(struct vm *vm, uint32_t *ret)
{
	if (vm->stack.count <= floor_of(vm))
		return false;
	*ret = vm->stack.at[--vm->stack.count];
	return true;
}

/* The items above the innermost mark, which goes; they stay where they are until something is put. */
static bool pop_mark(struct vm *vm, const uint32_t **ret_items, size_t *ret_count)
{
	size_t from;

	if (!vm->marks.count)
		return false;
	from = vm->marks.at[--vm->marks.count];
	*ret_count = vm->stack.count - from;
	*ret_items = *ret_count ? vm->stack.at + from : NULL;
	vm->stack.count = from;
	return true;
}

static bool take(struct vm *vm, size_t length, const uint8_t **ret)
{
	if ((size_t)(vm->end - vm->at) < length)
		return false;
	*ret = vm->at;
	vm->at += length;
	return true;
}

static bool take_number(struct vm *vm, size_t length, uint64_t *ret)
{
	const uint8_t *bytes;

	if (!take(vm, length, &bytes))
		return false;
	*ret = 0;
	for (size_t i = length; i-- > 0;)
		*ret = *ret << 8 | bytes[i];
	return true;
}

/* The rest of the line, without its end. */
static bool take_line(struct vm *vm, const char **ret, size_t *ret_length)
{
	const uint8_t *newline = memchr(vm->at, '\n', (size_t)(vm->end - vm->at));

	if (!newline)
		return false;
	*ret = (const char *)vm->at;
	*ret_length = (size_t)(newline - vm->at);
	vm->at = newline + 1;
	return true;
}

/* ---- lists and dicts ----------------------------------------------------------------------- */

/*
 * Items are kept behind a number that says how many fit: a list that grows one by one is not copied
 * each time. The old place of one that moves stays taken until the end.
 */
static const char *append(struct vm *vm, uint32_t number, const uint32_t *items, size_t count)
{
	struct gt_value *list = &vm->values.at[number];
	const size_t total = list->count + count;
	const size_t capacity = list->count ? 2 * total : total;
	uint32_t *grown;

	if (!count)
		return NULL;
	if (!list->count || total > list->items[-1]) {
		if (capacity > UINT32_MAX)
			return "a list is too long";
		grown = gt_arena_take(&vm->values.arena, (capacity + 1) * sizeof(*grown));
		if (!grown)
			return no_memory;
		grown[0] = (uint32_t)capacity;
		if (list->count)
			memcpy(grown + 1, list->items, list->count * sizeof(*grown));
		list->items = grown + 1;
	}
	memcpy(list->items + list->count, items, count * sizeof(*items));
	list->count = (uint32_t)total;
	return NULL;
}

static const char *push_with(struct vm *vm, enum gt_value_kind kind, const uint32_t *items,
			     size_t count)
{
	if (!make(vm, kind))
		return no_memory;
	return append(vm, (uint32_t)(vm->values.count - 1), items, count);
}

/* From the items above the mark; they are on the stack still, so the value is pushed last. */
static const char *op_collect(struct vm *vm, unsigned int kind)
{
	const uint32_t *items;
	const char *bad;
	size_t count;

	if (!pop_mark(vm, &items, &count))
		return no_mark;
	if (kind == GT_VALUE_DICT && count % 2)
		return "a key has no value";
	bad = push_with(vm, (enum gt_value_kind)kind, items, count);
	return bad ? bad : push_number(&vm->stack, (uint32_t)(vm->values.count - 1));
}

static const char *op_tuple_of(struct vm *vm, unsigned int count)
{
	const char *bad;

	if (vm->stack.count - floor_of(vm) < count)
		return empty;
	vm->stack.count -= count;
	bad = push_with(vm, GT_VALUE_TUPLE, vm->stack.at + vm->stack.count, count);
	return bad ? bad : push_number(&vm->stack, (uint32_t)(vm->values.count - 1));
}

/* The value on the stack below what was just taken, if it is of the kind. */
static const char *extend(struct vm *vm, enum gt_value_kind kind, const uint32_t *items,
			  size_t count)
{
	uint32_t number;

	if (vm->stack.count <= floor_of(vm))
		return empty;
	number = vm->stack.at[vm->stack.count - 1];
	if (vm->values.at[number].kind != kind)
		return "what it adds to is of another kind";
	if (kind == GT_VALUE_DICT && count % 2)
		return "a key has no value";
	return append(vm, number, items, count);
}

static const char *op_extend(struct vm *vm, unsigned int kind)
{
	const uint32_t *items;
	size_t count;

	return pop_mark(vm, &items, &count) ? extend(vm, (enum gt_value_kind)kind, items, count)
					    : no_mark;
}

static const char *op_extend_by_one(struct vm *vm, unsigned int kind)
{
	const size_t count = kind == GT_VALUE_DICT ? 2 : 1;

	if (vm->stack.count - floor_of(vm) < count + 1)
		return empty;
	vm->stack.count -= count;
	return extend(vm, (enum gt_value_kind)kind, vm->stack.at + vm->stack.count, count);
}

static const char *op_mark(struct vm *vm, unsigned int arg)
{
	return push_number(&vm->marks, (uint32_t)vm->stack.count);
}

static const char *op_pop(struct vm *vm, unsigned int arg)
{
	uint32_t gone;

	if (pop(vm, &gone))
		return NULL;
	if (!vm->marks.count)
		return empty;
	vm->marks.count--; /* CPython's way: nothing is left above the mark but the mark */
	return NULL;
}

static const char *op_pop_mark(struct vm *vm, unsigned int arg)
{
	const uint32_t *items;
	size_t count;

	return pop_mark(vm, &items, &count) ? NULL : no_mark;
}

static const char *op_dup(struct vm *vm, unsigned int arg)
{
	if (vm->stack.count <= floor_of(vm))
		return empty;
	return push_number(&vm->stack, vm->stack.at[vm->stack.count - 1]);
}

static const char *op_empty(struct vm *vm, unsigned int kind)
{
	return push(vm, &(struct gt_value){.kind = (uint8_t)kind});
}

/* ---- numbers ------------------------------------------------------------------------------- */

static const char *op_none(struct vm *vm, unsigned int arg)
{
	return push_number(&vm->stack, 0);
}

static const char *op_bool(struct vm *vm, unsigned int value)
{
	return push(vm, &(struct gt_value){.kind = GT_VALUE_BOOL, .integer = value});
}

static const char *op_unsigned(struct vm *vm, unsigned int length)
{
	uint64_t number;

	return take_number(vm, length, &number) ? push_int(vm, (int64_t)number) : cut;
}

static const char *op_binint(struct vm *vm, unsigned int arg)
{
	uint64_t number;

	return take_number(vm, 4, &number) ? push_int(vm, (int32_t)number) : cut;
}

/* Two's complement of any length; a ninth byte is there for the sign of what has 64 bits. */
static const char *op_long_of(struct vm *vm, unsigned int length_bytes)
{
	struct gt_value value = {.kind = GT_VALUE_INT};
	const uint8_t *bytes;
	uint64_t length;
	uint8_t fill;

	if (!take_number(vm, length_bytes, &length) || !take(vm, length, &bytes))
		return cut;
	value.negative = length && bytes[length - 1] & 0x80;
	fill = value.negative ? 0xff : 0;
	value.integer = value.negative ? UINT64_MAX : 0;
	for (size_t i = 0; i < length && i < 8; i++) {
		value.integer &= ~((uint64_t)0xff << 8 * i);
		value.integer |= (uint64_t)bytes[i] << 8 * i;
	}
	for (size_t i = 8; i < length; i++)
		if (bytes[i] != fill)
			value.kind = GT_VALUE_BIG;
	if (value.negative && length > 8 && !(value.integer >> 63))
		value.kind = GT_VALUE_BIG;
	return push(vm, &value);
}

/* Its text, terminated; false: longer than any number that we could use. */
static bool copy_line(const char *line, size_t length, char *text, size_t size)
{
	if (length >= size)
		return false;
	memcpy(text, line, length);
	text[length] = 0;
	return true;
}

static const char *push_decimal(struct vm *vm, const char *line, size_t length)
{
	struct gt_value value = {.kind = GT_VALUE_INT};
	char text[32], *end;

	if (length && line[length - 1] == 'L')
		length--;
	if (!length)
		return no_number;
	for (size_t i = line[0] == '-'; i < length; i++)
		if (!isdigit((unsigned char)line[i]))
			return no_number;
	value.negative = line[0] == '-';
	if (!copy_line(line, length, text, sizeof(text))) {
		value.kind = GT_VALUE_BIG;
		return push(vm, &value);
	}
	errno = 0;
	value.integer = strtoull(text + value.negative, &end, 10);
	if (end == text + value.negative)
		return no_number;
	if (errno || (value.negative && value.integer > (uint64_t)1 << 63))
		value.kind = GT_VALUE_BIG;
	if (value.negative)
		value.integer = 0 - value.integer;
	return push(vm, &value);
}

/* Protocol 0 has its bools as the ints 00 and 01. */
static const char *op_int(struct vm *vm, unsigned int arg)
{
	const char *line;
	size_t length;

	if (!take_line(vm, &line, &length))
		return cut;
	if (length == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1'))
		return op_bool(vm, line[1] == '1');
	return push_decimal(vm, line, length);
}

static const char *op_long(struct vm *vm, unsigned int arg)
{
	const char *line;
	size_t length;

	return take_line(vm, &line, &length) ? push_decimal(vm, line, length) : cut;
}

static const char *op_float(struct vm *vm, unsigned int arg)
{
	struct gt_value value = {.kind = GT_VALUE_FLOAT};
	char text[64], *end;
	const char *line;
	size_t length;

	if (!take_line(vm, &line, &length))
		return cut;
	if (!length || !copy_line(line, length, text, sizeof(text)))
		return no_number;
	value.real = strtod(text, &end);
	return *end ? no_number : push(vm, &value);
}

static const char *op_binfloat(struct vm *vm, unsigned int arg)
{
	struct gt_value value = {.kind = GT_VALUE_FLOAT};
	uint64_t bits;

	if (!take_number(vm, 8, &bits))
		return cut;
	bits = __builtin_bswap64(bits); /* the one number of a pickle with its high byte first */
	memcpy(&value.real, &bits, sizeof(bits));
	return push(vm, &value);
}

/* ---- texts --------------------------------------------------------------------------------- */

static const char *push_bytes(struct vm *vm, enum gt_value_kind kind, unsigned int length_bytes)
{
	const uint8_t *bytes;
	uint64_t length;

	if (!take_number(vm, length_bytes, &length))
		return cut;
	if (length > (size_t)(vm->end - vm->at) || length > UINT32_MAX)
		return cut;
	take(vm, length, &bytes);
	return push(vm, &(struct gt_value){.kind = (uint8_t)kind,
					   .count = (uint32_t)length,
					   .text = (const char *)bytes});
}

static const char *op_text(struct vm *vm, unsigned int length_bytes)
{
	return push_bytes(vm, GT_VALUE_TEXT, length_bytes);
}

static const char *op_bytes(struct vm *vm, unsigned int length_bytes)
{
	return push_bytes(vm, GT_VALUE_BYTES, length_bytes);
}

static const char *push_escaped(struct vm *vm, const char *line, size_t length, bool quoted)
{
	struct gt_value value = {.kind = GT_VALUE_TEXT};
	char *text = gt_arena_take(&vm->values.arena, GT_UNESCAPED_ROOM(length));
	size_t used;

	if (!text)
		return no_memory;
	used = gt_unescape(line, length, quoted, text);
	if (used > UINT32_MAX)
		return "a text is too long";
	value.text = text;
	value.count = (uint32_t)used;
	return push(vm, &value);
}

static const char *op_unicode(struct vm *vm, unsigned int arg)
{
	const char *line;
	size_t length;

	return take_line(vm, &line, &length) ? push_escaped(vm, line, length, false) : cut;
}

static const char *op_string(struct vm *vm, unsigned int arg)
{
	const char *line;
	size_t length;

	if (!take_line(vm, &line, &length))
		return cut;
	if (length < 2 || line[0] != line[length - 1] || (line[0] != '\'' && line[0] != '"'))
		return "its text is not in quotes";
	return push_escaped(vm, line + 1, length - 2, true);
}

/* ---- memo ---------------------------------------------------------------------------------- */

static const char *remember(struct vm *vm, uint64_t index)
{
	struct numbers *memo = &vm->memo;

	if (vm->stack.count <= floor_of(vm))
		return empty;
	if (index >= (uint64_t)(vm->end - vm->bytes))
		return "it remembers under a number that is larger than the file";
	while (memo->count <= index) {
		const char *bad = push_number(memo, NONE_YET);

		if (bad)
			return bad;
	}
	vm->memo_size += memo->at[index] == NONE_YET;
	memo->at[index] = vm->stack.at[vm->stack.count - 1];
	return NULL;
}

static const char *recall(struct vm *vm, uint64_t index)
{
	if (index >= vm->memo.count || vm->memo.at[index] == NONE_YET)
		return "it recalls what was not remembered";
	return push_number(&vm->stack, vm->memo.at[index]);
}

static bool take_index(struct vm *vm, uint64_t *ret)
{
	const char *line;
	char text[24];
	size_t length;

	if (!take_line(vm, &line, &length) || !length ||
	    !copy_line(line, length, text, sizeof(text)) || !isdigit((unsigned char)text[0]))
		return false;
	*ret = strtoull(text, NULL, 10);
	return true;
}

static const char *op_put_at(struct vm *vm, unsigned int length)
{
	uint64_t index;

	return take_number(vm, length, &index) ? remember(vm, index) : cut;
}

static const char *op_get_at(struct vm *vm, unsigned int length)
{
	uint64_t index;

	return take_number(vm, length, &index) ? recall(vm, index) : cut;
}

static const char *op_put(struct vm *vm, unsigned int arg)
{
	uint64_t index;

	return take_index(vm, &index) ? remember(vm, index) : no_number;
}

static const char *op_memoize(struct vm *vm, unsigned int arg)
{
	return remember(vm, vm->memo_size);
}

static const char *op_get(struct vm *vm, unsigned int arg)
{
	uint64_t index;

	return take_index(vm, &index) ? recall(vm, index) : no_number;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static const char *op_proto(struct vm *vm, unsigned int arg)
{
	uint64_t protocol;

	if (!take_number(vm, 1, &protocol))
		return cut;
	if (protocol <= 5)
		return NULL;
	snprintf(vm->detail, sizeof(vm->detail), "protocol %u; those up to 5 are known",
		 (unsigned int)protocol);
	return vm->detail;
}

/* Frames only say how much to read at once. */
static const char *op_frame(struct vm *vm, unsigned int arg)
{
	uint64_t length;

	if (!take_number(vm, 8, &length))
		return cut;
	return length > (size_t)(vm->end - vm->at) ? "a frame is longer than the file" : NULL;
}

static const char *op_stop(struct vm *vm, unsigned int arg)
{
	if (vm->stack.count <= floor_of(vm))
		return empty;
	vm->values.root = vm->stack.at[vm->stack.count - 1];
	vm->stopped = true;
	return NULL;
}

static const struct {
	const char *name;
	handler *run; /* NULL: refused, it would import, call or build something */
	unsigned int arg;
} opcodes[256] = {
	['('] = {"MARK", op_mark, 0},
	['.'] = {"STOP", op_stop, 0},
	['0'] = {"POP", op_pop, 0},
	['1'] = {"POP_MARK", op_pop_mark, 0},
	['2'] = {"DUP", op_dup, 0},
	['F'] = {"FLOAT", op_float, 0},
	['I'] = {"INT", op_int, 0},
	['J'] = {"BININT", op_binint, 0},
	['K'] = {"BININT1", op_unsigned, 1},
	['L'] = {"LONG", op_long, 0},
	['M'] = {"BININT2", op_unsigned, 2},
	['N'] = {"NONE", op_none, 0},
	['S'] = {"STRING", op_string, 0},
	['T'] = {"BINSTRING", op_text, 4},
	['U'] = {"SHORT_BINSTRING", op_text, 1},
	['V'] = {"UNICODE", op_unicode, 0},
	['X'] = {"BINUNICODE", op_text, 4},
	['B'] = {"BINBYTES", op_bytes, 4},
	['C'] = {"SHORT_BINBYTES", op_bytes, 1},
	['G'] = {"BINFLOAT", op_binfloat, 0},
	['a'] = {"APPEND", op_extend_by_one, GT_VALUE_LIST},
	['d'] = {"DICT", op_collect, GT_VALUE_DICT},
	['}'] = {"EMPTY_DICT", op_empty, GT_VALUE_DICT},
	['e'] = {"APPENDS", op_extend, GT_VALUE_LIST},
	['g'] = {"GET", op_get, 0},
	['h'] = {"BINGET", op_get_at, 1},
	['j'] = {"LONG_BINGET", op_get_at, 4},
	['l'] = {"LIST", op_collect, GT_VALUE_LIST},
	[']'] = {"EMPTY_LIST", op_empty, GT_VALUE_LIST},
	['p'] = {"PUT", op_put, 0},
	['q'] = {"BINPUT", op_put_at, 1},
	['r'] = {"LONG_BINPUT", op_put_at, 4},
	['s'] = {"SETITEM", op_extend_by_one, GT_VALUE_DICT},
	['t'] = {"TUPLE", op_collect, GT_VALUE_TUPLE},
	[')'] = {"EMPTY_TUPLE", op_empty, GT_VALUE_TUPLE},
	['u'] = {"SETITEMS", op_extend, GT_VALUE_DICT},
	[0x80] = {"PROTO", op_proto, 0},
	[0x85] = {"TUPLE1", op_tuple_of, 1},
	[0x86] = {"TUPLE2", op_tuple_of, 2},
	[0x87] = {"TUPLE3", op_tuple_of, 3},
	[0x88] = {"NEWTRUE", op_bool, 1},
	[0x89] = {"NEWFALSE", op_bool, 0},
	[0x8a] = {"LONG1", op_long_of, 1},
	[0x8b] = {"LONG4", op_long_of, 4},
	[0x8c] = {"SHORT_BINUNICODE", op_text, 1},
	[0x8d] = {"BINUNICODE8", op_text, 8},
	[0x8e] = {"BINBYTES8", op_bytes, 8},
	[0x8f] = {"EMPTY_SET", op_empty, GT_VALUE_SET},
	[0x90] = {"ADDITEMS", op_extend, GT_VALUE_SET},
	[0x91] = {"FROZENSET", op_collect, GT_VALUE_SET},
	[0x94] = {"MEMOIZE", op_memoize, 0},
	[0x95] = {"FRAME", op_frame, 0},
	[0x96] = {"BYTEARRAY8", op_bytes, 8},
	['c'] = {"GLOBAL", NULL, 0},
	['R'] = {"REDUCE", NULL, 0},
	['b'] = {"BUILD", NULL, 0},
	['i'] = {"INST", NULL, 0},
	['o'] = {"OBJ", NULL, 0},
	['P'] = {"PERSID", NULL, 0},
	['Q'] = {"BINPERSID", NULL, 0},
	[0x81] = {"NEWOBJ", NULL, 0},
	[0x82] = {"EXT1", NULL, 0},
	[0x83] = {"EXT2", NULL, 0},
	[0x84] = {"EXT4", NULL, 0},
	[0x92] = {"NEWOBJ_EX", NULL, 0},
	[0x93] = {"STACK_GLOBAL", NULL, 0},
	[0x97] = {"NEXT_BUFFER", NULL, 0},
	[0x98] = {"READONLY_BUFFER", NULL, 0},
};

/* What GLOBAL and INST name, so that people see what the file wanted. */
static void name_global(const struct vm *vm, char *text, size_t size)
{
	const uint8_t *at = vm->at, *end = vm->end;
	size_t used = 0;
	int lines = 0;

	for (; at < end && lines < 2 && used + 2 < size; at++) {
		lines += *at == '\n';
		text[used++] = *at == '\n' ? '.' : isprint(*at) && *at != '"' ? (char)*at : '?';
	}
	text[lines == 2 ? used - 1 : 0] = 0;
}

static const char *refuse(struct vm *vm, uint8_t op, struct gt_unpickle_error *err)
{
	char global[80] = "";

	err->code = true;
	if (op == 'c' || op == 'i')
		name_global(vm, global, sizeof(global));
	snprintf(vm->detail, sizeof(vm->detail), "%s%s%s", global[0] ? "it names \"" : "", global,
		 global[0] ? "\"" : "");
	return vm->detail;
}

static const char *step(struct vm *vm, struct gt_unpickle_error *err)
{
	uint8_t op;

	if (vm->at == vm->end)
		return "the file ends without STOP";
	op = *vm->at++;
	if (!opcodes[op].name)
		return "no such opcode";
	return opcodes[op].run ? opcodes[op].run(vm, opcodes[op].arg) : refuse(vm, op, err);
}

static void explain(const struct vm *vm, const uint8_t *at, const char *bad,
		    struct gt_unpickle_error *err)
{
	const char *name = at < vm->end ? opcodes[*at].name : NULL;

	err->offset = (uint64_t)(at - vm->bytes);
	err->memory = bad == no_memory;
	if (name)
		snprintf(err->text, sizeof(err->text), "opcode %s (0x%02x)%s%s", name, *at,
			 *bad ? ": " : "", bad);
	else if (at < vm->end)
		snprintf(err->text, sizeof(err->text), "%s: 0x%02x", bad, *at);
	else
		snprintf(err->text, sizeof(err->text), "%s", bad);
}

static void release(struct vm *vm)
{
	free(vm->stack.at);
	free(vm->marks.at);
	free(vm->memo.at);
}

int gt_unpickle(const uint8_t *bytes, size_t length, struct gt_values *ret,
		struct gt_unpickle_error *err)
{
	struct vm vm = {.bytes = bytes, .at = bytes, .end = bytes + length};
	const uint8_t *at = bytes;
	const char *bad;

	*err = (struct gt_unpickle_error){0};
	bad = make(&vm, GT_VALUE_NONE) ? NULL : no_memory;
	for (size_t steps = 1; !bad && !vm.stopped; steps++) {
		at = vm.at;
		bad = step(&vm, err);
		if (steps % TELL == 0)
			gt_progress_part("torch's snapshot", (uint64_t)(at - bytes), length);
	}
	if (bad)
		explain(&vm, at, bad, err);
	release(&vm);
	if (bad) {
		gt_values_clear(&vm.values);
		return -1;
	}
	*ret = vm.values;
	return 0;
}

void gt_values_clear(struct gt_values *values)
{
	free(values->at);
	gt_arena_free(values->arena);
	*values = (struct gt_values){0};
}

/* Without PROTO: an empty list or dict, and what remembers or fills it. */
bool gt_looks_pickled(const uint8_t *bytes, size_t length)
{
	if (length >= 2 && bytes[0] == 0x80)
		return true;
	if (length >= 4 && bytes[0] == '(' && (bytes[1] == 'd' || bytes[1] == 'l'))
		return bytes[2] == 'p' && isdigit(bytes[3]);
	return length >= 3 && (bytes[0] == ']' || bytes[0] == '}') &&
	       (bytes[1] == 'q' || bytes[1] == 'r');
}
