/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks: a line per stack, frames from the outermost on with ';' between them, and the bytes
 * in use. There is no way to write a ';' inside a frame, so it becomes ':'. Called from the table.
 */
#include <stdlib.h>
#include <inttypes.h>
#include "export/samples.h"
#include "model/label.h"
#include "out/out.h"

static void put_frame(FILE *file, const struct gt_frame *frame)
{
	char *text = gt_label_frame(frame, true), *safe = gt_escape(text);

	for (const char *at = safe; *at; at++)
		putc(*at == ';' ? ':' : *at, file);
	free(safe);
	free(text);
}

static void put_sample(const struct gt_export *export, const struct gt_export_place *place,
		       const struct gt_sample *sample)
{
	struct gt_stack stack = gt_symbols_stack(place->symbols, sample->native, sample->python);

	if (export->count > 1)
		fprintf(export->file, "pid %u GPU %d;", place->trace->header.pid,
			place->lane->device);
	for (size_t i = stack.count; i-- > 0;) {
		put_frame(export->file, &stack.frames[i]);
		if (i)
			putc(';', export->file);
	}
	fprintf(export->file, "%s %" PRIu64 "\n", stack.count ? "" : "[no stack]", sample->bytes);
}

int gt_export_folded(const struct gt_export *export, struct gt_error *err)
{
	(void)err;
	for (size_t p = 0; p < export->count; p++) {
		const struct gt_export_place *place = &export->places[p];
		struct gt_samples samples = gt_samples_of(place, export->total, false);

		for (size_t i = 0; i < samples.count; i++)
			if (samples.samples[i].bytes)
				put_sample(export, place, &samples.samples[i]);
		gt_samples_clear(&samples);
	}
	return 0;
}
