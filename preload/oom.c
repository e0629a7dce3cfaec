/* SPDX-License-Identifier: MIT */
/*
 * Refused requests. Each is an event; one for want of memory also gets a report, made on the spot,
 * because the ring may have forgotten everything by the time that somebody asks: what the lane
 * held, the largest holders, the device's state, other processes. What becomes of the failure is
 * written into the report when it is known: the same request granted later, or any request of that
 * thread on that device. A process that ends without either was killed by it.
 *
 * torch tries again after a refusal (it gives its cached segments back first): the tries of one
 * thread for one size are one failure until torch raises its error. Called with no lock held.
 */
#include <string.h>
#include "recorder.h"

#define OUT_OF_MEMORY 2			   /* CUDA_ERROR_OUT_OF_MEMORY */
#define PER_EXTENT    8u		   /* reports */
#define KEPT	      (GT_MAX_REPORTS - 2) /* the first ones stay; later ones share the last two */

static struct {
	struct gt_lock lock;
	struct gt_report *extents[GT_MAX_REPORTS / PER_EXTENT];
	uint32_t failures;
	bool said;
} oom;

GT_TLS struct {
	uint32_t epoch;
	bool busy;	/* a signal handler's hook must not wait for this thread's lock */
	uint64_t asked; /* in the failure that torch tells, as its message names it */
} mine;
GT_TLS_SHARED bool gt_refused;

static struct gt_report *report_at(uint32_t slot)
{
	struct gt_report *first = oom.extents[slot / PER_EXTENT];

	return first ? first + slot % PER_EXTENT : NULL;
}

static uint32_t slot_of(uint32_t number)
{
	return number <= KEPT ? number - 1 : KEPT + (number & 1);
}

static struct gt_report *new_report(uint32_t *ret_number)
{
	uint32_t slot = slot_of(oom.failures + 1);
	struct gt_report **first = &oom.extents[slot / PER_EXTENT];
	struct gt_extent *e;

	if (!*first) {
		e = gt_extent_new(GT_EXTENT_REPORTS, GT_LANE_NONE,
				  sizeof(*e) + PER_EXTENT * sizeof(**first), slot);
		if (!e)
			return NULL;
		*first = (struct gt_report *)(e + 1);
	}
	*ret_number = ++oom.failures;
	if (report_at(slot)->state)
		gt_count_lost(GT_LOST_REPORTS);
	gt_store(&report_at(slot)->state, 0);
	gt_store_barrier();
	return report_at(slot);
}

/* This thread's latest failure on a lane whose outcome is open: of a size, or any if size is 0. */
static struct gt_report *find_pending(uint32_t thread, uint32_t lane, uint64_t size)
{
	struct gt_report *found = NULL;

	for (uint32_t i = 0; i < GT_MAX_REPORTS; i++) {
		struct gt_report *r = report_at(i);

		if (!r || !r->state || r->outcome != GT_OUTCOME_PENDING || r->thread != thread ||
		    r->lane != lane || r->space == GT_SPACE_TORCH)
			continue;
		if ((!size || r->requested == size) && (!found || r->state > found->state))
			found = r;
	}
	return found;
}

/* What is the same for every try of a failure, and what the last one changes. */
static void fill(struct gt_report *to, struct lane *l, const struct gt_refusal *r,
		 const struct gt_cell *cell)
{
	memset((char *)to + sizeof(to->state), 0, sizeof(*to) - sizeof(to->state));
	to->lane = l->number;
	to->thread = GT_HIGH16(cell->time_thread);
	to->site = cell->site;
	to->result = r->result;
	to->space = r->space;
	to->torch_allocated = to->torch_reserved = GT_UNKNOWN_BYTES;
	to->holders = gt_site_holders(l, to->holder);
}

static void update(struct gt_report *to, struct lane *l, const struct gt_refusal *r,
		   const struct gt_cell *cell)
{
	for (unsigned k = 0; k < GT_TOTALS; k++)
		to->cur[k] = l->file->ctr[l->seq & 1].cur[k];
	to->seq = l->seq;
	to->us = GT_LOW48(cell->time_thread);
	if (r->device_total != GT_UNKNOWN_BYTES || !to->device_total) {
		to->device_free = r->device_free;
		to->device_total = r->device_total;
	}
}

static void update_driver(struct gt_report *to, const struct gt_refusal *r)
{
	to->requested = r->size;
	to->result = r->result;
	to->tries++;
}

static void update_torch(struct gt_report *to, const struct gt_refusal *r)
{
	to->torch_requested = r->size;
	to->torch_allocated = r->torch_allocated;
	to->torch_reserved = r->torch_reserved;
	gt_store(&to->space, GT_SPACE_TORCH);
}

/* Lane entered. The event of this failure. */
static void record(struct lane *l, const struct gt_refusal *r, enum gt_op op, uint32_t aux,
		   struct gt_cell *cell)
{
	const struct gt_site_key site = {.native = r->where.native,
					 .python = r->where.python,
					 .space = (uint8_t)r->space,
					 .api = (uint16_t)r->api};

	uint64_t size = r->size > GT_LOW48(-1) ? GT_LOW48(-1) : r->size;

	*cell = (struct gt_cell){.key = GT_KEY(0, r->space),
				 .size_stream = GT_PACK(size, 0),
				 .site = gt_site_of(l, &site),
				 .slot = GT_NONE,
				 .aux = aux,
				 .extra = r->device_free};
	gt_commit(l, NULL, cell, op, 0);
}

/* Lane entered, reports locked. Event and report; the report's number, 0 = it has none. */
static uint32_t refuse(struct lane *l, const struct gt_refusal *r, enum gt_op op)
{
	bool torch = op == GT_OP_OOM;
	struct gt_report *to = find_pending(gt_def_thread(), l->number, torch ? 0 : r->size);
	uint32_t number = to ? to->state : oom.failures + 1;
	struct gt_cell cell;

	record(l, r, op, torch ? number : (uint32_t)r->result, &cell);
	if (!torch && (r->result != OUT_OF_MEMORY || r->space == GT_SPACE_RANGE))
		return 0; /* addresses are no memory */
	if (!to) {
		to = new_report(&number);
		if (!to)
			return 0;
		fill(to, l, r, &cell);
	}
	update(to, l, r, &cell);
	if (torch)
		update_torch(to, r);
	else
		update_driver(to, r);
	mine.asked = to->requested > r->size ? to->requested : r->size;
	gt_store(&to->state, number);
	return number;
}

/* Foreign code runs here: no lock is held, and the report may have gone to a later failure since.
 */
static void add_others(uint32_t number, int device)
{
	struct gt_other others[GT_REPORT_OTHERS];
	uint32_t n = gt_nvml_others(device, others, GT_REPORT_OTHERS);
	struct gt_report *r = report_at(slot_of(number));

	gt_lock(&oom.lock);
	if (r->state == number) {
		memcpy(r->other, others, n * sizeof(*others));
		gt_store(&r->others, n);
	}
	gt_unlock(&oom.lock);
}

static uint32_t failure(const struct gt_refusal *r, enum gt_op op)
{
	uint32_t number = 0;
	struct lane *l;

	if (mine.busy)
		return 0;
	mine.busy = true;
	gt_lock(&oom.lock);
	l = gt_lane_enter(r->device);
	if (l) {
		number = refuse(l, r, op);
		gt_lane_leave(l);
	}
	gt_unlock(&oom.lock);
	if (number) {
		gt_refused = true;
		mine.epoch = gt_epoch;
	}
	mine.busy = false;
	return number;
}

void gt_record_refusal(const struct gt_refusal *r)
{
	uint32_t number = failure(r, GT_OP_FAILED);

	if (number && number <= KEPT)
		add_others(number, r->device);
}

/* ---- what is said --------------------------------------------------------------------------- */

/* 20.00 MiB, 1024.00 MiB, 1.25 GiB: as torch writes it */
static void put_bytes(struct gt_text *t, uint64_t bytes)
{
	unsigned shift = bytes > 1ull << 30 ? 30 : 20;
	uint64_t hundredths = ((bytes >> (shift - 10)) * 100 + 512) >> 10;

	gt_text_u64(t, hundredths / 100);
	gt_text_str(t, hundredths % 100 < 10 ? ".0" : ".");
	gt_text_u64(t, hundredths % 100);
	gt_text_str(t, shift == 30 ? " GiB" : " MiB");
}

/* Once: a program that catches and goes on would only repeat the file's name. */
static void say(int device, uint64_t asked)
{
	char buf[4352];
	struct gt_text t = {.buf = buf, .size = sizeof(buf)};

	if (gt_options.quiet || __atomic_exchange_n(&oom.said, true, __ATOMIC_RELAXED))
		return;
	gt_text_str(&t, device == GT_DEVICE_HOST ? "gputrace: out of host memory"
						 : "gputrace: out of memory on GPU ");
	if (device != GT_DEVICE_HOST)
		gt_text_i64(&t, device);
	gt_text_str(&t, ": ");
	put_bytes(&t, asked);
	gt_text_str(&t, " refused; see: gputrace oom ");
	gt_text_str(&t, gt_file_path);
	gt_text_str(&t, "\n");
	gt_stderr(buf);
}

void gt_record_torch_oom(const struct gt_refusal *r)
{
	uint32_t number;
	uint64_t asked;

	mine.asked = r->size;
	number = failure(r, GT_OP_OOM);
	asked = mine.asked;
	if (number)
		add_others(number, r->device);
	say(r->device, asked);
}

/*
 * Without torch nobody says which refusal is the last: at exit() the newest that had no consequence
 * is.
 */
void gt_oom_exit(void)
{
	const struct gt_report *last = NULL;

	for (uint32_t i = 0; i < GT_MAX_REPORTS; i++) {
		const struct gt_report *r = report_at(i);

		if (r && r->state && r->outcome == GT_OUTCOME_PENDING &&
		    r->result == OUT_OF_MEMORY && (!last || r->state > last->state))
			last = r;
	}
	if (last)
		say(gt_lane_device(last->lane), last->requested);
}

/* ---- outcomes ------------------------------------------------------------------------------- */

static bool same_request(const struct gt_report *r, enum gt_space space, uint64_t size)
{
	return size == (space == GT_SPACE_TORCH ? r->torch_requested : r->requested);
}

/* Of all failures of this thread; true while some, on other devices, still wait. */
static bool settle(uint32_t thread, int device, enum gt_space space, uint64_t size)
{
	bool waiting = false;

	for (uint32_t i = 0; i < GT_MAX_REPORTS; i++) {
		struct gt_report *r = report_at(i);

		if (!r || !r->state || r->outcome != GT_OUTCOME_PENDING || r->thread != thread)
			continue;
		if (r->lane != gt_lane_number(device)) {
			waiting = true;
			continue;
		}
		r->outcome_us = gt_now_us();
		gt_store(&r->outcome, (uint32_t)(same_request(r, space, size) ? GT_OUTCOME_RECOVERED
									      : GT_OUTCOME_CAUGHT));
	}
	return waiting;
}

/* What is allocated after exit() began does not mean that the program has coped. */
void gt_settle(int device, enum gt_space space, uint64_t size)
{
	if (mine.epoch != gt_epoch || mine.busy)
		return;
	if (gt_load_relaxed(&gt_file->exit_us))
		return;
	mine.busy = true;
	gt_lock(&oom.lock);
	gt_refused = settle(gt_def_thread(), device, space, size);
	gt_unlock(&oom.lock);
	mine.busy = false;
}

void gt_oom_forget(void)
{
	memset(&oom, 0, sizeof(oom));
}
