/* SPDX-License-Identifier: MIT */
/*
 * See chart.h: collects what the charts show. Words and numbers come from where the screens get
 * theirs. Called from timeline.c, steps.c and diff.c.
 */
#include "cmd/chart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "chart/chart.h"
#include "cmd/oom.h"
#include "cmd/part.h"
#include "cmd/refusals.h"
#include "cmd/summary.h"
#include "cmd/words.h"
#include "model/marks.h"
#include "model/series.h"
#include "model/xalloc.h"
#include "out/number.h"

#define MOST_BARS  230
#define MOST_ROWS  14
#define MOST_MARKS 60

/* ---- words of the screens -------------------------------------------------------------------- */

struct words { /* the first two lines that a screen prints */
	struct gt_words screen;
	char *text;
	const char *title, *note;
};

static void end_words(struct words *words)
{
	char *line, *end;

	words->title = words->note = line = words->text = gt_words_end(&words->screen);
	for (int i = 0; i < 2; i++) {
		end = strchr(line, '\n');
		if (!end)
			return;
		*end = '\0';
		words->note = line = i ? line : end + 1;
	}
}

/* Behind the answer of steps stands which process it was. */
static void say_process(struct words *words, const struct gt_chart_of *of)
{
	const struct gt_trace *trace = of->place->input->trace;
	char *line = gt_command_line(trace, 80);
	char pid[GT_PID_TEXT], device[GT_DEVICE_TEXT];

	fprintf(words->screen.out.file, "%s   %s   %s", line, gt_pid_text(trace, pid),
		gt_device_text(of->place->lane->device, device));
	if (of->places > 1)
		fprintf(words->screen.out.file, ", %zu more: --device N", of->places - 1);
	fputc('\n', words->screen.out.file);
	free(line);
}

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * The file is made here and no earlier: a command that finds nothing to draw leaves what was there. It
 * holds names as a page does: not for other users, and no link is followed. NULL: *ret_status says
 * why.
 */
static struct gt_canvas *begin(struct gt_out *out, double height, const struct gt_chart_head *head,
			       int *ret_status)
{
	*ret_status = 0;
	if (!gt_canvas_can(out->picture)) {
		*ret_status = gt_message(GT_EXIT_UNREADABLE,
					 "png and pdf need libcairo.so.2, which is not here; "
					 "svg needs nothing");
		return NULL;
	}
	if (gt_file_create(&out->whole, out->path, GT_MODE_OURS)) {
		*ret_status = gt_message(GT_EXIT_USAGE, "%s: cannot write: %s", out->path,
					 strerror(errno));
		return NULL;
	}
	out->file = out->whole.file;
	return gt_canvas_new(out->file, out->picture, GT_CHART_WIDTH, height, head->title);
}

static int finish(struct gt_canvas *canvas)
{
	if (canvas->kind->finish(canvas) == 0)
		return 0;
	return gt_message(GT_EXIT_UNREADABLE, "the picture could not be written");
}

/* ---- timeline -------------------------------------------------------------------------------- */

struct timeline {
	struct gt_timeline_chart chart;
	struct words words;
	struct gt_pile *piles;
	uint64_t *held, *step_us;
	struct gt_chart_mark *marks;
	char *note;
};

static void add_mark(struct timeline *t, enum gt_mark_kind kind, uint64_t us, char *text)
{
	*GT_PUSH(t->marks, t->chart.mark_count) = (struct gt_chart_mark){kind, us, text};
}

/* First those that ended the run, in another call the others. */
static void add_failures(struct timeline *t, const struct gt_chart_of *of, bool fatal)
{
	const struct gt_trace *trace = of->place->input->trace;

	for (size_t i = 0; i < trace->report_count; i++) {
		const struct gt_report *report = &trace->reports[i];
		enum gt_end end = gt_report_end(trace, report);

		if (report->lane != of->place->lane->lane || !gt_is_memory(report) ||
		    (end >= GT_END_FATAL) != fatal)
			continue;
		add_mark(t, fatal ? GT_MARK_FAILURE : GT_MARK_REFUSED, report->us,
			 gt_refusal_text(trace, report));
	}
}

static void add_peak(struct timeline *t, const struct gt_chart_of *of)
{
	const struct gt_ctr *ctr = &of->place->lane->ctr;
	uint64_t span = t->chart.to_us - t->chart.from_us, us = ctr->peak_us[GT_TOTAL_IN_USE];
	size_t highest = 0;
	char size[GT_SIZE_TEXT];
	bool all;

	for (size_t i = 1; i < GT_CHART_SLICES; i++)
		if (t->piles[i].sum > t->piles[highest].sum)
			highest = i;
	t->chart.peak = t->piles[highest];
	all = t->chart.peak.sum == ctr->peak[GT_TOTAL_IN_USE];
	if (!all)
		us = t->chart.from_us + span * (2 * highest + 1) / (2 * GT_CHART_SLICES);
	gt_size_text(t->chart.peak.sum, size);
	add_mark(t, GT_MARK_PEAK, us, gt_xasprintf(all ? "peak %s" : "highest shown %s", size));
}

static void add_named(struct timeline *t, const struct gt_chart_of *of)
{
	struct gt_error err = {0};
	struct gt_marks marks;

	if (gt_marks_get(of->place->input->trace, &marks, &err))
		return;
	for (size_t i = 0; i < marks.named_count && t->chart.mark_count < MOST_MARKS; i++) {
		const struct gt_named *named = &marks.named[i];

		if (named->kind == GT_STRETCH_MARK)
			add_mark(t, GT_MARK_NAMED, marks.notes[named->begin].us,
				 gt_xstrdup(named->name));
	}
	gt_marks_clear(&marks);
}

static void add_steps(struct timeline *t, const struct gt_answers *answers)
{
	struct gt_timeline_chart *chart = &t->chart;

	for (size_t i = 0; answers && i < answers->steps.count; i++) {
		uint64_t us = gt_story_us(answers->story, answers->steps.starts[i]);

		if (us < chart->from_us || us > chart->to_us)
			continue;
		if (!chart->step_count)
			chart->first_step = i + 1;
		*GT_PUSH(t->step_us, chart->step_count) = us;
	}
}

/* Without torch there are no categories: what is in use is one layer. */
static int add_levels(struct timeline *t, const struct gt_chart_of *of,
		      const struct gt_answers *answers, struct gt_error *err)
{
	const struct gt_place *place = of->place;
	struct gt_series series;
	int rc = gt_series_get(place->input->trace, place->lane_index, t->chart.from_us,
			       t->chart.to_us, GT_CHART_SLICES, &series, err);

	if (rc)
		return rc;
	free(t->piles);
	free(t->held);
	t->piles = answers ? gt_piles_get(answers, place->lane_index, t->chart.from_us,
					  t->chart.to_us, GT_CHART_SLICES)
			   : gt_xcalloc(GT_CHART_SLICES, sizeof(*t->piles));
	t->held = gt_xcalloc(GT_CHART_SLICES, sizeof(*t->held));
	for (size_t i = 0; i < GT_CHART_SLICES; i++) {
		t->held[i] = series.points[i].max[GT_TOTAL_RESERVED];
		if (!answers)
			t->piles[i].sum = t->piles[i].bytes[GT_CATEGORY_NONE] =
				series.points[i].max[GT_TOTAL_IN_USE];
	}
	gt_series_clear(&series);
	return 0;
}

static const struct gt_report *failure_of(const struct gt_chart_of *of)
{
	const struct gt_report *failure = gt_input_headline(of->args, of->place->input);

	return failure && failure->lane == of->place->lane->lane ? failure : NULL;
}

/* Between the first and the last time that more than a tenth of the most is in use. */
static void find_busy(const struct timeline *t, uint64_t *ret_from, uint64_t *ret_to)
{
	uint64_t span = t->chart.to_us - t->chart.from_us, most = 0;
	size_t first = 0, last = GT_CHART_SLICES - 1;

	for (size_t i = 0; i < GT_CHART_SLICES; i++)
		most = t->piles[i].sum > most ? t->piles[i].sum : most;
	while (first < last && t->piles[first].sum <= most / 10)
		first++;
	while (first < last && t->piles[last].sum <= most / 10)
		last--;
	*ret_from = t->chart.from_us + span * first / GT_CHART_SLICES;
	*ret_to = t->chart.from_us + span * (last + 1) / GT_CHART_SLICES;
}

/*
 * What a whole run is shown of, unless a part was asked for: neither a long import before there is
 * memory worth seeing, nor what Python unwinds after the failure, nor a long end with nothing in
 * use. False: all of it.
 */
static bool trim(struct timeline *t, const struct gt_chart_of *of)
{
	const struct gt_report *failure = failure_of(of);
	uint64_t from = t->chart.from_us, to = t->chart.to_us, busy_from, busy_to, room, tail;

	find_busy(t, &busy_from, &busy_to);
	room = (busy_to - busy_from) / 20;
	if (failure && failure->us > from) {
		tail = (failure->us - (busy_from < failure->us ? busy_from : from)) / 25 + 1;
		to = failure->us + tail < to ? failure->us + tail : to;
	}
	if (to > busy_to && to - busy_to > (to - from) / 6)
		to = busy_to + room;
	if (busy_from < to && busy_from - from > (to - from) / 3)
		from = busy_from - ((to - busy_from) / 20 < room ? (to - busy_from) / 20 : room);
	if (from == t->chart.from_us && to == t->chart.to_us)
		return false;
	t->chart.from_us = from;
	t->chart.to_us = to;
	return true;
}

/* What is shown, when that is not all. */
static void say_shown(struct timeline *t, const struct gt_chart_of *of)
{
	char *note = NULL;

	if (t->chart.from_us || t->chart.to_us < of->place->input->trace->last_us)
		note = gt_xasprintf("%s \302\267 shown: %.3f to %.3f s", t->words.note,
				    (double)t->chart.from_us / 1e6, (double)t->chart.to_us / 1e6);
	t->chart.head.note = t->note = note ? note : gt_xstrdup(t->words.note);
}

static void say_answer(struct timeline *t, const struct gt_chart_of *of)
{
	gt_words_begin(&t->words.screen);
	t->chart.head.failed = failure_of(of);
	if (t->chart.head.failed)
		gt_oom_head(&t->words.screen.out, of->args, of->place->input);
	else
		gt_summary_head(&t->words.screen.out, of->args, of->place);
	end_words(&t->words);
	t->chart.head.title = t->words.title;
	say_shown(t, of);
}

static int draw_timeline(struct gt_out *out, struct timeline *t)
{
	struct gt_canvas *canvas;
	int status;

	t->chart.piles = t->piles;
	t->chart.held = t->held;
	t->chart.marks = t->marks;
	t->chart.step_us = t->step_us;
	canvas = begin(out, gt_timeline_height(&t->chart), &t->chart.head, &status);
	if (!canvas)
		return status;
	gt_timeline_draw(canvas, &t->chart);
	return finish(canvas);
}

int gt_chart_timeline(struct gt_out *out, const struct gt_chart_of *of, uint64_t from_us,
		      uint64_t to_us)
{
	const struct gt_answers *answers = gt_input_answers(of->place->input);
	struct timeline t = {
		.chart = {.from_us = from_us, .to_us = to_us, .card = of->place->device_total}};
	struct gt_error err = {0};
	int status, rc = add_levels(&t, of, answers, &err);

	if (!rc && !gt_part_asked(of->args) && trim(&t, of))
		rc = add_levels(&t, of, answers, &err);
	if (rc) {
		status = gt_message_error(&err);
	} else {
		add_failures(&t, of, true);
		add_peak(&t, of);
		add_failures(&t, of, false);
		add_named(&t, of);
		add_steps(&t, answers);
		say_answer(&t, of);
		status = draw_timeline(out, &t);
	}
	for (size_t i = 0; i < t.chart.mark_count; i++)
		free(t.marks[i].text);
	free(t.words.text);
	free(t.note);
	free(t.marks);
	free(t.step_us);
	free(t.held);
	free(t.piles);
	return status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static struct gt_pile peak_of(const struct gt_step *step, enum gt_total total)
{
	struct gt_pile pile = {.sum = step->peak};

	if (total == GT_TOTAL_IN_USE)
		memcpy(pile.bytes, step->categories[GT_STEP_PEAK], sizeof(pile.bytes));
	else
		pile.bytes[GT_CATEGORY_NONE] = step->peak;
	return pile;
}

/* The one with the highest peak of [first, last), and how it compares. */
static struct gt_bar bar_of(const struct gt_steps *steps, enum gt_total total, size_t first,
			    size_t last)
{
	size_t best = first;

	for (size_t i = first; i < last; i++)
		if (steps->steps[i].peak > steps->steps[best].peak)
			best = i;
	return (struct gt_bar){
		.peak = peak_of(&steps->steps[best], total),
		.end = steps->steps[best].end_bytes,
		.end_known = !steps->steps[best].cut,
		.first = first + 1,
		.last = last,
	};
}

/* "worst: step 12, 6547 MiB", or NULL where all are alike. To be freed. */
static char *worst_text(const struct gt_steps *steps)
{
	const struct gt_step *worst = &steps->steps[steps->worst];
	char size[GT_SIZE_TEXT];

	if (worst->peak <= steps->steps[steps->usual].peak + steps->steps[steps->usual].peak / 100)
		return NULL;
	return gt_xasprintf("step %zu: %s", steps->worst + 1, gt_size_text(worst->peak, size));
}

int gt_chart_steps(struct gt_out *out, const struct gt_chart_of *of, const struct gt_steps *steps)
{
	size_t each = steps->count / MOST_BARS + 1;
	struct gt_bar *bars = gt_xcalloc(steps->count + 1, sizeof(*bars));
	struct gt_steps_chart chart = {.bars = bars, .card = of->place->device_total};
	struct gt_canvas *canvas;
	struct words words = {0};
	char *worst;
	int status;

	if (!steps->count) {
		free(bars);
		return gt_message(GT_EXIT_USAGE,
				  "steps: none were found: there is nothing to draw");
	}
	for (size_t i = 0; i < steps->count; i += each)
		bars[chart.bar_count++] = bar_of(steps, of->args->total, i,
						 i + each < steps->count ? i + each : steps->count);
	gt_words_begin(&words.screen);
	gt_steps_head(&words.screen.out, of->place, steps);
	say_process(&words, of);
	end_words(&words);
	chart.head = (struct gt_chart_head){words.title, words.note, false};
	chart.worst = worst = worst_text(steps);
	canvas = begin(out, gt_steps_height(&chart), &chart.head, &status);
	if (canvas) {
		gt_steps_draw(canvas, &chart);
		status = finish(canvas);
	}
	free(worst);
	free(words.text);
	free(bars);
	return status;
}

/* ---- diff ------------------------------------------------------------------------------------ */

static char *change_name(const struct gt_diff_row *row)
{
	const struct gt_row *newer = row->b ? row->b : row->a;

	if (!newer->category)
		return gt_xstrdup(newer->label.text);
	return gt_xasprintf("%s, %s", newer->label.text, gt_category_name(newer->category));
}

/* The first rows changed most; the others are one. */
static void add_changes(struct gt_diff_chart *chart, const struct gt_diff *diff)
{
	size_t shown = diff->count <= MOST_ROWS + 1 ? diff->count : MOST_ROWS;
	struct gt_chart_change rest = {0};

	for (size_t i = 0; i < shown; i++)
		*GT_PUSH(chart->rows, chart->row_count) = (struct gt_chart_change){
			change_name(&diff->rows[i]), diff->rows[i].bytes_a, diff->rows[i].bytes_b};
	for (size_t i = shown; i < diff->count; i++) {
		rest.a += diff->rows[i].bytes_a;
		rest.b += diff->rows[i].bytes_b;
	}
	if (shown == diff->count)
		return;
	rest.name = gt_xasprintf("%zu more rows", diff->count - shown);
	*GT_PUSH(chart->rows, chart->row_count) = rest;
}

int gt_chart_diff(struct gt_out *out, const struct gt_args *args, const struct gt_diff_pairs *pairs)
{
	const struct gt_diff_pair *pair = pairs->pairs;
	struct gt_diff_chart chart = {0};
	struct gt_canvas *canvas;
	struct words words = {0};
	int status;

	if (!pairs->count)
		return gt_message(GT_EXIT_USAGE,
				  "diff: no GPU memory was asked for: there is nothing to draw");
	add_changes(&chart, pair->one_line ? &pair->inside : &pair->diff);
	chart.whole = (struct gt_chart_change){
		(char *)(args->total == GT_TOTAL_RESERVED ? "held" : "in use"), pair->diff.bytes_a,
		pair->diff.bytes_b};
	gt_words_begin(&words.screen);
	gt_diff_print_head(&words.screen.out, args, pairs);
	end_words(&words);
	chart.head = (struct gt_chart_head){words.title, words.note, false};
	canvas = begin(out, gt_diff_height(&chart), &chart.head, &status);
	if (canvas) {
		gt_diff_draw(canvas, &chart);
		status = finish(canvas);
	}
	for (size_t i = 0; i < chart.row_count; i++)
		free(chart.rows[i].name);
	free(chart.rows);
	free(words.text);
	return status;
}
