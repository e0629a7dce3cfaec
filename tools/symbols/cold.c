/* SPDX-License-Identifier: MIT */
/*
 * See cold.h. Compilers move what they take for unlikely out of a function, into a piece that only
 * a local symbol names; in a stripped interpreter nothing does. Of CPython's evaluation function
 * that may be most of it, and stacks are merged by counting its calls. So the piece is found as
 * what it is: code that the function jumps to and that unwind information describes as a function
 * of its own. Bytes come from a file: each offset is checked.
 */
#include "symbols/cold.h"

#include <string.h>

struct bytes {
	const uint8_t *at;
	size_t size;
	uint64_t address; /* of the first */
};

/* The bytes from an address to the end of its section; none: at = NULL. */
static struct bytes bytes_at(Elf *elf, uint64_t address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr head;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;

		if (!gelf_getshdr(section, &head) || head.sh_type != SHT_PROGBITS ||
		    address - head.sh_addr >= head.sh_size)
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf || address - head.sh_addr >= data->d_size)
			break;
		return (struct bytes){(const uint8_t *)data->d_buf + (address - head.sh_addr),
				      data->d_size - (address - head.sh_addr), address};
	}
	return (struct bytes){0};
}

/* .eh_frame_hdr: where each piece of code with unwind information begins, in order. */
static struct bytes table_of(Elf *elf)
{
	static const uint8_t usual[] = {1, 0x1b, 0x03, 0x3b}; /* 32 bits, relative to the header */
	struct bytes table = {0};
	GElf_Phdr head;
	size_t count = 0;

	if (elf_getphdrnum(elf, &count))
		return table;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &head) && head.p_type == PT_GNU_EH_FRAME)
			table = bytes_at(elf, head.p_vaddr);
	if (table.size < 12 || memcmp(table.at, usual, sizeof(usual)) != 0)
		table.size = 0;
	return table;
}

static int32_t word(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t entry(struct bytes table, size_t index)
{
	return table.address + (uint64_t)(int64_t)word(table.at + 12 + 8 * index);
}

/* The piece that begins exactly there. */
static bool piece_at(struct bytes table, uint64_t start, struct gt_code_range *ret)
{
	size_t low = 0, count = table.size < 12 ? 0 : (table.size - 12) / 8, high;

	if (count && count > (uint32_t)word(table.at + 8))
		count = (uint32_t)word(table.at + 8);
	for (high = count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (entry(table, middle) < start)
			low = middle + 1;
		else
			high = middle;
	}
	if (low + 1 >= count || entry(table, low) != start)
		return false;
	*ret = (struct gt_code_range){start, entry(table, low + 1)};
	return true;
}

/* Where a jump of x86-64 with a 32-bit distance goes, if the bytes are one; else 0. */
static uint64_t jump_at(struct bytes code, size_t i)
{
	size_t length = code.at[i] == 0xe9					? 5
			: code.at[i] == 0x0f && (code.at[i + 1] & 0xf0) == 0x80 ? 6
										: 0;

	return length ? code.address + i + length +
				(uint64_t)(int64_t)word(code.at + i + length - 4)
		      : 0;
}

bool gt_cold_part(Elf *elf, struct gt_code_range function, struct gt_code_range *ret)
{
	struct bytes code = bytes_at(elf, function.start), table = table_of(elf);
	GElf_Ehdr head;

	if (!gelf_getehdr(elf, &head) || head.e_machine != EM_X86_64 || !code.at)
		return false;
	if (code.size > function.end - function.start)
		code.size = function.end - function.start;
	for (size_t i = 0; i + 6 <= code.size; i++) {
		uint64_t to = jump_at(code, i);

		if (to && to - function.start >= function.end - function.start &&
		    piece_at(table, to, ret))
			return true;
	}
	return false;
}
