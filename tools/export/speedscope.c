/* SPDX-License-Identifier: MIT */
/*
 * speedscope: JSON with a profile for what each device held and one for what was allocated on it in
 * all. The list of frames stands behind the profiles, when all of them are known. Called from the
 * table.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "export/numbers.h"
#include "export/samples.h"
#include "model/xalloc.h"
#include "out/json.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct shared {
	struct gt_numbers numbers;
	const struct gt_frame **frames; /* by number */
	size_t count;
};

static const struct gt_frame no_stack = {"[no stack]", "", "", 0, GT_FRAME_MARKER, false};

static uint64_t weight(const struct gt_sample *sample, bool ever)
{
	return ever ? sample->ever : sample->bytes;
}

static void put_index(FILE *file, struct shared *shared, const struct gt_frame *frame, bool first)
{
	bool new;
	uint64_t number = gt_number_frame(&shared->numbers, frame, &new);

	if (new)
		*GT_PUSH(shared->frames, shared->count) = frame;
	fprintf(file, first ? "%" PRIu64 : ",%" PRIu64, number);
}

static void put_stack(FILE *file, struct shared *shared, struct gt_stack stack)
{
	putc('[', file);
	for (size_t i = stack.count; i-- > 0;)
		put_index(file, shared, &stack.frames[i], i + 1 == stack.count);
	if (!stack.count)
		put_index(file, shared, &no_stack, true);
	putc(']', file);
}

static void put_name(FILE *file, const struct gt_export_place *place, enum gt_total total,
		     bool ever)
{
	static const char *const now[] = {
		[GT_TOTAL_RESERVED] = "held from the driver",
		[GT_TOTAL_TORCH] = "in use by torch",
		[GT_TOTAL_IN_USE] = "in use",
	};
	char *name = gt_xasprintf("%s, GPU %d of pid %u",
				  ever ? "allocated in the whole run" : now[total],
				  place->lane->device, place->trace->header.pid);

	gt_json_put(file, name);
	free(name);
}

static void put_profile(const struct gt_export *export, const struct gt_export_place *place,
			const struct gt_samples *samples, bool ever, struct shared *shared)
{
	FILE *file = export->file;
	const char *between = "";
	uint64_t sum = 0;

	fputs("{\"type\":\"sampled\",\"name\":", file);
	put_name(file, place, export->total, ever);
	fputs(",\"unit\":\"bytes\",\"samples\":[", file);
	for (size_t i = 0; i < samples->count; i++) {
		const struct gt_sample *sample = &samples->samples[i];

		if (!weight(sample, ever))
			continue;
		fputs(between, file);
		put_stack(file, shared,
			  gt_symbols_stack(place->symbols, sample->native, sample->python));
		sum += weight(sample, ever);
		between = ",\n";
	}
	fputs("],\"weights\":[", file);
	between = "";
	for (size_t i = 0; i < samples->count; i++) {
		if (!weight(&samples->samples[i], ever))
			continue;
		fprintf(file, "%s%" PRIu64, between, weight(&samples->samples[i], ever));
		between = ",";
	}
	fprintf(file, "],\"startValue\":0,\"endValue\":%" PRIu64 "}", sum);
}

static void put_frames(FILE *file, const struct shared *shared)
{
	fputs("],\n\"shared\":{\"frames\":[", file);
	for (size_t i = 0; i < shared->count; i++) {
		const struct gt_frame *frame = shared->frames[i];

		fputs(i ? ",\n{\"name\":" : "{\"name\":", file);
		gt_json_put(file, *frame->function ? frame->function : "?");
		if (*frame->file || *frame->module) {
			fputs(",\"file\":", file);
			gt_json_put(file, *frame->file ? frame->file : frame->module);
		}
		if (frame->line > 0)
			fprintf(file, ",\"line\":%d", frame->line);
		putc('}', file);
	}
	fputs("]}}\n", file);
}

int gt_export_speedscope(const struct gt_export *export, struct gt_error *err)
{
	struct shared shared = {0};
	FILE *file = export->file;

	(void)err;
	fputs("{\"$schema\":\"" SCHEMA "\",\"exporter\":\"gputrace\",\"name\":", file);
	gt_json_put(file, export->count ? export->places[0].trace->header.comm : "");
	fputs(",\"activeProfileIndex\":0,\"profiles\":[", file);
	for (size_t p = 0; p < export->count; p++) {
		const struct gt_export_place *place = &export->places[p];
		struct gt_samples samples = gt_samples_of(place, export->total, false);

		for (int ever = 0; ever <= 1; ever++) {
			fputs(p || ever ? ",\n" : "", file);
			put_profile(export, place, &samples, ever, &shared);
		}
		gt_samples_clear(&samples);
	}
	put_frames(file, &shared);
	free(shared.frames);
	gt_numbers_clear(&shared.numbers);
	return 0;
}
