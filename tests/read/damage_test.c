/* SPDX-License-Identifier: MIT */
/*
 * Files that are cut, foreign or damaged: each gives one clear line and exit status 3, or a correct
 * read; none crashes (build with SAN=address,undefined).
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <criterion/criterion.h>
#include "swallow.h"
#include "writer.h"

struct victim {
	int fd;
	char path[64];
};

static struct victim victim_new(void)
{
	struct victim v = {.fd = memfd_create("trace", MFD_CLOEXEC)};

	snprintf(v.path, sizeof(v.path), "/proc/self/fd/%d", v.fd);
	return v;
}

static void victim_write(const struct victim *v, const void *bytes, size_t size)
{
	cr_assert(!ftruncate(v->fd, 0));
	cr_assert(pwrite(v->fd, bytes, size, 0) == (ssize_t)size);
}

static struct written *small_trace(uint64_t seed)
{
	const struct writer_options options = {
		.seed = seed,
		.events = 400,
		.lanes = 1 + seed % 2,
		.cap = 16,
		.extent = 8192,
		.ring = 4,
		.sites = 20,
		.live = 30,
	};

	return writer_make(&options);
}

static void refused(const struct victim *v, unsigned int flags, const char *what)
{
	struct gt_error err;
	enum swallowed how = swallow(v->path, flags, &err);

	cr_assert_eq(how, SWALLOWED_REFUSED, "%s", err.text);
	cr_assert(strstr(err.text, what) != NULL, "\"%s\" is not in: %s", what, err.text);
}

Test(damage, foreign_files)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *what;
	} files[] = {
		{"", 0, "empty (0 bytes)"},
		{"Dear diary,\n", 12, "not a gputrace trace (starts with \"Dear dia\")"},
		{"\x80\x04\x95\"x", 5, "(starts with \"\\x80\\x04\\x95\\x22x\")"},
		{"\0\0\0\0\0\0\0\0\0\0\0\0", 12, "starts with zeros"},
		{"GPUTR", 5, "cut at byte 5"},
		{"GPUTRACE\1\0\0\0", 12, "cut at byte 12"},
	};
	struct victim v = victim_new();

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		victim_write(&v, files[i].bytes, files[i].size);
		refused(&v, 0, files[i].what);
		refused(&v, GT_OPEN_PARTIAL, files[i].what);
	}
}

Test(damage, other_things_than_files)
{
	struct victim v = {.fd = -1};

	strcpy(v.path, "/proc/self");
	refused(&v, 0, "a directory, not a trace file");
	strcpy(v.path, "/dev/null");
	refused(&v, 0, "a device or pipe, not a trace file");
	strcpy(v.path, "/nonexistent/x.gtrace");
	refused(&v, 0, "No such file");
}

Test(damage, permission_denied)
{
	struct victim v = {.fd = -1};
	int fd;

	strcpy(v.path, "/tmp/gputrace-test-XXXXXX");
	fd = mkstemp(v.path);
	cr_assert_geq(fd, 0);
	cr_assert(!fchmod(fd, 0000));
	if (!geteuid() && (setegid(65534) || seteuid(65534)))
		cr_skip_test("cannot become another user");
	refused(&v, 0, "permission denied (owner ");
	refused(&v, 0, "mode 0000): read it as root or copy it as the owner");
	if (!getuid())
		cr_assert(!seteuid(0));
	unlink(v.path);
	close(fd);
}

Test(damage, other_version_or_order)
{
	struct written *w = small_trace(1);
	struct gt_header *h = (void *)w->bytes;
	struct victim v = victim_new();

	h->version = GT_VERSION + 2;
	victim_write(&v, w->bytes, w->size);
	refused(&v, GT_OPEN_PARTIAL, "format 4, this gputrace reads 2: the file is fine, update");
	h->version = GT_VERSION;
	h->byte_order = __builtin_bswap32(h->byte_order);
	victim_write(&v, w->bytes, w->size);
	refused(&v, 0, "byte order");
	writer_free(w);
}

Test(damage, cut_at_every_word)
{
	struct written *w = small_trace(2);
	struct victim v = victim_new();
	struct gt_error err;
	char what[64];

	victim_write(&v, w->bytes, w->size);
	for (size_t size = w->size - 8; size >= GT_HEADER_SIZE; size -= 8) {
		cr_assert(!ftruncate(v.fd, (off_t)size));
		if (size % 256 == 0 || size % 4096 < 128) {
			snprintf(what, sizeof(what), "cut at byte %zu of %zu: copy it again", size,
				 w->size);
			refused(&v, 0, what);
			cr_assert_eq(swallow(v.path, GT_OPEN_PARTIAL, &err), SWALLOWED_WHOLE,
				     "%zu: %s", size, err.text);
		}
	}
	writer_free(w);
}

/* Whatever a cut file still has must be true: the events of the history are those of the whole. */
Test(damage, partial_is_true)
{
	struct written *w = small_trace(3);
	struct victim v = victim_new();
	const struct gt_event *e;
	struct gt_cursor *cursor;
	struct gt_trace *trace;
	struct gt_error err;
	size_t with_events = 0;

	victim_write(&v, w->bytes, w->size);
	for (size_t size = w->size - 4096; size >= GT_HEADER_SIZE; size -= 4096) {
		cr_assert(!ftruncate(v.fd, (off_t)size));
		cr_assert(!gt_trace_open(v.path, GT_OPEN_PARTIAL, &trace, &err), "%s", err.text);
		cr_assert(trace->partial);
		for (size_t i = 0; i < trace->lane_count; i++) {
			cursor = gt_cursor_new(trace, i);
			while ((e = gt_cursor_prev(cursor, &err))) {
				const struct gt_event *true_one =
					&w->lanes[trace->lanes[i].lane].events[e->seq - 1];

				cr_assert_eq(e->addr, true_one->addr);
				cr_assert_eq(e->size, true_one->size);
				with_events++;
			}
			cr_assert_eq(err.status, 0, "%s", err.text);
			gt_cursor_free(cursor);
		}
		gt_trace_close(trace);
	}
	cr_assert_gt(with_events, 100);
	writer_free(w);
}

static uint64_t next_random(uint64_t *rng)
{
	*rng ^= *rng << 13;
	*rng ^= *rng >> 7;
	*rng ^= *rng << 17;
	return *rng >> 11;
}

/* flip: number of bits flipped, or bytes overwritten when negative. */
static void damage(struct written *w, uint64_t seed, int tries, int flips)
{
	uint8_t *copy = malloc(w->size);
	struct victim v = victim_new();
	uint64_t rng = seed * 7919 + 88172645463325252ull;
	size_t whole = 0, refusals = 0;
	struct gt_error err;

	victim_write(&v, w->bytes, w->size);
	for (int i = 0; i < tries; i++) {
		memcpy(copy, w->bytes, w->size);
		for (int k = 0; k < abs(flips); k++) {
			size_t at = next_random(&rng) % w->size;

			/* Half of them where the structure is: in the first bytes of a page. */
			if (next_random(&rng) & 1)
				at = at / 4096 * 4096 + at % 192;
			if (flips > 0)
				copy[at] ^= (uint8_t)(1u << next_random(&rng) % 8);
			else
				copy[at] =
					next_random(&rng) & 1 ? 0xff : (uint8_t)next_random(&rng);
		}
		cr_assert(pwrite(v.fd, copy, w->size, 0) == (ssize_t)w->size);
		switch (swallow(v.path, i % 2 ? GT_OPEN_PARTIAL : 0, &err)) {
		case SWALLOWED_WHOLE:
			whole++;
			break;
		case SWALLOWED_REFUSED:
			refusals++;
			break;
		default:
			cr_assert_fail("try %d: %s", i, err.text);
		}
	}
	cr_assert_gt(whole, 0);
	cr_assert_gt(refusals, 0);
	free(copy);
	close(v.fd);
}

Test(damage, one_bit)
{
	for (uint64_t seed = 0; seed < 4; seed++) {
		struct written *w = small_trace(seed);

		damage(w, seed, 700, 1);
		writer_free(w);
	}
}

Test(damage, several_bytes)
{
	for (uint64_t seed = 10; seed < 14; seed++) {
		struct written *w = small_trace(seed);

		damage(w, seed, 500, -6);
		writer_free(w);
	}
}

/* A damaged chunk must be found by its checksum wherever the bit is. */
Test(damage, chunk_bits_are_all_found)
{
	struct written *w = small_trace(5);
	struct victim v = victim_new();
	struct gt_error err;
	size_t chunks = 0;

	for (size_t at = GT_HEADER_SIZE; at < w->size;) {
		struct gt_extent *e = (void *)(w->bytes + at);
		struct gt_chunk *chunk = (void *)(e + 1);

		at += e->length;
		if (e->kind != GT_EXTENT_RING || e->used <= sizeof(*e))
			continue;
		for (uint32_t i = 0; i < chunk->packed; i++) {
			((uint8_t *)(chunk + 1))[i] ^= 1u << i % 8;
			victim_write(&v, w->bytes, w->size);
			cr_assert_eq(swallow(v.path, 0, &err), SWALLOWED_REFUSED);
			cr_assert(strstr(err.text, "checksum") != NULL, "%s", err.text);
			((uint8_t *)(chunk + 1))[i] ^= 1u << i % 8;
		}
		chunks++;
	}
	cr_assert_gt(chunks, 1);
	writer_free(w);
}
