/* SPDX-License-Identifier: MIT */
/*
 * From an object's .eh_frame to the unwind rule of one pc: binary search in .eh_frame_hdr, then the
 * call frame instructions of the CIE and the FDE up to that pc. Called on a miss of the rule cache
 * only, a few hundred times in the life of a process.
 *
 * The tables belong to the program and may be wrong: every read is checked against the segment that
 * holds them, what is odd becomes a rule of kind OTHER and is left to a complete unwinder. Follows
 * only the three columns that a walk needs: CFA, frame pointer, return address. Allocates and calls
 * nothing.
 */
#include <string.h>
#include "unwind.h"

/* ---- checked reading ------------------------------------------------------------------------- */

struct reader {
	uint64_t at, end;
	bool bad;
};

/* A read beyond the end gives 0 and marks the reader; whoever asks looks at the mark once, at the end. */
static uint64_t take(struct reader *r, unsigned bytes)
{
	uint64_t v = 0;

	if (r->bad || r->end - r->at < bytes) {
		r->bad = true;
		return 0;
	}
	memcpy(&v, (const void *)r->at, bytes);
	r->at += bytes;
	return v;
}

static void skip(struct reader *r, uint64_t bytes)
{
	if (r->bad || r->end - r->at < bytes)
		r->bad = true;
	else
		r->at += bytes;
}

/* ret_bits: how many bits the value came in, 64 and more included. */
static uint64_t leb(struct reader *r, unsigned *ret_bits)
{
	uint64_t v = 0, byte;
	unsigned shift = 0;

	do {
		byte = take(r, 1);
		if (shift < 64)
			v |= (byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	*ret_bits = shift;
	return v;
}

static uint64_t uleb(struct reader *r)
{
	unsigned bits;

	return leb(r, &bits);
}

static int64_t sleb(struct reader *r)
{
	unsigned bits;
	uint64_t v = leb(r, &bits);

	if (bits < 64 && v >> (bits - 1) & 1)
		v |= ~UINT64_C(0) << bits;
	return (int64_t)v;
}

enum { /* DW_EH_PE_*: form, and what it is relative to */
       PE_ABSPTR = 0x00,
       PE_ULEB = 0x01,
       PE_UDATA2 = 0x02,
       PE_UDATA4 = 0x03,
       PE_UDATA8 = 0x04,
       PE_SLEB = 0x09,
       PE_SDATA2 = 0x0a,
       PE_SDATA4 = 0x0b,
       PE_SDATA8 = 0x0c,
       PE_PCREL = 0x10,
       PE_DATAREL = 0x30,
       PE_OMIT = 0xff,
};

static uint64_t plain_pointer(struct reader *r, uint8_t form)
{
	switch (form) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return take(r, 8);
	case PE_UDATA2:
		return take(r, 2);
	case PE_SDATA2:
		return (uint64_t)(int16_t)take(r, 2);
	case PE_UDATA4:
		return take(r, 4);
	case PE_SDATA4:
		return (uint64_t)(int32_t)take(r, 4);
	case PE_ULEB:
		return uleb(r);
	case PE_SLEB:
		return (uint64_t)sleb(r);
	}
	r->bad = true;
	return 0;
}

static uint64_t pointer(struct reader *r, uint8_t encoding)
{
	uint64_t here = r->at, v = plain_pointer(r, encoding & 0x0f);

	if ((encoding & 0x70) == PE_PCREL)
		return v + here;
	if (encoding & 0x70)
		r->bad = true;
	return v;
}

/* ---- finding the FDE ------------------------------------------------------------------------- */

struct entry { /* of the search table: both relative to .eh_frame_hdr */
	int32_t pc, fde;
};

/* The last of n entries at or before target; n when all are behind it. */
static uint64_t search(const struct entry *table, uint64_t n, int64_t target)
{
	uint64_t low = 0, high = n;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (table[middle].pc <= target)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : n;
}

/*
 * The address of the FDE that may cover pc, by the only table form that linkers write; 0 if pc lies
 * before all of them. false: no such table, somebody else may know.
 */
static bool find_fde(const struct gt_module *m, uint64_t pc, uint64_t *ret_fde)
{
	struct reader r = {m->frames, m->readable_end, false};
	uint8_t version = (uint8_t)take(&r, 1), pointer_form = (uint8_t)take(&r, 1);
	uint8_t count_form = (uint8_t)take(&r, 1), table_form = (uint8_t)take(&r, 1);
	const struct entry *table;
	uint64_t count, i;

	pointer(&r, pointer_form);
	count = pointer(&r, count_form);
	if (r.bad || version != 1 || table_form != (PE_DATAREL | PE_SDATA4) || r.at & 3 ||
	    count > (r.end - r.at) / sizeof(*table))
		return false;
	table = (const struct entry *)r.at;
	i = search(table, count, (int64_t)(pc - m->frames));
	*ret_fde = i < count ? m->frames + (uint64_t)(int64_t)table[i].fde : 0;
	return true;
}

/* ---- CIE and FDE ----------------------------------------------------------------------------- */

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of the addresses in its FDEs */
	bool augmented, signal;
	struct reader program;
};

/* The record at address, after its length: false for the terminator, 64-bit forms and overruns. */
static bool record(const struct gt_module *m, uint64_t address, struct reader *ret)
{
	struct reader r = {address, m->readable_end,
			   address < m->readable || address >= m->readable_end};
	uint64_t length = take(&r, 4);

	if (r.bad || !length || length > r.end - r.at)
		return false;
	*ret = (struct reader){r.at, r.at + length, false};
	return true;
}

/* The letters behind 'z' say what the augmentation data holds; an unknown one ends what we know. */
static bool augmentation(struct reader *r, const char *letters, struct cie *cie)
{
	uint64_t length = uleb(r);
	struct reader data = {r->at, r->at + length, false};

	skip(r, length);
	cie->augmented = true;
	for (; *letters && !r->bad && !data.bad; letters++) {
		if (*letters == 'R')
			cie->encoding = (uint8_t)take(&data, 1);
		else if (*letters == 'P')
			plain_pointer(&data, (uint8_t)take(&data, 1) & 0x0f);
		else if (*letters == 'L')
			take(&data, 1);
		else if (*letters == 'S')
			cie->signal = true;
		else if (*letters != 'B')
			return false;
	}
	return !r->bad && !data.bad;
}

/* Columns, alignments and pointer form that the FDEs of one compilation share. */
static bool read_cie(const struct gt_module *m, uint64_t address, struct cie *ret)
{
	struct reader r;
	uint8_t version;
	char letters[8];
	unsigned n = 0;

	if (!record(m, address, &r) || take(&r, 4))
		return false;
	version = (uint8_t)take(&r, 1);
	do {
		letters[n] = (char)take(&r, 1);
	} while (letters[n++] && n < sizeof(letters));
	if (r.bad || letters[n - 1] || (version != 1 && version != 3))
		return false;
	*ret = (struct cie){.code_align = uleb(&r), .data_align = sleb(&r)};
	if ((version == 1 ? take(&r, 1) : uleb(&r)) != GT_DW_RA)
		return false;
	if (letters[0] && (letters[0] != 'z' || !augmentation(&r, letters + 1, ret)))
		return false;
	ret->program = r;
	return !r.bad;
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum how {
	UNCHANGED = 0,
	UNDEFINED,
	AT_CFA, /* saved at CFA + value */
	AT_FP,	/* saved at frame pointer + value */
	ELSEWHERE,
};

struct column {
	enum how how;
	int64_t value;
};

enum cfa {
	CFA_REGISTER,
	CFA_REALIGNED, /* *(frame pointer + offset) */
	CFA_ELSEWHERE,
};

struct row {
	enum cfa cfa;
	uint64_t reg;
	int64_t offset;
	struct column fp, ra;
};

#define SAVED_ROWS 8u

struct machine {
	struct row row, initial, saved[SAVED_ROWS];
	unsigned depth; /* of saved */
	uint64_t location, target;
	const struct cie *cie;
	bool unknown; /* an instruction that we do not know */
};

/* NULL: a register that the walk does not follow. */
static struct column *column(struct row *row, uint64_t reg)
{
	return reg == GT_DW_FP ? &row->fp : reg == GT_DW_RA ? &row->ra : NULL;
}

static void set(struct machine *m, uint64_t reg, enum how how, int64_t value)
{
	struct column *c = column(&m->row, reg);

	if (c)
		*c = (struct column){how, value};
}

static void restore(struct machine *m, uint64_t reg)
{
	struct column *to = column(&m->row, reg);

	if (to)
		*to = *column(&m->initial, reg);
}

/* [frame pointer + value], which compilers write for frames with a realigned stack pointer. */
static bool fp_expression(struct reader *r, bool deref, int64_t *ret_value)
{
	uint64_t length = uleb(r);
	struct reader e = {r->at, r->at + length, false};
	int64_t value;

	skip(r, length);
	if (r->bad || take(&e, 1) != GT_DW_BREG_FP)
		return false;
	value = sleb(&e);
	if (e.bad || (deref && take(&e, 1) != 0x06) || e.bad || e.at != e.end)
		return false;
	*ret_value = value;
	return true;
}

static void cfa_expression(struct machine *m, struct reader *r)
{
	m->row.cfa = fp_expression(r, true, &m->row.offset) ? CFA_REALIGNED : CFA_ELSEWHERE;
}

static void register_expression(struct machine *m, struct reader *r)
{
	uint64_t reg = uleb(r);
	int64_t value = 0;
	bool known = fp_expression(r, false, &value);

	set(m, reg, known ? AT_FP : ELSEWHERE, value);
}

static void remember(struct machine *m)
{
	if (m->depth == SAVED_ROWS)
		m->unknown = true;
	else
		m->saved[m->depth++] = m->row;
}

static void recall(struct machine *m)
{
	if (!m->depth)
		m->unknown = true;
	else
		m->row = m->saved[--m->depth];
}

static void cfa_register(struct machine *m, uint64_t reg, int64_t offset)
{
	m->row.cfa = CFA_REGISTER;
	m->row.reg = reg;
	m->row.offset = offset;
}

/* Values that stand for a register's caller's value in some way other than saved at CFA + n. */
static void odd_column(struct machine *m, struct reader *r, uint8_t op)
{
	uint64_t reg = uleb(r);

	if (op == 0x16) /* val_expression */
		skip(r, uleb(r));
	else
		uleb(r); /* register, val_offset, val_offset_sf */
	set(m, reg, ELSEWHERE, 0);
}

static void advance(struct machine *m, uint64_t delta)
{
	m->location += delta * m->cie->code_align;
}

/* The instructions with an opcode of their own, by number; names are those of the DWARF standard. */
static void extended(struct machine *m, struct reader *r, uint8_t op)
{
	int64_t factor = m->cie->data_align;
	uint64_t reg;

	switch (op) {
	case 0x00: /* nop */
	case 0x2d: /* AArch64: return address is signed from here on */
		break;
	case 0x01: /* set_loc */
		m->location = pointer(r, m->cie->encoding);
		break;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		advance(m, take(r, 1u << (op - 2)));
		break;
	case 0x05: /* offset_extended */
		reg = uleb(r);
		set(m, reg, AT_CFA, (int64_t)uleb(r) * factor);
		break;
	case 0x06: /* restore_extended */
		restore(m, uleb(r));
		break;
	case 0x07: /* undefined */
		set(m, uleb(r), UNDEFINED, 0);
		break;
	case 0x08: /* same_value */
		set(m, uleb(r), UNCHANGED, 0);
		break;
	case 0x09:
	case 0x14:
	case 0x15:
	case 0x16:
		odd_column(m, r, op);
		break;
	case 0x0a: /* remember_state */
		remember(m);
		break;
	case 0x0b: /* restore_state */
		recall(m);
		break;
	case 0x0c: /* def_cfa */
		reg = uleb(r);
		cfa_register(m, reg, (int64_t)uleb(r));
		break;
	case 0x0d: /* def_cfa_register */
		cfa_register(m, uleb(r), m->row.offset);
		break;
	case 0x0e: /* def_cfa_offset */
		m->row.offset = (int64_t)uleb(r);
		break;
	case 0x0f: /* def_cfa_expression */
		cfa_expression(m, r);
		break;
	case 0x10: /* expression */
		register_expression(m, r);
		break;
	case 0x11: /* offset_extended_sf */
		reg = uleb(r);
		set(m, reg, AT_CFA, sleb(r) * factor);
		break;
	case 0x12: /* def_cfa_sf */
		reg = uleb(r);
		cfa_register(m, reg, sleb(r) * factor);
		break;
	case 0x13: /* def_cfa_offset_sf */
		m->row.offset = sleb(r) * factor;
		break;
	case 0x2e: /* GNU_args_size: matters to landing pads only */
		uleb(r);
		break;
	default:
		m->unknown = true;
	}
}

/* Runs a program up to the target; the row in force there is m->row. */
static void run(struct machine *m, struct reader r)
{
	while (r.at < r.end && !r.bad && !m->unknown) {
		uint8_t op = (uint8_t)take(&r, 1), low = op & 0x3f;

		if (op >> 6 == 1)
			advance(m, low);
		else if (op >> 6 == 2)
			set(m, low, AT_CFA, (int64_t)uleb(&r) * m->cie->data_align);
		else if (op >> 6 == 3)
			restore(m, low);
		else
			extended(m, &r, op);
		if (m->location > m->target)
			return;
	}
	m->unknown |= r.bad;
}

/* ---- the rule -------------------------------------------------------------------------------- */

/* Room in the long form of a rule, and a place that a word can be read from. */
static bool fits(int64_t value)
{
	return value >= -(1 << 18) && value < 1 << 18 && !(value & 7);
}

/* A row as a rule: OTHER unless it has one of the forms that the walker takes. */
static void rule_of(const struct row *row, struct gt_rule *rule)
{
	enum gt_rule_kind kind = GT_RULE_OTHER;
	enum how fp_how = AT_CFA;

	rule->kind = GT_RULE_OTHER;
	if (row->ra.how == UNDEFINED) {
		rule->kind = GT_RULE_END;
		return;
	}
	if (row->cfa == CFA_REALIGNED) {
		kind = GT_RULE_REALIGNED;
		fp_how = AT_FP;
	} else if (row->cfa == CFA_REGISTER && row->reg == GT_DW_SP) {
		kind = GT_RULE_SP;
	} else if (row->cfa == CFA_REGISTER && row->reg == GT_DW_FP) {
		kind = GT_RULE_FP;
	}
	if (row->ra.how != AT_CFA || !fits(row->ra.value) || row->offset & 7 ||
	    row->offset != (int32_t)row->offset)
		return;
	if (row->fp.how != UNCHANGED && (row->fp.how != fp_how || !fits(row->fp.value)))
		return;
	*rule = (struct gt_rule){kind, row->fp.how != UNCHANGED, row->offset, row->fp.value,
				 row->ra.value};
}

struct fde { /* one function */
	uint64_t start, length;
	struct reader program;
};

static bool read_fde(const struct gt_module *m, uint64_t address, struct cie *cie, struct fde *ret)
{
	struct reader r;
	uint64_t here, back;

	if (!record(m, address, &r))
		return false;
	here = r.at;
	back = take(&r, 4);
	if (r.bad || !back || !read_cie(m, here - back, cie))
		return false;
	ret->start = pointer(&r, cie->encoding);
	ret->length = plain_pointer(&r, cie->encoding & 0x0f);
	if (cie->augmented)
		skip(&r, uleb(&r));
	ret->program = r;
	return !r.bad;
}

/* NONE: found. OTHER: no table of the usual form, or a signal frame. STOP: pc is not in it. */
static enum gt_rule_kind find_program(const struct gt_module *module, uint64_t pc, struct cie *cie,
				      struct fde *fde)
{
	uint64_t address;

	if (!module->frames || !find_fde(module, pc, &address))
		return GT_RULE_OTHER;
	if (!address)
		return GT_RULE_STOP;
	if (!read_fde(module, address, cie, fde) || pc - fde->start >= fde->length)
		return GT_RULE_STOP;
	return cie->signal ? GT_RULE_OTHER : GT_RULE_NONE;
}

void gt_cfi_rule(const struct gt_module *module, uint64_t pc, struct gt_rule *ret)
{
	struct cie cie;
	struct fde fde;
	struct machine m = {.cie = &cie, .target = UINT64_MAX};

	*ret = (struct gt_rule){.kind = find_program(module, pc, &cie, &fde)};
	if (ret->kind != GT_RULE_NONE)
		return;
	ret->kind = GT_RULE_STOP;
	/* NOLINTNEXTLINE: find_program() has set it where it says NONE */
	m.location = fde.start;
	run(&m, cie.program); /* to its end: it does not advance */
	m.initial = m.row;
	m.target = pc;
	run(&m, fde.program);
	if (!m.unknown)
		rule_of(&m.row, ret);
}
