/* SPDX-License-Identifier: MIT */
/*
 * gputrace dump --defs: header and definitions, an object per line. Text is the same objects,
 * written as "type key value key value ...". Bytes that are no UTF-8 are shown as "?".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "cmd/dump.h"

static json_t *text_of(const struct gt_bytes *bytes)
{
	json_t *text = json_stringn(bytes->text, bytes->length);
	char *copy;

	if (text)
		return text;
	copy = malloc(bytes->length + 1);
	if (!copy)
		return json_null();
	for (uint32_t i = 0; i < bytes->length; i++)
		copy[i] = bytes->text[i] & 0x80 ? '?' : bytes->text[i];
	text = json_stringn(copy, bytes->length);
	free(copy);
	return text;
}

static json_t *text_of_field(const char *field)
{
	const struct gt_bytes bytes = {field, (uint32_t)strlen(field)};

	return text_of(&bytes);
}

static json_t *hex_of(const uint8_t *bytes, size_t length)
{
	char text[2 * 32 + 1] = "";

	for (size_t i = 0; i < length && i < 32; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	return json_string(text);
}

/* JSON integers are signed here; addresses are not. */
static json_t *unsigned_of(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* Control characters of a stranger's file do not reach the terminal. */
static void print_value(const json_t *value)
{
	const char *text = json_string_value(value);

	if (!text)
		json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_COMPACT);
	for (size_t i = 0; text && i < json_string_length(value); i++)
		putchar((unsigned char)text[i] < 32 || text[i] == 127 ? ' ' : text[i]);
}

/* Prints and releases it. */
static void emit(json_t *object, bool json)
{
	const char *key;
	json_t *value;

	if (json) {
		json_dumpf(object, stdout, JSON_COMPACT);
	} else {
		json_object_foreach(object, key, value) {
			if (strcmp(key, "type"))
				printf("  %s ", key);
			print_value(value);
		}
	}
	putchar('\n');
	json_decref(object);
}

static void dump_header(const struct gt_trace *t, bool json)
{
	const struct gt_header *h = &t->header;
	json_t *lost = json_object();

	for (unsigned int i = 0; i < GT_LOST_REASONS; i++)
		json_object_set_new(lost, gt_lost_name(i), unsigned_of(h->lost[i]));
	emit(json_pack("{ss si sI sI sI si si sI sI sI sI si si so so so so}", "type", "header",
		       "version", h->version, "mono_us", h->mono_us, "real_us", h->real_us,
		       "ring_limit", h->ring_limit, "pid", h->pid, "ppid", h->ppid, "start_ticks",
		       h->start_ticks, "pid_ns", h->pid_ns, "exit_us", h->exit_us, "stop_us",
		       h->stop_us, "stop", h->stop, "depth", h->depth, "boot_id",
		       text_of_field(h->boot_id), "comm", text_of_field(h->comm), "host",
		       text_of_field(h->host), "lost", lost),
	     json);
}

static void dump_modules(const struct gt_trace *t, bool json)
{
	for (size_t i = 1; i < t->module_count; i++) {
		const struct gt_module *m = &t->modules[i];

		emit(json_pack("{ss sI sI sI sI so sI so}", "type", "module", "id", (json_int_t)i,
			       "start", m->start, "end", m->end, "bias", m->bias, "build_id",
			       hex_of(m->build_id, m->build_id_length), "unloaded_us",
			       m->unloaded_us, "path", text_of(&m->path)),
		     json);
	}
}

static void dump_stacks(const struct gt_trace *t, bool json)
{
	for (size_t i = 1; i < t->node_count; i++)
		emit(json_pack("{ss sI sI sI sI}", "type", "node", "id", (json_int_t)i, "parent",
			       (json_int_t)t->nodes[i].parent, "pc", t->nodes[i].pc, "module",
			       (json_int_t)t->nodes[i].module),
		     json);
	for (size_t i = 1; i < t->pycode_count; i++)
		emit(json_pack("{ss sI sI sI sI si}", "type", "pycode", "id", (json_int_t)i, "file",
			       (json_int_t)t->pycodes[i].file, "name",
			       (json_int_t)t->pycodes[i].name, "qualname",
			       (json_int_t)t->pycodes[i].qualname, "first_line",
			       t->pycodes[i].first_line),
		     json);
	for (size_t i = 1; i < t->pynode_count; i++)
		emit(json_pack("{ss sI sI sI si so}", "type", "pynode", "id", (json_int_t)i,
			       "parent", (json_int_t)t->pynodes[i].parent, "code",
			       (json_int_t)t->pynodes[i].code, "line", t->pynodes[i].line, "calls",
			       t->pynodes[i].calls ? json_integer(t->pynodes[i].calls - 1)
						   : json_null()),
		     json);
}

static void dump_sites(const struct gt_trace *t, bool json)
{
	for (size_t l = 0; l < t->lane_count; l++) {
		for (size_t i = 1; i < t->lanes[l].site_count; i++) {
			const struct gt_site_def *s = &t->lanes[l].site_defs[i];

			emit(json_pack("{ss sI sI sI sI ss si ss}", "type", "site", "lane",
				       (json_int_t)t->lanes[l].lane, "id", (json_int_t)i, "native",
				       (json_int_t)s->native, "python", (json_int_t)s->python,
				       "space", gt_space_name(s->space), "mask", s->mask, "api",
				       gt_api_name(s->api)),
			     json);
		}
	}
}

static void dump_process(const struct gt_trace *t, bool json)
{
	for (size_t i = 0; i < t->info_count; i++)
		emit(json_pack("{ss so so}", "type", "info", "key", text_of(&t->infos[i].key),
			       "value", text_of(&t->infos[i].value)),
		     json);
	for (size_t i = 1; i < t->string_count; i++)
		emit(json_pack("{ss sI so}", "type", "string", "id", (json_int_t)i, "text",
			       text_of(&t->strings[i])),
		     json);
	for (size_t i = 1; i < t->thread_count; i++)
		emit(json_pack("{ss sI sI sI so}", "type", "thread", "id", (json_int_t)i, "tid",
			       (json_int_t)t->threads[i].tid, "us", t->threads[i].us, "name",
			       text_of(&t->threads[i].name)),
		     json);
	for (size_t i = 1; i < t->stream_count; i++)
		emit(json_pack("{ss sI si sI}", "type", "stream", "id", (json_int_t)i, "device",
			       t->streams[i].device, "handle", t->streams[i].handle),
		     json);
}

static void dump_devices(const struct gt_trace *t, bool json)
{
	for (size_t i = 0; i < t->device_count; i++) {
		const struct gt_device_def *d = &t->devices[i];

		emit(json_pack("{ss si sI so so}", "type", "device", "ordinal", d->ordinal, "total",
			       d->total, "uuid", hex_of(d->uuid, sizeof(d->uuid)), "name",
			       text_of(&d->name)),
		     json);
	}
	for (size_t i = 0; i < t->context_count; i++) {
		const struct gt_context_def *c = &t->contexts[i];

		emit(json_pack("{ss sI sI sI si sI sI sI sI}", "type", "context", "handle",
			       c->handle, "us", c->us, "bytes", c->bytes, "device", c->device,
			       "flags", (json_int_t)c->flags, "native", (json_int_t)c->native,
			       "python", (json_int_t)c->python, "thread", (json_int_t)c->thread),
		     json);
	}
}

static json_t *holders_of(const struct gt_report *r)
{
	json_t *holders = json_array();

	for (uint32_t i = 0; i < r->holders; i++)
		json_array_append_new(holders,
				      json_pack("{sI sI sI}", "site", (json_int_t)r->holder[i].site,
						"bytes", r->holder[i].bytes, "count",
						r->holder[i].count));
	return holders;
}

static json_t *others_of(const struct gt_report *r)
{
	json_t *others = json_array();
	char name[sizeof(r->other[0].name) + 1] = "";

	for (uint32_t i = 0; i < r->others; i++) {
		memcpy(name, r->other[i].name, sizeof(r->other[i].name));
		json_array_append_new(
			others, json_pack("{sI sI so}", "pid", (json_int_t)r->other[i].pid, "bytes",
					  r->other[i].bytes, "name", text_of_field(name)));
	}
	return others;
}

/* What gputrace pack added. */
static void dump_names(const struct gt_trace *t, bool json)
{
	for (size_t i = 0; i < t->name_count; i++) {
		const struct gt_name_def *n = &t->names[i];

		emit(json_pack("{ss sI sI sI sI si sb}", "type", "name", "pc", n->pc, "module",
			       (json_int_t)n->module, "function", (json_int_t)n->function, "file",
			       (json_int_t)n->file, "line", n->line, "inlined", n->inlined),
		     json);
	}
	for (size_t i = 0; i < t->source_count; i++)
		emit(json_pack("{ss sI si sI}", "type", "source", "file",
			       (json_int_t)t->sources[i].file, "line", t->sources[i].line, "text",
			       (json_int_t)t->sources[i].text),
		     json);
}

/* What gputrace merge added; what it added to events and blocks stands with these. */
static void dump_pools(const struct gt_trace *t, bool json)
{
	for (size_t i = 1; i < t->pool_count; i++)
		emit(json_pack("{ss sI sI sI}", "type", "pool", "id", (json_int_t)i, "first",
			       t->pools[i].first, "second", t->pools[i].second),
		     json);
}

static void dump_reports(const struct gt_trace *t, bool json)
{
	for (size_t i = 0; i < t->report_count; i++) {
		const struct gt_report *r = &t->reports[i];

		emit(json_pack("{ss sI sI sI ss sI sI sI sI sI sI sI sI sI sI sI si sI so so}",
			       "type", "report", "number", (json_int_t)r->state, "outcome",
			       (json_int_t)r->outcome, "lane", (json_int_t)r->lane, "space",
			       gt_space_name(r->space), "seq", r->seq, "us", r->us, "requested",
			       r->requested, "torch_requested", r->torch_requested, "device_free",
			       r->device_free, "device_total", r->device_total, "torch_allocated",
			       r->torch_allocated, "torch_reserved", r->torch_reserved,
			       "outcome_us", r->outcome_us, "thread", (json_int_t)r->thread, "site",
			       (json_int_t)r->site, "result", r->result, "tries",
			       (json_int_t)r->tries, "holders", holders_of(r), "others",
			       others_of(r)),
		     json);
	}
}

void gt_dump_defs(const struct gt_trace *trace, bool json)
{
	dump_header(trace, json);
	dump_process(trace, json);
	dump_devices(trace, json);
	dump_modules(trace, json);
	dump_stacks(trace, json);
	dump_sites(trace, json);
	dump_names(trace, json);
	dump_pools(trace, json);
	dump_reports(trace, json);
}
