/* SPDX-License-Identifier: MIT */
/* What the JSON answers have in common; jansson does the rest. */
#ifndef GT_JSON_H
#define GT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include "out/out.h"

#define GT_JSON_SCHEMA 1

/* {"schema": 1, "command": name} */
json_t *gt_json_answer(const char *command);

/* Bytes and counts: null when not known. */
json_t *gt_json_number(uint64_t value, bool known);

/* Microseconds as seconds: null when not known. */
json_t *gt_json_seconds(uint64_t us, bool known);

/* Any bytes as text: what is not UTF-8 becomes U+FFFD; null for NULL and, by choice, for "". */
json_t *gt_json_text(const char *text, size_t length);
json_t *gt_json_name(const char *text);

/* Any text as a JSON string, at once: for files too large to be built first. */
void gt_json_put(FILE *file, const char *text);

/* Print and drop the reference. */
void gt_json_print(struct gt_out *out, json_t *answer);

#endif
