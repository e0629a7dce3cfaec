/* SPDX-License-Identifier: MIT */
/*
 * How long single calls take: the usual ones, and those in which the recorder seals a chunk, grows
 * its file or waits for it. Prints "NAME NS" for p50, p99, p99.9, p99.99 and max of all
 * cuMemFree/cuMemAlloc pairs, then how many were left out and the longest of these: in them another
 * process had the processor, which says nothing about us. The bench runs it with the nop library as
 * well, and with "touch": then each pair also writes to a mapped file what any recorder of this kind
 * must, without recording anything. What is slow there is the kernel's part.
 *
 * usage: pause PAIRS LIVE [touch]    the file is made in GPUTRACE_DIR
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "traffic.h"

#define STAGED	   (64 << 10) /* bytes that are written over and over */
#define KEPT	   10	      /* bytes of a pair that go on, in new pages */
#define EXTENT	   (1l << 20)
#define FILE_BYTES (256l << 20)

#define LONG_NS 20000 /* only then is the kernel asked whether somebody else has run */

static long switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw;
}

static struct {
	int fd;
	char *map; /* NULL: nothing is touched */
	long at, end;
} file;

static void file_open(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/touched", getenv("GPUTRACE_DIR"));
	file.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file.fd < 0 || ftruncate(file.fd, FILE_BYTES) || posix_fallocate(file.fd, 0, STAGED))
		exit(1);
	file.map = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
	if (file.map == MAP_FAILED)
		exit(1);
	file.at = file.end = STAGED;
}

/* As a trace grows: a cell per event that is used again, and some bytes that stay. */
static void file_touch(long i)
{
	if (file.at + KEPT > FILE_BYTES)
		file.at = STAGED;
	if (file.at + KEPT > file.end) {
		if (posix_fallocate(file.fd, file.end, EXTENT))
			exit(1);
		file.end += EXTENT;
	}
	memset(file.map + i * 128 % STAGED, (int)i, 128);
	memset(file.map + file.at, (int)i, KEPT);
	file.at += KEPT;
}

static void pair(uint64_t *live, long n, long i)
{
	traffic_pair(live, n);
	if (file.map)
		file_touch(i);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		double q;
	} at[] = {{"p50", .5}, {"p99", .99}, {"p99.9", .999}, {"p99.99", .9999}, {"max", 1}};
	long pairs = argc > 1 ? atol(argv[1]) : 1000000, n = argc > 2 ? atol(argv[2]) : 1000;
	double *took = malloc(pairs * sizeof(*took)), apart_max = 0, begin, end;
	long kept = 0, apart = 0, before;
	uint64_t *live = traffic_start(n);

	if (!took)
		return 1;
	if (argc > 3)
		file_open();
	before = switches();
	for (long i = 0; i < pairs; i++) {
		begin = traffic_ns(CLOCK_MONOTONIC);
		pair(live, n, i);
		end = traffic_ns(CLOCK_MONOTONIC) - begin;
		if (end > LONG_NS && switches() != before) {
			before = switches();
			apart++;
			apart_max = end > apart_max ? end : apart_max;
			continue;
		}
		took[kept++] = end;
	}
	if (!kept)
		return 1;
	qsort(took, kept, sizeof(*took), traffic_by_value);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		printf("%s %.0f\n", at[i].name, took[(long)(at[i].q * (kept - 1))]);
	printf("apart %ld\napart_max %.0f\n", apart, apart_max);
	return 0;
}
