/* SPDX-License-Identifier: MIT */
/*
 * pprof: a protobuf message, gzipped; the numbers of the fields are those of profile.proto. Parts of a
 * message may come in any order: a location, a function or a text is written when first met, ahead of
 * the sample that names it, so that nothing but their numbers is kept.
 *
 * alloc_* are totals of the run. inuse_objects is left out where single blocks are not known (the
 * history of that moment is gone): 0 would be a number. Called from the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "export/numbers.h"
#include "export/samples.h"
#include "export/wire.h"
#include "out/out.h"

/* Numbers of fields. */
enum field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_DEFAULT_TYPE = 14,
	TYPE_TYPE = 1,
	TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_TEXT = 2,
	LABEL_NUMBER = 3,
	MAPPING_ID = 1,
	MAPPING_FILE = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_INLINES = 10,
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	LINE_LINE = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_FILE = 4,
};

struct profile {
	gzFile out;
	bool bad;
	bool counted; /* inuse_objects is known */
	struct gt_numbers texts, mappings, functions, locations;
};

/* ---- wire ------------------------------------------------------------------------------------ */

/* A field of the profile itself goes out at once. */
static void emit(struct profile *profile, struct gt_wire *field)
{
	if (field->length && gzwrite(profile->out, field->data, (unsigned int)field->length) <= 0)
		profile->bad = true;
	gt_wire_clear(field);
}

static void emit_message(struct profile *profile, unsigned int field, struct gt_wire *inner)
{
	struct gt_wire outer = {0};

	gt_wire_message(&outer, field, inner);
	emit(profile, &outer);
}

/* ---- what samples refer to: all but texts are numbered from 1 -------------------------------- */

static uint64_t text_number(struct profile *profile, const char *text)
{
	struct gt_wire field = {0};
	bool new;
	uint64_t number = gt_number_of(&profile->texts, text, strlen(text), &new);

	if (new) {
		gt_wire_data(&field, PROFILE_STRING, text, strlen(text));
		emit(profile, &field);
	}
	return number;
}

static uint64_t mapping_number(struct profile *profile, const char *module)
{
	struct gt_wire mapping = {0};
	uint64_t file = text_number(profile, module), number;
	bool new;

	if (!*module)
		return 0;
	number = 1 + gt_number_of(&profile->mappings, &file, sizeof(file), &new);
	if (!new)
		return number;
	gt_wire_number(&mapping, MAPPING_ID, number);
	gt_wire_number(&mapping, MAPPING_FILE, file);
	/* Names are in the profile: nobody needs to look for them again. */
	for (unsigned int field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINES; field++)
		gt_wire_number(&mapping, field, 1);
	emit_message(profile, PROFILE_MAPPING, &mapping);
	return number;
}

static uint64_t function_number(struct profile *profile, const struct gt_frame *frame)
{
	struct gt_wire function = {0};
	uint64_t key[2] = {text_number(profile, frame->function),
			   text_number(profile, frame->file)};
	bool new;
	uint64_t number = 1 + gt_number_of(&profile->functions, key, sizeof(key), &new);

	if (!new)
		return number;
	gt_wire_number(&function, FUNCTION_ID, number);
	gt_wire_number(&function, FUNCTION_NAME, key[0]);
	gt_wire_number(&function, FUNCTION_FILE, key[1]);
	emit_message(profile, PROFILE_FUNCTION, &function);
	return number;
}

static uint64_t location_number(struct profile *profile, const struct gt_frame *frame)
{
	struct gt_wire location = {0}, line = {0};
	uint64_t key[3] = {function_number(profile, frame), mapping_number(profile, frame->module),
			   (uint64_t)frame->line};
	bool new;
	uint64_t number = 1 + gt_number_of(&profile->locations, key, sizeof(key), &new);

	if (!new)
		return number;
	gt_wire_number(&location, LOCATION_ID, number);
	if (key[1])
		gt_wire_number(&location, LOCATION_MAPPING, key[1]);
	gt_wire_number(&line, LINE_FUNCTION, key[0]);
	gt_wire_number(&line, LINE_LINE, key[2]);
	gt_wire_message(&location, LOCATION_LINE, &line);
	emit_message(profile, PROFILE_LOCATION, &location);
	return number;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void put_stack(struct profile *profile, struct gt_wire *sample, struct gt_stack stack)
{
	static const struct gt_frame none = {"[no stack]", "", "", 0, GT_FRAME_MARKER, false};
	struct gt_wire ids = {0};

	for (size_t i = 0; i < stack.count; i++)
		gt_wire_varint(&ids, location_number(profile, &stack.frames[i]));
	if (!stack.count)
		gt_wire_varint(&ids, location_number(profile, &none));
	gt_wire_message(sample, SAMPLE_LOCATION, &ids);
}

static void put_label(struct profile *profile, struct gt_wire *sample, const char *key,
		      const char *text)
{
	struct gt_wire label = {0};

	gt_wire_number(&label, LABEL_KEY, text_number(profile, key));
	gt_wire_number(&label, LABEL_TEXT, text_number(profile, text));
	gt_wire_message(sample, SAMPLE_LABEL, &label);
}

static void put_pid(struct profile *profile, struct gt_wire *sample, uint32_t pid)
{
	struct gt_wire label = {0};

	gt_wire_number(&label, LABEL_KEY, text_number(profile, "pid"));
	gt_wire_number(&label, LABEL_NUMBER, pid);
	gt_wire_message(sample, SAMPLE_LABEL, &label);
}

static void emit_sample(struct profile *profile, const struct gt_export_place *place,
			const struct gt_sample *from)
{
	struct gt_wire sample = {0}, values = {0};
	char device[24];

	put_stack(profile, &sample, gt_symbols_stack(place->symbols, from->native, from->python));
	gt_wire_varint(&values, from->ever_count);
	gt_wire_varint(&values, from->ever);
	if (profile->counted)
		gt_wire_varint(&values, from->count);
	gt_wire_varint(&values, from->bytes);
	gt_wire_message(&sample, SAMPLE_VALUE, &values);
	if (from->category)
		put_label(profile, &sample, "category", gt_category_name(from->category));
	put_label(profile, &sample, "level", gt_space_name(from->space));
	put_label(profile, &sample, "owner", gt_symbols_owner(place->symbols, from->native));
	/* As text: readers take a number of 0 for no label. */
	snprintf(device, sizeof(device), "GPU %d", place->lane->device);
	put_label(profile, &sample, "device", device);
	put_pid(profile, &sample, place->trace->header.pid);
	emit_message(profile, PROFILE_SAMPLE, &sample);
}

static void emit_type(struct profile *profile, const char *type, const char *unit)
{
	struct gt_wire message = {0};

	gt_wire_number(&message, TYPE_TYPE, text_number(profile, type));
	gt_wire_number(&message, TYPE_UNIT, text_number(profile, unit));
	emit_message(profile, PROFILE_SAMPLE_TYPE, &message);
}

/* The first mapping gives the profile its name: the program's, not that of some library. */
static void emit_name(struct profile *profile, const char *comm)
{
	char *safe = gt_escape(comm);

	mapping_number(profile, safe);
	free(safe);
}

static void emit_head(struct profile *profile, const struct gt_export *export)
{
	struct gt_wire fields = {0};

	profile->counted = true;
	for (size_t i = 0; i < export->count; i++)
		profile->counted &= export->places[i].state.blocks_known;
	text_number(profile, ""); /* number 0, by definition */
	emit_type(profile, "alloc_objects", "count");
	emit_type(profile, "alloc_space", "bytes");
	if (profile->counted)
		emit_type(profile, "inuse_objects", "count");
	emit_type(profile, "inuse_space", "bytes");
	if (export->count)
		emit_name(profile, export->places[0].trace->header.comm);
	gt_wire_number(&fields, PROFILE_DEFAULT_TYPE, text_number(profile, "inuse_space"));
	if (export->count) {
		const struct gt_export_place *place = export->places;

		gt_wire_number(&fields, PROFILE_TIME,
			       (place->trace->header.real_us + place->state.us) * 1000);
		gt_wire_number(&fields, PROFILE_DURATION, place->trace->last_us * 1000);
	}
	emit(profile, &fields);
}

static int open_output(struct profile *profile, const struct gt_export *export,
		       struct gt_error *err)
{
	int fd = fflush(export->file) ? -1 : dup(fileno(export->file));

	profile->out = fd < 0 ? NULL : gzdopen(fd, "wb");
	if (profile->out)
		return 0;
	if (fd >= 0)
		close(fd);
	err->status = 3;
	snprintf(err->text, sizeof(err->text), "pprof: %s", strerror(errno));
	return -1;
}

int gt_export_pprof(const struct gt_export *export, struct gt_error *err)
{
	struct profile profile = {0};

	if (open_output(&profile, export, err))
		return -1;
	emit_head(&profile, export);
	for (size_t p = 0; p < export->count; p++) {
		const struct gt_export_place *place = &export->places[p];
		struct gt_samples samples = gt_samples_of(place, export->total, true);

		for (size_t i = 0; i < samples.count; i++)
			emit_sample(&profile, place, &samples.samples[i]);
		gt_samples_clear(&samples);
	}
	gt_numbers_clear(&profile.texts);
	gt_numbers_clear(&profile.mappings);
	gt_numbers_clear(&profile.functions);
	gt_numbers_clear(&profile.locations);
	if (gzclose(profile.out) == Z_OK && !profile.bad)
		return 0;
	err->status = 3;
	snprintf(err->text, sizeof(err->text), "pprof: not everything was written: %s",
		 strerror(errno));
	return -1;
}
