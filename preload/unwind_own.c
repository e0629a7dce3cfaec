/* SPDX-License-Identifier: MIT */
/*
 * The walker of every day. A state of the walk is (pc, sp, fp); the next one follows from the rule
 * of pc and two words of the stack. Rules are cached per pc in one word each: a torch process uses
 * some 400 return addresses, and what a capture costs is cache misses, so entries are as small as
 * they can be.
 *
 * The walk stops as soon as it meets a state of the thread's previous stack whose outer links are
 * unchanged. That is exact, not a guess: the next state depends on nothing but the state, the rule
 * and the words that the rule reads; where all of these are equal a complete walk would read the
 * very same words. Hence the compare of return addresses and of saved frame pointers, the
 * generation that voids records when rules change, and the steps taken again where a rule reads
 * anything else.
 *
 * Nothing here allocates or calls out, but for a miss of the rule cache (modules.c).
 */
#include "readable.h"
#include "unwind.h"

/* ---- the rule cache -------------------------------------------------------------------------- */

/*
 * Four ways: conflicts depend on where the loader put things, and with four there are none at 400 pcs.
 * Look-ups take no lock, one relaxed load per word. Inserts do, because moving the entries of a set
 * must not bring back one that was just cleared; an insert that would have to wait is left out.
 */
#define SETS	  2048u
#define WAYS	  4u
#define LONG_SIZE 1024u

static uint64_t rules[SETS][WAYS] __attribute__((aligned(64)));
/* Rules too wide for a word. check = value ^ pc, so that a torn pair is no entry. */
static struct {
	uint64_t value, check;
} long_rules[LONG_SIZE];
static struct gt_lock inserting;

static uint64_t mix(uint64_t pc)
{
	return pc * 0x9e3779b97f4a7c15ull;
}

static uint64_t *set_of(uint64_t pc)
{
	return rules[mix(pc) >> 53];
}

static inline uint64_t find_word(uint64_t pc)
{
	const uint64_t *set = set_of(pc);
	uint64_t word;
	unsigned i;

	for (i = 0; i < WAYS; i++) {
		word = gt_load_relaxed(&set[i]);
		if (gt_likely((word & GT_WORD_PC_MASK) == GT_WORD_PC(pc)))
			return word;
	}
	return 0;
}

/* Newest first. A reader that meets the set in the middle of this finds its entry or misses, once. */
static void put_word(uint64_t pc, uint64_t word)
{
	uint64_t *set = set_of(pc);
	unsigned i;

	for (i = WAYS - 1; i > 0; i--)
		gt_store_relaxed(&set[i], gt_load_relaxed(&set[i - 1]));
	gt_store_relaxed(&set[0], word);
}

/* The word of a rule, 0 when it has no place for it. */
static uint64_t pack(uint64_t pc, const struct gt_rule *r)
{
	uint64_t cfa = (uint64_t)r->cfa / GT_WORD_CFA_UNIT, slot = 0;

	if (r->kind == GT_RULE_END)
		return GT_WORD_PC(pc) | GT_RULE_END;
	if (r->kind != GT_RULE_SP && r->kind != GT_RULE_FP)
		return 0;
	if (r->cfa % GT_WORD_CFA_UNIT || cfa >> GT_WORD_CFA_BITS)
		return 0;
	if (r->fp_saved)
		slot = (uint64_t)(GT_SLOT_BASE - r->fp_at) / GT_SLOT_UNIT;
	if (slot >> GT_WORD_SLOT_BITS || (r->fp_saved && !slot) ||
	    (slot && r->fp_at != GT_SLOT_BASE - (int64_t)slot * GT_SLOT_UNIT) ||
	    r->ra_at != gt_plain_ra(r->fp_at))
		return 0;
	return GT_WORD_PC(pc) | cfa << GT_WORD_CFA_SHIFT | slot << GT_WORD_SLOT_SHIFT | r->kind;
}

/* Word 0, no entry, unpacks to GT_RULE_NONE. Without branches: the walk waits for this. */
static struct gt_rule unpack(uint64_t word)
{
	uint64_t slot = word >> GT_WORD_SLOT_SHIFT & ((1u << GT_WORD_SLOT_BITS) - 1);
	uint64_t cfa = word >> GT_WORD_CFA_SHIFT & ((1u << GT_WORD_CFA_BITS) - 1);
	int64_t fp_at = GT_SLOT_BASE - (int64_t)slot * GT_SLOT_UNIT;

	return (struct gt_rule){(enum gt_rule_kind)(word & GT_WORD_KIND_MASK), slot != 0,
				(int64_t)cfa * GT_WORD_CFA_UNIT, fp_at, gt_plain_ra(fp_at)};
}

/* Long form: kind 3, fp_saved 1, cfa / 8 in 28, fp_at / 8 and ra_at / 8 in 16 bits each. */
static uint64_t pack_long(const struct gt_rule *r)
{
	return (uint64_t)r->kind | (uint64_t)r->fp_saved << 3 |
	       ((uint64_t)(r->cfa / 8) & 0xfffffff) << 4 |
	       (uint64_t)(uint16_t)(r->fp_at / 8) << 32 | (uint64_t)(uint16_t)(r->ra_at / 8) << 48;
}

static bool find_long(uint64_t pc, struct gt_rule *ret)
{
	uint64_t v = gt_load_relaxed(&long_rules[mix(pc) >> 54].value);

	if ((gt_load_relaxed(&long_rules[mix(pc) >> 54].check) ^ v) != pc)
		return false;
	*ret = (struct gt_rule){(enum gt_rule_kind)(v & 7), v >> 3 & 1, (int32_t)v >> 4 << 3,
				(int64_t)(int16_t)(v >> 32) * 8, (int64_t)(int16_t)(v >> 48) * 8};
	return true;
}

static void insert(uint64_t pc, const struct gt_rule *r)
{
	uint64_t word = pack(pc, r), value = pack_long(r);

	if (word) {
		put_word(pc, word);
		return;
	}
	gt_store_relaxed(&long_rules[mix(pc) >> 54].value, value);
	gt_store_relaxed(&long_rules[mix(pc) >> 54].check, value ^ pc);
	put_word(pc, GT_WORD_PC(pc) | GT_RULE_LONG);
}

static void put_rule(uint64_t pc, const struct gt_rule *r)
{
	if (__atomic_exchange_n(&inserting.held, 1, __ATOMIC_ACQUIRE))
		return;
	if (!gt_modules_unsettled())
		insert(pc, r);
	gt_unlock(&inserting);
}

void gt_rules_clear(void)
{
	unsigned i;

	gt_lock(&inserting);
	for (i = 0; i < SETS * WAYS; i++)
		gt_store_relaxed(&rules[0][i], 0);
	for (i = 0; i < LONG_SIZE; i++)
		gt_store_relaxed(&long_rules[i].check, 0);
	gt_unlock(&inserting);
}

void gt_rules_forget(void)
{
	inserting = (struct gt_lock){0};
	gt_rules_clear();
}

/*
 * From the object's own tables. A pc outside all objects is not cached: code may be loaded there,
 * and libgcc may have been told of the code that is there.
 */
static void read_rule(uint64_t pc, struct gt_rule *ret)
{
	struct gt_module module;

	*ret = (struct gt_rule){.kind = GT_RULE_OTHER};
	if (!gt_module_find(pc - 1, &module))
		return;
	gt_cfi_rule(&module, pc - 1, ret);
	put_rule(pc, ret);
}

static void find_rule(uint64_t pc, struct gt_rule *ret)
{
	uint64_t word = gt_modules_unsettled() ? 0 : find_word(pc);

	if (word && (word & GT_WORD_KIND_MASK) != GT_RULE_LONG)
		*ret = unpack(word);
	else if (!word || !find_long(pc, ret))
		read_rule(pc, ret);
}

bool gt_rule_is_end(uint64_t pc)
{
	struct gt_rule rule;

	find_rule(pc, &rule);
	return rule.kind == GT_RULE_END;
}

/* ---- stack memory ---------------------------------------------------------------------------- */

#define PAGE 4096u

static uint64_t page_up(uint64_t address)
{
	return (address + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

#define FARTHEST (UINT64_C(64) << 20) /* between one frame and the next */

/* Pages from..to are readable? Asked page by page, once per thread and page of its stack. */
static bool pages_readable(uint64_t from, uint64_t to)
{
	if (to > from && to - from > FARTHEST)
		return false;
	for (; from < to; from += PAGE)
		if (!gt_readable(from))
			return false;
	return true;
}

/*
 * Makes the range hold sp. Whose stack it is does not matter: a signal's, a coroutine's; the page
 * of sp is in use, and the walk lets the range grow outwards from there. On another stack the
 * record is void.
 */
static void enter_range(struct gt_stack *s, uint64_t sp)
{
	if (sp >= s->readable && sp <= s->readable_end)
		return;
	if (sp < s->readable && pages_readable(page_up(sp), s->readable)) {
		s->readable = sp;
		return;
	}
	s->readable = sp;
	s->readable_end = page_up(sp);
	s->n = 0;
}

/* Lets the range grow outwards to end: how a thread's first walk learns how far its stack goes. */
static bool readable_to(struct gt_stack *s, uint64_t end)
{
	if (gt_likely(end <= s->readable_end))
		return true;
	if (!pages_readable(s->readable_end, end))
		return false;
	s->readable_end = page_up(end);
	return true;
}

static uint64_t word_at(uint64_t address)
{
	return *(const uint64_t *)address;
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct state {
	uint64_t pc, sp, fp;
	uint64_t fp_slot; /* where fp was read; GT_SLOT_KEPT, GT_SLOT_UNSURE */
};

/*
 * One step by a rule of any form. A CFA that is not aligned, not outside of the frame or not on the
 * stack means broken tables: the walk ends there, a wrong frame is worse than none.
 */
static enum gt_rule_kind step_by(struct gt_stack *s, struct state *st, const struct gt_rule *r)
{
	uint64_t cfa, slot = 0;

	if (r->kind == GT_RULE_END || r->kind == GT_RULE_OTHER || r->kind == GT_RULE_STOP)
		return r->kind;
	cfa = (r->kind == GT_RULE_SP ? st->sp : st->fp) + (uint64_t)r->cfa;
	if (r->kind == GT_RULE_REALIGNED) {
		slot = st->fp + (uint64_t)r->fp_at;
		if (cfa & 7 || cfa < st->sp || !readable_to(s, cfa + 8))
			return GT_RULE_STOP;
		cfa = word_at(cfa);
	} else if (r->fp_saved) {
		slot = cfa + (uint64_t)r->fp_at;
	}
	if (cfa & 7 || cfa <= st->sp || !readable_to(s, cfa) || cfa + (uint64_t)r->ra_at < st->sp)
		return GT_RULE_STOP;
	if (r->fp_saved && (slot & 7 || slot < st->sp || slot >= cfa))
		return GT_RULE_STOP;
	st->pc = gt_pc(word_at(cfa + (uint64_t)r->ra_at));
	st->sp = cfa;
	st->fp = r->fp_saved ? word_at(slot) : st->fp;
	st->fp_slot = r->fp_saved ? slot : GT_SLOT_KEPT;
	if (r->kind == GT_RULE_REALIGNED || gt_ra_address(cfa, slot) != cfa + (uint64_t)r->ra_at)
		st->fp_slot = GT_SLOT_UNSURE;
	return r->kind;
}

static enum gt_rule_kind step_slowly(struct gt_stack *s, struct state *st)
{
	struct gt_rule rule;

	find_rule(st->pc, &rule);
	return step_by(s, st, &rule);
}

/* Nearly all steps: a rule of one word, two loads from the stack. */
static inline enum gt_rule_kind step(struct gt_stack *s, struct state *st, bool cached)
{
	uint64_t word = cached ? find_word(st->pc) : 0, cfa, ra;
	struct gt_rule r = unpack(word);

	if (gt_unlikely(r.kind != GT_RULE_SP && r.kind != GT_RULE_FP))
		return r.kind == GT_RULE_END ? r.kind : step_slowly(s, st);
	cfa = (r.kind == GT_RULE_SP ? st->sp : st->fp) + (uint64_t)r.cfa;
	if (gt_unlikely(cfa & 7 || cfa <= st->sp || !readable_to(s, cfa)))
		return GT_RULE_STOP;
	ra = gt_pc(word_at(cfa + (uint64_t)r.ra_at));
	st->fp_slot = r.fp_saved ? cfa + (uint64_t)r.fp_at : GT_SLOT_KEPT;
	if (r.fp_saved)
		st->fp = word_at(st->fp_slot);
	st->sp = cfa;
	st->pc = ra;
	return r.kind;
}

/* ---- the record of the last stack ------------------------------------------------------------ */

#define ABOVE (UINT64_C(1) << 31) /* base - sp of the first state: leaves 2 GiB on both sides */

/* Voids the record when it cannot be compared with a stack that begins at sp. */
static void enter_record(struct gt_stack *s, uint64_t sp)
{
	uint32_t generation = gt_modules_generation();

	enter_range(s, sp);
	if (s->generation != generation || sp >= s->base || (s->base - sp) >> 32)
		s->n = 0;
	s->generation = generation;
	if (!s->n)
		s->base = (sp & ~UINT64_C(7)) + ABOVE;
	s->pushed = 0;
}

static uint32_t slot_kept(const struct gt_stack *s, uint64_t slot)
{
	return slot > GT_SLOT_UNSURE ? (uint32_t)(s->base - slot) : (uint32_t)slot;
}

static bool push(struct gt_stack *s, const struct state *st)
{
	if (s->pushed == s->depth - 1)
		return false;
	s->scratch[s->pushed++] = (struct gt_frame){st->pc, st->fp, (uint32_t)(s->base - st->sp),
						    slot_kept(s, st->fp_slot)};
	return true;
}

/* Frames from..to of the record, outermost first, become new ones. */
static bool push_record(struct gt_stack *s, uint32_t from, uint32_t to)
{
	while (to > from) {
		if (s->pushed == s->depth - 1)
			return false;
		s->scratch[s->pushed++] = s->frames[--to];
	}
	return true;
}

static bool same(const struct gt_stack *s, const struct gt_frame *f, const struct state *st)
{
	return f->pc == st->pc && f->fp == st->fp && s->base - f->sp == st->sp;
}

/* Nonzero when the words that led to this frame are no longer those that the record's walk read. */
static inline uint64_t changed(uint64_t base, const struct gt_frame *f)
{
	uint64_t slot = base - f->fp_slot;
	uint64_t diff = gt_pc(word_at(gt_ra_address(base - f->sp, slot))) ^ f->pc;

	if (f->fp_slot != GT_SLOT_KEPT)
		diff |= word_at(slot) ^ f->fp;
	return diff;
}

static bool checkable(const struct gt_frame *f)
{
	return f->fp_slot != GT_SLOT_UNSURE;
}

/* Four frames at a time: all addresses are known beforehand, so their loads overlap. */
static bool four_changed(uint64_t base, const struct gt_frame *f)
{
	if (!checkable(&f[0]) || !checkable(&f[1]) || !checkable(&f[2]) || !checkable(&f[3]))
		return true;
	return changed(base, &f[0]) | changed(base, &f[1]) | changed(base, &f[2]) |
	       changed(base, &f[3]);
}

/* The outermost frame that frames[i] still leads to as recorded. */
static uint32_t verified(const struct gt_stack *s, uint32_t i)
{
	const struct gt_frame *f = s->frames;

	while (i >= 4 && !four_changed(s->base, &f[i - 4]))
		i -= 4;
	while (i > 0 && checkable(&f[i - 1]) && !changed(s->base, &f[i - 1]))
		i--;
	return i;
}

static enum gt_unwound unwound_by(enum gt_rule_kind kind)
{
	return kind == GT_RULE_OTHER  ? GT_UNWOUND_OTHER
	       : kind == GT_RULE_STOP ? GT_UNWOUND_STOPPED
				      : GT_UNWOUND;
}

/* ---- what a walk will need ------------------------------------------------------------------- */

/*
 * In a running program the rules of a walk have left the cache, and its loads wait for each other, since each
 * rule says where the next pc is. So the sets that a walk looked at are kept, by the stack pointer it began
 * with: a program that comes to the same place again has the same one as a rule. They are asked for all at
 * once before the next walk from there. Nothing but a hint: a wrong one costs a few loads, and a race of two
 * threads makes a wrong one.
 */
#define HINTS 256u
#define AHEAD 32u

static struct hint {
	uint16_t set[AHEAD]; /* number + 1, 0 = the end */
} hints[HINTS] __attribute__((aligned(64)));
_Static_assert(sizeof(struct hint) == 64 && SETS < UINT16_MAX, "a cache line");

static struct hint *hint_of(uint64_t sp)
{
	return &hints[mix(sp) >> 56];
}

static void use_hint(const struct hint *h)
{
	uint16_t set;

	for (unsigned i = 0; i < AHEAD && (set = gt_load_relaxed(&h->set[i])); i++)
		__builtin_prefetch(rules[set - 1]);
}

static void keep_hint(struct hint *h, const struct gt_stack *s)
{
	uint32_t i, n = s->pushed < AHEAD ? s->pushed : AHEAD;
	uint16_t set;

	for (i = 0; i < n; i++) {
		set = (uint16_t)((mix(s->scratch[i].pc) >> 53) + 1);
		if (gt_load_relaxed(&h->set[i]) != set)
			gt_store_relaxed(&h->set[i], set);
	}
	if (n < AHEAD && gt_load_relaxed(&h->set[n]))
		gt_store_relaxed(&h->set[n], 0);
}

/*
 * i counts the frames of the record that may still be met: those with a lower sp than the state's are
 * left behind. A frame that is met takes the slot of the present walk, as it may have been reached by
 * another way. Where the record's links break the walk goes on by steps, and may meet it again.
 */
static enum gt_unwound walk(struct gt_stack *s, const struct gt_regs *regs, const struct hint *hint,
			    uint32_t *ret_kept)
{
	struct state st = {gt_pc(regs->pc), regs->sp, regs->fp, GT_SLOT_UNSURE};
	bool cached = !gt_modules_unsettled();
	enum gt_rule_kind kind;
	uint32_t i, k;

	enter_record(s, st.sp);
	*ret_kept = 0;
	for (i = s->n;;) {
		while (i > 0 && s->base - s->frames[i - 1].sp < st.sp)
			i--;
		if (i > 0 && same(s, &s->frames[i - 1], &st)) {
			s->frames[i - 1].fp_slot = slot_kept(s, st.fp_slot);
			k = verified(s, i - 1);
			if (!k) {
				*ret_kept = i;
				return GT_UNWOUND;
			}
			if (!push_record(s, k, i))
				return GT_UNWOUND_CUT;
			st = (struct state){s->frames[k].pc, s->base - s->frames[k].sp,
					    s->frames[k].fp, GT_SLOT_UNSURE};
			i = k;
		} else {
			if (!s->pushed)
				use_hint(hint);
			if (!push(s, &st))
				return GT_UNWOUND_CUT;
		}
		kind = step(s, &st, cached);
		if (!st.pc ||
		    (kind != GT_RULE_SP && kind != GT_RULE_FP && kind != GT_RULE_REALIGNED))
			return unwound_by(kind);
	}
}

enum gt_unwound gt_walk(struct gt_stack *s, const struct gt_regs *regs, uint32_t *ret_kept)
{
	struct hint *hint = hint_of(regs->sp);
	enum gt_unwound how = walk(s, regs, hint, ret_kept);

	if (s->pushed)
		keep_hint(hint, s);
	return how;
}
