/* SPDX-License-Identifier: MIT */
/* See plan.h. A row of the table below per technique; each changes the base in one way. */
#include "model/plan.h"

#include <math.h>
#include <string.h>
#include "model/xalloc.h"

int gt_fit_line(const double *x, const double *y, size_t count, struct gt_line_fit *ret)
{
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0;

	for (size_t i = 0; i < count; i++) {
		mean_x += x[i] / (double)count;
		mean_y += y[i] / (double)count;
	}
	for (size_t i = 0; i < count; i++) {
		xx += (x[i] - mean_x) * (x[i] - mean_x);
		xy += (x[i] - mean_x) * (y[i] - mean_y);
	}
	if (count < 2 || xx <= 0)
		return -1;
	*ret = (struct gt_line_fit){.slope = xy / xx};
	ret->at_zero = mean_y - ret->slope * mean_x;
	for (size_t i = 0; i < count; i++)
		ret->residual = fmax(ret->residual, fabs(ret->at_zero + ret->slope * x[i] - y[i]));
	return 0;
}

/* ---- techniques ------------------------------------------------------------------------------ */

/* Share of the activations that is kept with n layers checkpointed in segments of about sqrt(n). */
static double checkpointed(double layers)
{
	double segment = round(sqrt(layers));

	return layers > 0 ? fmin(1, (ceil(layers / segment) + segment) / (layers + 1)) : 1;
}

static void checkpoint(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	row->known = base->layers > 0;
	row->per_sample *= checkpointed(base->layers);
}

static void offload(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	row->applies = base->optimizer > 0;
	row->optimizer = 0;
}

/* Of the layer that runs, the weights are there in whole. */
static void shard(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	double devices = base->devices > 0 ? base->devices : 2;

	row->weights /= devices;
	row->gradients /= devices;
	row->optimizer /= devices;
	if (base->layers > 0)
		row->weights += base->weights / base->layers;
}

static void autocast(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	(void)base;
	row->per_sample /= 2;
}

static void autocast_checkpoint(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	autocast(base, row);
	checkpoint(base, row);
}

static void sgd(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	offload(base, row);
}

static void momentum(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	row->applies = base->optimizer > 1.5 * base->weights;
	row->optimizer = base->weights;
}

/* A byte per value, and a 32-bit scale per block of 256. */
static void eight_bit(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	row->applies = base->optimizer > 0;
	row->optimizer *= (1 + 4.0 / 256) / 4;
}

static void half_master(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	row->weights /= 2;
	row->gradients /= 2;
	row->optimizer += base->weights;
	row->per_sample /= 2;
}

static void half(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	(void)base;
	row->weights /= 2;
	row->gradients /= 2;
	row->optimizer /= 2;
	row->per_sample /= 2;
}

/*
 * Adapters of rank r on the query and value projections: two pairs of r x width in each layer, and
 * parameters = 12 layers width^2.
 */
static double adapter_share(const struct gt_plan_base *base)
{
	double width = sqrt(base->params / (12 * base->layers));

	return 4 * base->rank * width * base->layers / base->params;
}

static void lora(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	double share;

	row->known = base->layers > 0 && base->rank > 0 && base->params > 0;
	share = row->known ? adapter_share(base) : 0;
	row->weights += base->weights * share;
	row->gradients *= share;
	row->optimizer *= share;
}

/* The frozen weights in 4 bits, with 0.127 bits of scales each. */
static void qlora(const struct gt_plan_base *base, struct gt_plan_row *row)
{
	lora(base, row);
	row->weights -= base->weights - base->weights * (4 + 0.127) / 32;
}

static const struct {
	const char *id, *name, *formula;
	bool same_result;
	void (*apply)(const struct gt_plan_base *base, struct gt_plan_row *row);
} techniques[] = {
	{"base", "as it is", "weights + gradients + state", true, NULL},
	{"checkpointing", "checkpointing, --layers N", "per sample x (n/k + k) / (n + 1)", true,
	 checkpoint},
	{"offload", "optimizer state on the CPU", "state = 0", true, offload},
	{"sharded", "sharded (FSDP), --gpus N", "static / N + weights / layers", true, shard},
	{"autocast", "autocast (bf16)", "per sample / 2", false, autocast},
	{"autocast-checkpointing", "autocast + checkpointing", "both of the above", false,
	 autocast_checkpoint},
	{"adam-8bit", "8-bit optimizer state", "state x (1 + 4/256) / 4", false, eight_bit},
	{"sgd-momentum", "SGD with momentum", "state = weights", false, momentum},
	{"sgd", "SGD", "state = 0", false, sgd},
	{"bf16-master", "bf16, fp32 master weights", "halves; state + fp32 weights", false,
	 half_master},
	{"bf16", "bf16 alone", "all / 2", false, half},
	{"lora", "LoRA, --rank R --layers N", "gradients, state x 4 r width n / P", false, lora},
	{"qlora", "LoRA on 4-bit weights", "weights x 4.127 / 32 + LoRA", false, qlora},
};

#define TECHNIQUES (sizeof(techniques) / sizeof(techniques[0]))

struct gt_plan_row *gt_plan_rows(const struct gt_plan_base *base, size_t *ret_count)
{
	struct gt_plan_row *rows = NULL;
	size_t count = 0;

	for (size_t i = 0; i < TECHNIQUES; i++) {
		struct gt_plan_row row = {
			.id = techniques[i].id,
			.name = techniques[i].name,
			.formula = techniques[i].formula,
			.same_result = techniques[i].same_result,
			.applies = true,
			.known = true,
			.weights = base->weights,
			.gradients = base->gradients,
			.optimizer = base->optimizer,
			.other = base->other,
			.per_sample = base->per_sample,
		};

		if (techniques[i].apply)
			techniques[i].apply(base, &row);
		/* Less than zero: gradients that are not made yet at the peak. */
		if (row.other < 0 && base->gradients > 0)
			row.other *= row.gradients / base->gradients;
		if (row.applies)
			*GT_PUSH(rows, count) = row;
	}
	*ret_count = count;
	return rows;
}

struct gt_plan_base gt_plan_of_params(double params)
{
	return (struct gt_plan_base){
		.params = params,
		.weights = 4 * params,
		.gradients = 4 * params,
		.optimizer = 8 * params,
	};
}

double gt_plan_static(const struct gt_plan_row *row)
{
	return row->weights + row->gradients + row->optimizer + row->other;
}

uint64_t gt_plan_largest(double room, double per_sample)
{
	/* A whole number that falls short by the error of the division is that number. */
	double samples = per_sample > 0 && room > 0 ? floor(room / per_sample + 1e-9) : 0;

	return samples < 1e15 ? (uint64_t)samples : (uint64_t)1e15;
}

uint64_t gt_plan_divisor(uint64_t target, uint64_t most)
{
	for (uint64_t n = most < target ? most : target; n; n--)
		if (target % n == 0)
			return n;
	return 0;
}
