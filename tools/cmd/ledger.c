/* SPDX-License-Identifier: MIT */
/*
 * gputrace ledger: rows that add up to the device, for whoever begins with "nvidia-smi says". Each
 * physical device once, with all processes of the traces given that were on it at the moment.
 */
#include "cmd/ledger.h"

#include <stdlib.h>
#include <string.h>
#include "cmd/refusals.h"
#include "cmd/part.h"
#include "model/xalloc.h"
#include "out/json.h"
#include "out/table.h"

struct view { /* one physical device */
	struct gt_place lead;
	struct gt_joint joint;
	size_t contexts, idle;
	int64_t idle_bytes;
	const struct gt_ledger_row *first_idle;
};

struct views {
	struct view *views;
	size_t count;
};

/* ---- which processes share a device ---------------------------------------------------------- */

static const struct gt_device_def *device_of(const struct gt_place *place)
{
	const struct gt_trace *trace = place->input->trace;

	for (size_t i = 0; i < trace->device_count; i++)
		if (trace->devices[i].ordinal == place->lane->device)
			return &trace->devices[i];
	return NULL;
}

/* One boot of one machine, and the same card: by its UUID, else by the program's number of it. */
static bool same_device(const struct gt_place *a, const struct gt_place *b)
{
	const struct gt_device_def *x = device_of(a), *y = device_of(b);

	if (memcmp(a->input->trace->header.boot_id, b->input->trace->header.boot_id,
		   sizeof(a->input->trace->header.boot_id)))
		return false;
	if (!x || !y)
		return a->lane->device == b->lane->device;
	return memcmp(x->uuid, y->uuid, sizeof(x->uuid)) == 0;
}

/* All devices of the session, whatever --device says: a card has one ledger. */
static void find_places(struct gt_session *session, const struct gt_place *lead,
			struct gt_joint *joint)
{
	struct gt_args all = {.device = GT_ANY_DEVICE};
	struct gt_places places = gt_places_of(&all, session);

	for (size_t i = 0; i < places.count; i++)
		if (places.places[i].lane->device >= 0 && same_device(&places.places[i], lead))
			*GT_PUSH(joint->places, joint->count) = places.places[i];
	free(places.places);
}

int gt_joint_of(struct gt_session *session, const struct gt_place *lead, uint64_t seq, uint64_t us,
		const struct gt_state *state, struct gt_joint *ret)
{
	struct gt_ledger_process *processes;
	struct gt_joint joint = {0};
	struct gt_error err = {0};
	size_t at = 0;
	int status;

	find_places(session, lead, &joint);
	processes = gt_xcalloc(joint.count, sizeof(*processes));
	for (size_t i = 0; i < joint.count; i++) {
		const struct gt_place *place = &joint.places[i];

		processes[i] = (struct gt_ledger_process){
			place->input->trace, gt_input_symbols(place->input), place->lane_index,
			place->device_total, NULL};
		at = place->lane == lead->lane ? i : at;
	}
	processes[at].state = state;
	status = gt_ledger_make(processes, joint.count, at, seq, us, &joint.ledger, &err);
	free(processes);
	if (status) {
		free(joint.places);
		return gt_message_error(&err);
	}
	*ret = joint;
	return 0;
}

void gt_joint_clear(struct gt_joint *joint)
{
	gt_ledger_clear(&joint->ledger);
	free(joint->places);
	*joint = (struct gt_joint){0};
}

char *gt_joint_where(const struct gt_joint *joint, const struct gt_ledger_row *row)
{
	if (row->process == GT_LEDGER_NOBODY || (!row->site.native && !row->site.python))
		return gt_xstrdup("");
	return gt_where_text(joint->places[row->process].input, &row->site);
}

/* ---- when ------------------------------------------------------------------------------------ */

/* Whose moment it is: of the failure its process, else the one that held most. */
static bool leads(const struct gt_place *place, const struct gt_place *before,
		  const struct gt_input *failed)
{
	if (place->input == failed || before->input == failed)
		return place->input == failed;
	return place->lane->ctr.peak[GT_TOTAL_RESERVED] > before->lane->ctr.peak[GT_TOTAL_RESERVED];
}

static void add_place(struct views *views, const struct gt_place *place,
		      const struct gt_input *failed)
{
	struct view *view = NULL;

	if (place->lane->device < 0)
		return;
	for (size_t i = 0; !view && i < views->count; i++)
		if (same_device(&views->views[i].lead, place))
			view = &views->views[i];
	if (!view) {
		view = GT_PUSH(views->views, views->count);
		view->lead = *place;
	}
	if (leads(place, &view->lead, failed))
		view->lead = *place;
}

static void count_contexts(struct view *view)
{
	for (size_t i = 0; i < view->joint.ledger.row_count; i++) {
		const struct gt_ledger_row *row = &view->joint.ledger.rows[i];

		if (row->kind != GT_LEDGER_CONTEXT)
			continue;
		view->contexts++;
		if (!row->idle)
			continue;
		view->idle++;
		view->idle_bytes += row->bytes;
		if (!view->first_idle)
			view->first_idle = row;
	}
}

/* A device whose last event is long past is looked at when the process ends all the same. */
static uint64_t time_of(const struct gt_trace *trace, struct gt_when when,
			const struct gt_state *state)
{
	if (when.kind != GT_WHEN_END || state->teardown)
		return state->us;
	return trace->header.exit_us ? trace->header.exit_us - 1 : trace->last_us;
}

static int open_view(const struct gt_args *args, struct gt_session *session, struct view *view)
{
	const struct gt_place *lead = &view->lead;
	struct gt_when when;
	struct gt_state state;
	bool at_least;
	int status = gt_part_when(args, lead, &when, &at_least);

	if (status)
		return status;
	status = gt_input_state(lead->input, lead->lane_index, GT_TOTAL_IN_USE, when, &state);
	if (status)
		return status;
	status = gt_joint_of(session, lead, state.seq, time_of(lead->input->trace, when, &state),
			     &state, &view->joint);
	gt_state_clear(&state);
	if (!status)
		count_contexts(view);
	return status;
}

static int by_idle(const void *a, const void *b)
{
	const struct view *x = a, *y = b;

	if (!x->idle != !y->idle)
		return x->idle ? -1 : 1;
	return x->lead.lane->device - y->lead.lane->device;
}

static void clear(struct views *views)
{
	for (size_t i = 0; i < views->count; i++) {
		gt_joint_clear(&views->views[i].joint);
	}
	free(views->views);
}

static int open_views(const struct gt_args *args, const struct gt_places *places,
		      struct views *views)
{
	struct gt_input *failed =
		args->at.kind == GT_WHEN_OOM ? gt_first_failed(args, places->session) : NULL;
	int status = 0;

	for (size_t i = 0; i < places->count; i++)
		add_place(views, &places->places[i], failed);
	for (size_t i = 0; !status && i < views->count; i++)
		status = open_view(args, places->session, &views->views[i]);
	if (!status && views->count)
		qsort(views->views, views->count, sizeof(*views->views), by_idle);
	return status;
}

/* ---- words ----------------------------------------------------------------------------------- */

static enum gt_unit unit_of(const struct view *view)
{
	return gt_unit_for(view->joint.ledger.total ? view->joint.ledger.total : 1u << 30);
}

static long long in_unit(const struct view *view, int64_t bytes)
{
	return gt_in_unit(bytes, unit_of(view));
}

static const char *bound(const struct gt_ledger_row *row)
{
	return row->measured == GT_MEASURED_AT_MOST ? "at most " : "";
}

/* "torch 5360 + 1474 cached, context at most 412": what one process has, for a sentence. */
static void put_parts(FILE *text, const struct view *view, size_t process)
{
	static const char *const words[] = {
		[GT_LEDGER_TORCH] = "torch",	 [GT_LEDGER_CACHED] = "cached",
		[GT_LEDGER_LIBRARY] = "others",	 [GT_LEDGER_POOLS] = "pools",
		[GT_LEDGER_CONTEXT] = "context", [GT_LEDGER_MODULES] = "modules",
	};
	const char *between = "";

	for (int kind = GT_LEDGER_TORCH; kind <= GT_LEDGER_MODULES; kind++) {
		const char *limit = "";
		int64_t sum = 0;

		for (size_t i = 0; i < view->joint.ledger.row_count; i++) {
			const struct gt_ledger_row *row = &view->joint.ledger.rows[i];

			if (row->process != process || (int)row->kind != kind)
				continue;
			sum += row->bytes;
			limit = *bound(row) ? bound(row) : limit;
		}
		if (!sum)
			continue;
		fprintf(text, "%s%s %s%lld", between, words[kind], limit, in_unit(view, sum));
		between = ", ";
	}
}

static bool is_there(const struct view *view, size_t process)
{
	for (size_t i = 0; i < view->joint.ledger.row_count; i++)
		if (view->joint.ledger.rows[i].process == process)
			return true;
	return false;
}

static bool is_idle(const struct view *view, size_t process)
{
	for (size_t i = 0; i < view->joint.ledger.row_count; i++)
		if (view->joint.ledger.rows[i].process == process &&
		    view->joint.ledger.rows[i].idle)
			return true;
	return false;
}

#define NAMED 3 /* processes that a sentence names */

/* What nvidia-smi shows is the sum of a process's rows, and no part of it. */
static char *nvidia_smi_text(const struct view *view)
{
	char device[GT_DEVICE_TEXT], *result = NULL;
	size_t size, there = 0;
	FILE *text = gt_xchecked(open_memstream(&result, &size));

	fprintf(text, "%s: nvidia-smi shows ", gt_device_text(view->lead.lane->device, device));
	for (size_t i = 0; i < view->joint.count; i++) {
		if (!is_there(view, i) || ++there > NAMED)
			continue;
		fprintf(text, "%s%lld%s%s for pid %u%s", there > 1 ? ", " : "",
			in_unit(view, gt_ledger_of(&view->joint.ledger, i)), there > 1 ? "" : " ",
			there > 1 ? "" : gt_unit_name(unit_of(view)),
			view->joint.places[i].input->trace->header.pid,
			is_idle(view, i) ? " (idle)" : "");
	}
	if (there > NAMED)
		fprintf(text, ", %zu more", there - NAMED);
	for (size_t i = 0; there == 1 && i < view->joint.count; i++)
		if (is_there(view, i)) {
			fputs(": ", text);
			put_parts(text, view, i);
		}
	fputc('.', text);
	fclose(text);
	return result;
}

/* What torch holds is less than what its process does: contexts and libraries are not in it. */
static char *snapshot_text(const struct view *view)
{
	char device[GT_DEVICE_TEXT], *result = NULL;
	size_t size;
	FILE *text = gt_xchecked(open_memstream(&result, &size));

	fprintf(text, "%s: ", gt_device_text(view->lead.lane->device, device));
	for (size_t i = 0; i < view->joint.count; i++)
		if (is_there(view, i))
			put_parts(text, view, i);
	fprintf(text, " %s; contexts, other libraries and processes are not in a torch snapshot.",
		gt_unit_name(unit_of(view)));
	fclose(text);
	return result;
}

/* The pids of idle contexts, as many as a line takes. */
static char *idle_pids(const struct view *view)
{
	char *result = NULL;
	size_t size, named = 0;
	FILE *text = gt_xchecked(open_memstream(&result, &size));

	for (size_t i = 0; i < view->joint.ledger.row_count; i++) {
		const struct gt_ledger_row *row = &view->joint.ledger.rows[i];

		if (row->idle && row->kind == GT_LEDGER_CONTEXT && ++named <= NAMED)
			fprintf(text, "%s%u", named > 1 ? ", " : "", row->pid);
	}
	fprintf(text, "%s", named > NAMED ? "..." : "");
	fclose(text);
	return result;
}

static void print_idle(struct gt_out *out, const struct view *view)
{
	char *pids = idle_pids(view), *where = gt_joint_where(&view->joint, view->first_idle);
	char device[GT_DEVICE_TEXT];
	char *takes = view->idle_bytes ? gt_xasprintf(", %s%lld %s", bound(view->first_idle),
						      in_unit(view, view->idle_bytes),
						      gt_unit_name(unit_of(view)))
				       : gt_xstrdup("");
	char *fitting = gt_fitting(out, where, strlen(pids) + strlen(takes) + 48);

	gt_line(out, GT_BOLD, "%s: %zu of %zu context%s idle%s: pid %s, made at %s.",
		gt_device_text(view->lead.lane->device, device), view->idle, view->contexts,
		view->contexts > 1 ? (view->idle > 1 ? "s are" : "s is") : " is", takes, pids,
		*fitting ? fitting : "(no stack)");
	free(fitting);
	free(takes);
	free(where);
	free(pids);
}

static void print_answer(struct gt_out *out, const struct view *view)
{
	char *shown =
		view->lead.input->trace->snapshot ? snapshot_text(view) : nvidia_smi_text(view);

	if (view->idle)
		print_idle(out, view);
	gt_line(out, view->idle ? GT_PLAIN : GT_BOLD, "%s", shown);
	free(shown);
}

/* ---- the table ------------------------------------------------------------------------------- */

char *gt_ledger_row_text(const struct gt_ledger_row *row, const char *where)
{
	static const char *const words[] = {
		[GT_LEDGER_TORCH] = "torch, in use",
		[GT_LEDGER_CACHED] = "torch, cached",
		[GT_LEDGER_POOLS] = "driver's pools and graphs, cached",
		[GT_LEDGER_UNEXPLAINED] = "unexplained (may be negative)",
		[GT_LEDGER_FREE] = "free",
		[GT_LEDGER_REST] = "free and unexplained (no sample)",
	};
	const char *comma = *where ? ", " : "";
	bool first = !row->name[0];

	switch (row->kind) {
	case GT_LEDGER_LIBRARY:
		return gt_xasprintf("%u %s%s%s", row->pid, first ? "other allocations" : row->name,
				    comma, where);
	case GT_LEDGER_CONTEXT:
		return gt_xasprintf("%u context%s%s%s", row->pid, row->idle ? " (idle)" : "", comma,
				    where);
	case GT_LEDGER_MODULES:
		return gt_xasprintf("%u modules%s%s", row->pid, first ? "" : " of ", row->name);
	case GT_LEDGER_OTHER:
		return gt_xasprintf("other process %u%s%s", row->pid, first ? "" : " ", row->name);
	default:
		return row->pid ? gt_xasprintf("%u %s", row->pid, words[row->kind])
				: gt_xstrdup(words[row->kind]);
	}
}

const char *gt_ledger_row_level(const struct gt_ledger_row *row)
{
	if (row->kind == GT_LEDGER_TORCH || row->kind == GT_LEDGER_CACHED)
		return "torch";
	if (row->kind == GT_LEDGER_OTHER)
		return "NVML";
	return row->process == GT_LEDGER_NOBODY ? "" : "driver";
}

static void add_row(struct gt_table *table, const struct view *view,
		    const struct gt_ledger_row *row)
{
	bool own = row->process != GT_LEDGER_NOBODY;
	char *where = gt_joint_where(&view->joint, row);
	char *name = gt_ledger_row_text(row, where);

	gt_table_row(table,
		     !view->joint.ledger.total ? 0
		     : own		       ? 1
					       : 2,
		     0, row->kind == GT_LEDGER_CONTEXT && row->idle ? GT_ROW_ACT : 0);
	gt_table_text(table, name);
	gt_table_number(table, row->bytes);
	gt_table_text(table, gt_ledger_row_level(row));
	gt_table_text(table, gt_measured_name(row->measured));
	gt_table_text(table, gt_ledger_kind_name(row->kind));
	gt_table_number(table, view->lead.lane->device);
	gt_table_number(table, row->pid);
	free(name);
	free(where);
}

static void add_sum(struct gt_table *table, const char *name, unsigned int part_of,
		    unsigned int sum_of, int64_t bytes)
{
	gt_table_row(table, part_of, sum_of, GT_ROW_SCREEN);
	gt_table_text(table, name);
	gt_table_number(table, bytes);
}

static void print_table(struct gt_out *out, const struct view *view, size_t other_lines)
{
	char *title = gt_xasprintf("On the device at %.3f s", (double)view->joint.ledger.us / 1e6);
	const struct gt_field fields[] = {
		{"row", title, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"bytes", NULL, GT_FIELD_BYTES, GT_SHOW_ALWAYS},
		{"level", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"measured", NULL, GT_FIELD_TEXT, GT_SHOW_ALWAYS},
		{"kind", NULL, GT_FIELD_TEXT, GT_SHOW_DATA},
		{"device", NULL, GT_FIELD_COUNT, GT_SHOW_DATA},
		{"pid", NULL, GT_FIELD_COUNT, GT_SHOW_DATA},
	};
	struct gt_table *table = gt_table_new(fields, sizeof(fields) / sizeof(fields[0]));
	const struct gt_ledger *ledger = &view->joint.ledger;
	int64_t traced = 0;
	size_t i = 0;

	gt_table_unit(table, unit_of(view));
	for (; i < ledger->row_count && ledger->rows[i].process != GT_LEDGER_NOBODY; i++) {
		add_row(table, view, &ledger->rows[i]);
		traced += ledger->rows[i].bytes;
	}
	add_sum(table, "traced here", ledger->total ? 2 : 0, 1, traced);
	for (; i < ledger->row_count; i++)
		add_row(table, view, &ledger->rows[i]);
	if (ledger->total)
		add_sum(table, "device", 0, 2, (int64_t)ledger->total);
	gt_table_print(table, out, gt_screen_rows(out, other_lines));
	gt_table_free(table);
	free(title);
}

/* Of each process the sum, and the line that has most of it. */
static void print_host(struct gt_out *out, const struct view *view)
{
	const struct gt_ledger *ledger = &view->joint.ledger;
	size_t shown = 0;

	for (size_t i = 0; i < view->joint.count && (shown < NAMED || out->all); i++) {
		const struct gt_ledger_row *most = NULL;
		char size[GT_SIZE_TEXT], *where, *fitting;
		int64_t sum = 0;

		for (size_t h = 0; h < ledger->host_count; h++) {
			if (ledger->host[h].process != i)
				continue;
			most = most ? most : &ledger->host[h];
			sum += ledger->host[h].bytes;
		}
		if (!most)
			continue;
		shown++;
		where = gt_joint_where(&view->joint, most);
		fitting = gt_fitting(out, where, 66);
		gt_line(out, GT_PLAIN, "Pinned host memory, not on the device: pid %u %s (%s).",
			most->pid, gt_size_text((uint64_t)sum, size), fitting);
		free(fitting);
		free(where);
	}
}

/* Free memory is not followed, only asked: say when, if that was not now. */
static void print_sample(struct gt_out *out, const struct view *view)
{
	const struct gt_ledger *ledger = &view->joint.ledger;
	int64_t age = (int64_t)ledger->us - ledger->sample_us;

	if (ledger->sampled && age > 0)
		gt_line(out, GT_PLAIN,
			"Free memory was last asked %.3f s before; the traced calls since are "
			"counted off.",
			(double)age / 1e6);
	else if (!ledger->sampled && !view->lead.input->trace->snapshot)
		gt_line(out, GT_PLAIN,
			"The program never asked how much is free: free and "
			"unexplained are one row.");
}

static void print_view(struct gt_out *out, const struct view *view)
{
	if (out->format == GT_FORMAT_TEXT)
		print_answer(out, view);
	print_table(out, view, 10);
	if (out->format != GT_FORMAT_TEXT)
		return;
	print_host(out, view);
	print_sample(out, view);
	for (size_t i = 0; i < view->joint.count; i++)
		gt_print_loss(out, view->joint.places[i].input->trace);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_row(const struct view *view, const struct gt_ledger_row *row)
{
	char *where = gt_joint_where(&view->joint, row);
	json_t *json = json_pack(
		"{s:s, s:I, s:o, s:o, s:s, s:b, s:o}", "kind", gt_ledger_kind_name(row->kind),
		"bytes", (json_int_t)row->bytes, "pid", gt_json_number(row->pid, row->pid), "name",
		gt_json_name(row->name), "measured", gt_measured_name(row->measured), "idle",
		row->idle, "key", gt_json_name(where));

	free(where);
	return json;
}

static json_t *json_host(const struct view *view)
{
	json_t *host = json_array();

	for (size_t i = 0; i < view->joint.ledger.host_count; i++) {
		const struct gt_ledger_row *row = &view->joint.ledger.host[i];
		char *where = gt_joint_where(&view->joint, row);

		json_array_append_new(
			host, json_pack("{s:I, s:I, s:o}", "pid", (json_int_t)row->pid, "bytes",
					(json_int_t)row->bytes, "key", gt_json_name(where)));
		free(where);
	}
	return host;
}

static json_t *json_shown(const struct view *view)
{
	json_t *shown = json_array();

	for (size_t i = 0; i < view->joint.count; i++)
		if (is_there(view, i) && !view->joint.places[i].input->trace->snapshot)
			json_array_append_new(
				shown,
				json_pack(
					"{s:I, s:I}", "pid",
					(json_int_t)view->joint.places[i].input->trace->header.pid,
					"bytes", (json_int_t)gt_ledger_of(&view->joint.ledger, i)));
	return shown;
}

static json_t *json_view(const struct view *view)
{
	const struct gt_ledger *ledger = &view->joint.ledger;
	json_t *rows = json_array();

	for (size_t i = 0; i < ledger->row_count; i++)
		json_array_append_new(rows, json_row(view, &ledger->rows[i]));
	return json_pack("{s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "device",
			 gt_json_ordinal(view->lead.lane->device), "device_total",
			 gt_json_number(ledger->total, ledger->total), "seconds",
			 gt_json_seconds(ledger->us, true), "contexts", (json_int_t)view->contexts,
			 "idle_contexts", (json_int_t)view->idle, "rows", rows, "nvidia_smi",
			 json_shown(view), "host", json_host(view));
}

/* The first device's answer stands on top too: most runs have one. */
static void print_json(struct gt_out *out, const struct views *views)
{
	json_t *answer = gt_json_answer("ledger"), *devices = json_array(), *first;

	for (size_t i = 0; i < views->count; i++)
		json_array_append_new(devices, json_view(&views->views[i]));
	first = json_array_get(devices, 0);
	json_object_set(answer, "device_total",
			first ? json_object_get(first, "device_total") : json_null());
	json_object_set(answer, "rows", first ? json_object_get(first, "rows") : json_array());
	json_object_set_new(answer, "devices", devices);
	gt_json_print(out, answer);
}

static int print(struct gt_out *out, const struct gt_args *args, const struct gt_places *places)
{
	struct views views = {0};
	int status = open_views(args, places, &views);
	bool one = out->terminal && !args->all && out->format == GT_FORMAT_TEXT;

	if (!status && out->format == GT_FORMAT_JSON)
		print_json(out, &views);
	else if (!status && !views.count)
		gt_line(out, GT_BOLD, "No context on any GPU.");
	else if (!status)
		for (size_t i = 0; i < (one ? 1 : views.count); i++)
			print_view(out, &views.views[i]);
	if (!status && one && views.count)
		gt_next(out, "next: gputrace at end FILE     gputrace segments FILE");
	clear(&views);
	return status;
}

int gt_cmd_ledger(struct gt_args *args)
{
	if (!args->at_set)
		args->at.kind = GT_WHEN_END;
	return gt_run_places(args, print);
}
