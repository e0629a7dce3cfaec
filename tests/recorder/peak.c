/* SPDX-License-Identifier: MIT */
/*
 * Bytes of each site at the peaks of its lane: random programs of all shapes through the recorder,
 * its file against the brute force of the model. The same programs also go through the two forms
 * that one might take instead, a generation number that each new peak raises: with 64 bits it is
 * right, with 4 bits it wraps and must be found wrong, or these programs prove nothing.
 *
 *   peak PROGRAMS
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../preload/recorder.h"
#include "model.h"

#define CALLS 2000
#define LOOK  97 /* calls between two looks at the file */

static void shape(struct program *p, uint64_t seed)
{
	uint64_t r = seed * 77;

	*p = (struct program){.lanes = 1};
	p->blocks = 4 + rnd(&r) % (rnd(&r) % 2 ? 40 : 600);
	p->stacks = 1 + rnd(&r) % 24;
	p->grow = rnd(&r) % 3 ? rnd(&r) % 60 : 95;
	program_make(p, seed, CALLS);
}

/* ---- the real thing, in a child ------------------------------------------------------------- */

static int look(struct model *m, size_t call)
{
	static struct ck_file f;
	struct ck_lane l = {0};
	const char *why = ck_open(&f, gt_file, gt_file->end);

	if (!why)
		why = ck_lane(&f, 0, false, &l);
	if (!why && l.head.seq != m->p->calls[call].events[0])
		why = "sequence";
	if (!why)
		why = model_compare(m, 0, &l);
	if (why)
		printf("# after call %lu: %s\n", call, why);
	ck_lane_free(&l);
	return why != NULL;
}

static int run(struct program *p, struct model *m)
{
	int wrong = 0;

	if (!gt_recording())
		return 2;
	unlink(gt_file_path);
	for (size_t i = 0; i < p->count && !wrong; i++) {
		program_call(p, i);
		if (i % LOOK == 0 || i + 1 == p->count)
			wrong = look(m, i);
	}
	fflush(stdout);
	return wrong;
}

/* ---- generations ---------------------------------------------------------------------------- */

struct gen_site {
	uint64_t live, at[GT_TOTALS], gen[GT_TOTALS];
};

/* Is the bytes-at-peak column by generations of so many bits wrong after any event of lane 0? */
static bool generations_wrong(struct model *m, uint64_t bits)
{
	struct m_lane *l = &m->lane[0];
	struct gen_site *sites = calloc(l->site_count, sizeof(*sites));
	uint64_t gen[GT_TOTALS] = {0}, cur[GT_TOTALS] = {0}, peak[GT_TOTALS] = {0};
	uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
	bool wrong = false;

	model_rewind(m);
	for (uint64_t q = 1; q <= l->event_count && !wrong; q++) {
		const struct m_event *e = &l->events[q - 1];
		struct gen_site *s = &sites[e->site];
		uint64_t d = e->op == GT_OP_ALLOC || e->op == GT_OP_UNFREE ? e->size : 0 - e->size;

		model_advance(m, 0, q);
		if (e->op == GT_OP_MARK || e->op == GT_OP_UNKNOWN_FREE)
			continue;
		for (unsigned k = 0; k < GT_TOTALS; k++) {
			if (s->gen[k] != gen[k])
				s->at[k] = s->live;
			s->gen[k] = gen[k];
			cur[k] += l->sites[e->site].mask >> k & 1 ? d : 0;
			if (cur[k] > peak[k]) {
				peak[k] = cur[k];
				gen[k] = (gen[k] + 1) & mask;
			}
		}
		s->live += d;
		for (uint32_t i = 0; i < l->site_count; i++)
			for (unsigned k = 0; k < GT_TOTALS; k++)
				if (l->sites[i].mask >> k & 1 &&
				    (sites[i].gen[k] != gen[k] ? sites[i].live : sites[i].at[k]) !=
					    l->sites[i].at[k])
					wrong = true;
	}
	free(sites);
	return wrong;
}

int main(int argc, char **argv)
{
	uint64_t programs = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	uint64_t bad = 0, bad64 = 0, bad4 = 0, judged = 0;

	setenv("GPUTRACE_EXTENT", "16K", 1);
	setenv("GPUTRACE_CELLS", "64", 1);
	setenv("GPUTRACE_RING", "64K", 1);
	for (uint64_t seed = 1; seed <= programs; seed++) {
		struct program p;
		struct model m;
		int status = 0;

		shape(&p, seed);
		model_make(&m, &p);
		fflush(stdout);
		if (!fork())
			_exit(run(&p, &m));
		wait(&status);
		bad += status != 0;
		if (seed % 10 == 0) {
			judged++;
			bad64 += generations_wrong(&m, 64);
			bad4 += generations_wrong(&m, 4);
		}
		model_free(&m);
		program_free(&p);
	}
	printf("# %lu programs, generations tried on %lu: 64 bits wrong %lu, 4 bits wrong %lu\n",
	       programs, judged, bad64, bad4);
	printf(bad || !programs ? "not ok at-peak: %lu programs wrong\n" : "ok at-peak\n", bad);
	printf(bad64 || !bad4 ? "not ok at-peak-generations: proves nothing\n"
			      : "ok at-peak-generations\n");
	return bad || bad64 || !bad4;
}
