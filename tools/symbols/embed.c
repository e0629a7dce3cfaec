/* SPDX-License-Identifier: MIT */
/*
 * See embed.h. Addresses in files that cannot be read here get no names: the machine that reads the
 * copy may have them, and if not says so.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/embed.h"
#include "symbols/inside.h"

struct place {
	uint64_t pc;
	uint32_t module;
};

struct cited {
	const char *file;
	int line;
};

struct citations {
	struct cited *cited;
	size_t count, room;
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

/* Clean texts are unique: pointers can be compared. */
static int by_line(const void *a, const void *b)
{
	const struct cited *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static void cite(struct citations *citations, const struct gt_known *known)
{
	if (known->library || !known->frame.line || !*known->frame.file)
		return;
	if (citations->count == citations->room) {
		size_t room = 2 * citations->room + 64;
		struct cited *grown = reallocarray(citations->cited, room, sizeof(*grown));

		if (!grown)
			return;
		citations->cited = grown;
		citations->room = room;
	}
	citations->cited[citations->count++] = (struct cited){known->frame.file, known->frame.line};
}

static void embed_place(struct gt_symbols *symbols, const struct gt_embed *to,
			const struct place *place, struct citations *citations)
{
	struct gt_named_pc named = gt_naming_at(symbols->naming, place->module, place->pc);

	if (!named.count ||
	    (!named.known[0].named && !gt_naming_readable(symbols->naming, place->module)))
		return;
	for (size_t i = 0; i < named.count; i++) {
		const struct gt_known *known = &named.known[i];
		struct gt_pack_name name = {
			.module = place->module,
			.pc = place->pc,
			.function = known->named ? known->frame.function : NULL,
			.file = known->frame.file,
			.line = known->frame.line,
			.inlined = known->frame.kind == GT_FRAME_INLINE,
		};

		to->name(to->ctx, &name);
		cite(citations, known);
	}
}

static void embed_places(struct gt_symbols *symbols, const struct gt_embed *to,
			 struct citations *citations)
{
	const struct gt_trace *trace = symbols->trace;
	struct place *places = calloc(trace->node_count + 1, sizeof(*places));
	size_t count = 0;

	for (size_t i = 1; places && i < trace->node_count; i++)
		if (trace->nodes[i].module)
			places[count++] =
				(struct place){trace->nodes[i].pc, trace->nodes[i].module};
	if (count)
		qsort(places, count, sizeof(*places), by_place);
	for (size_t i = 0; i < count; i++)
		if (!i || by_place(&places[i], &places[i - 1]))
			embed_place(symbols, to, &places[i], citations);
	free(places);
}

static void cite_python(struct gt_symbols *symbols, struct citations *citations)
{
	const struct gt_trace *trace = symbols->trace;

	for (size_t i = 1; i < trace->pynode_count; i++) {
		struct gt_known known = gt_merge_python(trace, symbols->text, &trace->pynodes[i]);

		cite(citations, &known);
	}
}

void gt_symbols_embed(struct gt_symbols *symbols, const struct gt_embed *to)
{
	struct citations citations = {0};

	embed_places(symbols, to, &citations);
	if (to->source)
		cite_python(symbols, &citations);
	if (citations.count)
		qsort(citations.cited, citations.count, sizeof(*citations.cited), by_line);
	for (size_t i = 0; to->source && i < citations.count; i++) {
		const struct cited *cited = &citations.cited[i];
		const char *text = i && !by_line(cited, cited - 1)
					   ? ""
					   : gt_symbols_source(symbols, cited->file, cited->line);

		if (*text)
			to->source(to->ctx, cited->file, cited->line, text);
	}
	free(citations.cited);
}
