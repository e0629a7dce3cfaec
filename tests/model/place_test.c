/* SPDX-License-Identifier: MIT */
/*
 * The place of a stack: interpreters come from one line to the next in more ways than one, and a loop's
 * first turn seldom goes the way of the later ones. A trace made by hand has the ways side by side.
 */
#include <criterion/criterion.h>
#include "model/boundary.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TURNS	     5

static struct gt_bytes strings[] = {
	{"", 0},	 {"train.py", 8},	   {"main", 4}, {"batches", 7}, {"forward", 7},
	{"backward", 8}, {"torch/_tensor.py", 16},
};

static struct gt_pycode pycodes[] = {
	{0}, {1, 2, 2, 1, false}, {1, 3, 3, 1, false}, {1, 4, 4, 1, false}, {6, 5, 5, 1, false},
};

/* The first batch comes through C, which calls the interpreter anew; for later ones it goes on. */
enum { MAKE = 1, BATCHES, MODEL, LOSS, FIRST_BATCH, BATCH, OTHER_BATCH, FORWARD, BACKWARD };

static struct gt_pynode pynodes[] = {
	{0},
	[MAKE] = {0, 1, 8, 2},
	[BATCHES] = {0, 1, 10, 2},
	[MODEL] = {0, 1, 11, 2},
	[LOSS] = {0, 1, 12, 2},
	[FIRST_BATCH] = {BATCHES, 2, 3, 2},
	[BATCH] = {BATCHES, 2, 3, 1},
	[OTHER_BATCH] = {BATCHES, 2, 4, 1},
	[FORWARD] = {MODEL, 3, 20, 1},
	[BACKWARD] = {LOSS, 4, 30, 1},
};

/* An instruction and the quicker one that takes its place call from two addresses. */
enum { GENERIC = 1, QUICK, ENGINE };

static struct gt_node nodes[] = {{0}, {0x1000, 0, 0}, {0x2000, 0, 0}, {0x3000, 0, 0}};

static struct gt_site_def sites[] = {
	{0},
	{GENERIC, MAKE, 0, GT_SPACE_TORCH, 6},
	{GENERIC, FIRST_BATCH, 0, GT_SPACE_TORCH, 6},
	{QUICK, BATCH, 0, GT_SPACE_TORCH, 6},
	{GENERIC, FORWARD, 0, GT_SPACE_TORCH, 6},
	{QUICK, FORWARD, 0, GT_SPACE_TORCH, 6},
	{GENERIC, BACKWARD, 0, GT_SPACE_TORCH, 6},
	{ENGINE, 0, 0, GT_SPACE_TORCH, 6},
};

static struct gt_trace_lane lane = {.site_defs = sites, .site_count = COUNT(sites)};

static struct gt_trace trace = {
	.strings = strings,
	.string_count = COUNT(strings),
	.pycodes = pycodes,
	.pycode_count = COUNT(pycodes),
	.pynodes = pynodes,
	.pynode_count = COUNT(pynodes),
	.nodes = nodes,
	.node_count = COUNT(nodes),
	.lanes = &lane,
	.lane_count = 1,
};

static struct gt_symbols *symbols;
static struct gt_feature_table *table;

static void set_up(void)
{
	symbols = gt_symbols_new(&trace);
	table = gt_feature_table_new(symbols);
}

static void tear_down(void)
{
	gt_feature_table_free(table);
	gt_symbols_free(symbols);
}

TestSuite(place, .init = set_up, .fini = tear_down);

static uint32_t place(uint32_t native, uint32_t python)
{
	return gt_features_of(table, native, python)->place;
}

Test(place, is_that_of_the_lines_whichever_way_the_interpreter_went)
{
	cr_expect_neq(gt_features_of(table, GENERIC, BATCH)->id,
		      gt_features_of(table, QUICK, BATCH)->id);
	cr_expect_eq(place(GENERIC, FIRST_BATCH), place(QUICK, FIRST_BATCH));
	cr_expect_eq(place(GENERIC, FIRST_BATCH), place(QUICK, BATCH));
	cr_expect_eq(place(0, BATCH), place(QUICK, BATCH));
	cr_expect_neq(place(QUICK, OTHER_BATCH), place(QUICK, BATCH));
	cr_expect_neq(place(QUICK, BATCHES), place(QUICK, BATCH));
}

Test(place, without_python_is_that_of_the_native_stack)
{
	cr_expect_neq(place(GENERIC, 0), place(QUICK, 0));
	cr_expect_neq(place(GENERIC, 0), place(GENERIC, BATCH));
	cr_expect_neq(place(GENERIC, 0), 0);
	cr_expect_eq(place(0, 0), 0);
}

/* ---- steps ------------------------------------------------------------------------------------ */

enum { S_MAKE = 1, S_FIRST_BATCH, S_BATCH, S_FIRST_FORWARD, S_FORWARD, S_BACKWARD, S_ENGINE };

static struct gt_life lives[2 + 4 * TURNS];
static uint32_t order[COUNT(lives) + 1];
static size_t life_count;

static void allocate(uint32_t site)
{
	order[life_count + 1] = (uint32_t)life_count * 2;
	lives[life_count] = (struct gt_life){
		.size = 512,
		.born = (uint32_t)life_count + 1,
		.died = GT_NEVER,
		.site = site,
		.thread = site == S_ENGINE ? 2 : 1,
	};
	life_count++;
}

static void train(void)
{
	allocate(S_MAKE);
	allocate(S_MAKE);
	for (int turn = 0; turn < TURNS; turn++) {
		allocate(turn ? S_BATCH : S_FIRST_BATCH);
		allocate(turn ? S_FORWARD : S_FIRST_FORWARD);
		allocate(S_BACKWARD);
		allocate(S_ENGINE);
	}
}

Test(place, leads_a_step_in_the_first_turn_too)
{
	const struct gt_features *features[COUNT(sites)];
	size_t first_site = 0;
	struct gt_story story = {
		.trace = &trace,
		.table = table,
		.features = features,
		.first_site = &first_site,
		.lives = lives,
		.life_count = COUNT(lives),
		.order = order,
		.position_count = COUNT(order),
		.exit = COUNT(order),
		.engine = (bool[]){false, false, true},
		.caller = (bool[]){false, true, false},
		.thread_count = 3,
		.whole = true,
		.python = true,
		.native = true,
	};
	struct gt_boundaries steps;
	struct gt_passes passes;

	for (size_t i = 0; i < COUNT(sites); i++)
		features[i] = gt_features_of(table, sites[i].native, sites[i].python);
	train();
	passes = gt_passes_of(&story);
	steps = gt_boundaries_of(&story, &passes);
	cr_assert_eq(passes.count, TURNS);
	cr_assert_eq(steps.count, TURNS);
	for (uint32_t i = 0; i < TURNS; i++)
		cr_expect_eq(steps.starts[i], 3 + 4 * i, "step %u begins at %u", i + 1,
			     steps.starts[i]);
	cr_expect_eq(steps.confidence, 1);
	gt_boundaries_clear(&steps);
	gt_passes_clear(&passes);
}
