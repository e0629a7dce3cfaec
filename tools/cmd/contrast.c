/* SPDX-License-Identifier: MIT */
/* See contrast.h. Command lines are cut at their common ends: what is left between is the difference. */
#define _GNU_SOURCE
#include "cmd/contrast.h"

#include <stdlib.h>
#include <string.h>
#include "model/xalloc.h"
#include "out/number.h"
#include "symbols/library.h"

struct tokens { /* a command line */
	const char **words;
	size_t count;
};

static struct tokens tokens_of(const struct gt_trace *trace)
{
	const struct gt_bytes *line = gt_trace_info(trace, "cmdline");
	struct tokens tokens = {0};

	for (uint32_t i = 0; line && i < line->length;
	     i += (uint32_t)strnlen(line->text + i, line->length - i) + 1)
		*GT_PUSH(tokens.words, tokens.count) = line->text + i;
	return tokens;
}

/* The program and its script may lie in another checkout. */
static bool equal_words(const struct tokens *a, const struct tokens *b, size_t i, size_t j)
{
	if (i < 2 && j < 2 && i == j)
		return !strcmp(gt_base_name(a->words[i]), gt_base_name(b->words[j]));
	return !strcmp(a->words[i], b->words[j]);
}

static size_t common_prefix(const struct tokens *lines, size_t count)
{
	for (size_t at = 0;; at++)
		for (size_t i = 0; i < count; i++)
			if (at == lines[i].count || !equal_words(&lines[0], &lines[i], at, at))
				return at;
}

static size_t common_suffix(const struct tokens *lines, size_t count, size_t prefix)
{
	for (size_t n = 0;; n++)
		for (size_t i = 0; i < count; i++)
			if (prefix + n == lines[i].count ||
			    !equal_words(&lines[0], &lines[i], lines[0].count - 1 - n,
					 lines[i].count - 1 - n))
				return n;
}

static char *join_words(const struct tokens *line, size_t from, size_t to)
{
	char *text = gt_xstrdup("");

	for (size_t i = from; i < to; i++)
		text = gt_xappend(text, "%s%s", i > from ? " " : "", line->words[i]);
	return text;
}

/* "8", "--batch=8" where name is given. */
static bool parse_value(const char *word, double *ret)
{
	const char *equals = *word == '-' ? strchr(word, '=') : NULL;
	char *end;

	word = equals ? equals + 1 : word;
	*ret = strtod(word, &end);
	return end != word && !*end && *ret >= 0;
}

/* The words from..to of each line are one number, perhaps behind its option. */
static void find_numbers(struct gt_contrast *contrast, const struct tokens *lines, size_t from,
			 size_t suffix)
{
	double *numbers = gt_xcalloc(contrast->inputs, sizeof(*numbers));
	const char *name = "";

	for (size_t i = 0; i < contrast->inputs; i++) {
		size_t end = lines[i].count - suffix;
		const char *word = end > from ? lines[i].words[end - 1] : "";

		if ((end != from + 1 && end != from + 2) || !parse_value(word, &numbers[i]) ||
		    (end == from + 2 && *lines[i].words[from] != '-')) {
			free(numbers);
			return;
		}
		if (*lines[i].words[from] == '-')
			name = lines[i].words[from];
	}
	contrast->numbers = numbers;
	contrast->number_name = strndup(name, strcspn(name, "="));
}

static void contrast_arguments(const struct gt_session *session, struct gt_contrast *contrast)
{
	struct tokens *lines = gt_xcalloc(session->count, sizeof(*lines));
	size_t prefix, suffix;

	for (size_t i = 0; i < session->count; i++)
		lines[i] = tokens_of(session->inputs[i].trace);
	prefix = common_prefix(lines, session->count);
	suffix = common_suffix(lines, session->count, prefix);
	contrast->same_arguments = true;
	for (size_t i = 0; i < session->count; i++)
		contrast->same_arguments &= lines[i].count == prefix + suffix;
	/* A value says nothing without the name of its option. */
	if (!contrast->same_arguments && prefix && lines[0].words[prefix - 1][0] == '-' &&
	    !strchr(lines[0].words[prefix - 1], '='))
		prefix--;
	for (size_t i = 0; i < session->count; i++)
		contrast->arguments[i] =
			contrast->same_arguments
				? gt_xstrdup("")
				: join_words(&lines[i], prefix, lines[i].count - suffix);
	if (!contrast->same_arguments)
		find_numbers(contrast, lines, prefix, suffix);
	for (size_t i = 0; i < session->count; i++)
		free(lines[i].words);
	free(lines);
}

/* ---- settings -------------------------------------------------------------------------------- */

static char *info_value(const struct gt_trace *trace, const char *key)
{
	const struct gt_bytes *value = gt_trace_info(trace, key);

	return value ? gt_xasprintf("%.*s", (int)value->length, value->text) : gt_xstrdup("");
}

static char *program_value(const struct gt_trace *trace, const char *key)
{
	char *path = info_value(trace, key);
	char *name = gt_xstrdup(gt_base_name(path));

	free(path);
	return name;
}

/* The build of torch is known, its version is not: the first bytes of the build-id. */
static char *torch_value(const struct gt_trace *trace, const char *key)
{
	(void)key;
	for (size_t i = 1; i < trace->module_count; i++) {
		const struct gt_module *module = &trace->modules[i];

		if (module->path.length && module->build_id_length >= 4 &&
		    !strcmp(gt_base_name(module->path.text), "libtorch_cuda.so"))
			return gt_xasprintf("build %02x%02x%02x%02x", module->build_id[0],
					    module->build_id[1], module->build_id[2],
					    module->build_id[3]);
	}
	return gt_xstrdup("");
}

static char *card_value(const struct gt_trace *trace, const char *key)
{
	const struct gt_device_def *device = trace->device_count ? &trace->devices[0] : NULL;
	char size[GT_SIZE_TEXT];

	(void)key;
	if (!device)
		return gt_xstrdup("");
	return gt_xasprintf("%.*s, %s", (int)device->name.length,
			    device->name.length ? device->name.text : "",
			    gt_size_text(device->total, size));
}

static const struct {
	const char *name, *key;
	char *(*value)(const struct gt_trace *trace, const char *key);
} known[] = {
	{"program", "exe", program_value},
	{"torch", NULL, torch_value},
	{"GPU", NULL, card_value},
	{"CUDA_VISIBLE_DEVICES", "env.CUDA_VISIBLE_DEVICES", info_value},
	{"CUDA_MODULE_LOADING", "env.CUDA_MODULE_LOADING", info_value},
	{"PYTORCH_CUDA_ALLOC_CONF", "env.PYTORCH_CUDA_ALLOC_CONF", info_value},
	{"PYTORCH_ALLOC_CONF", "env.PYTORCH_ALLOC_CONF", info_value},
	{"PYTORCH_NO_CUDA_MEMORY_CACHING", "env.PYTORCH_NO_CUDA_MEMORY_CACHING", info_value},
	{"WORLD_SIZE", "env.WORLD_SIZE", info_value},
};

static void contrast_setting(const struct gt_session *session, struct gt_contrast *contrast,
			     size_t which)
{
	char **values = gt_xcalloc(session->count, sizeof(*values));
	struct gt_setting *setting;
	bool any = false, differs = false;

	for (size_t i = 0; i < session->count; i++) {
		values[i] = known[which].value(session->inputs[i].trace, known[which].key);
		any |= *values[i];
		differs |= strcmp(values[i], values[0]);
	}
	setting = GT_PUSH(contrast->settings, contrast->setting_count);
	*setting = (struct gt_setting){
		.name = known[which].name,
		.values = values,
		.differs = any && differs,
	};
}

struct gt_contrast gt_contrast_of(const struct gt_session *session)
{
	struct gt_contrast contrast = {
		.inputs = session->count,
		.arguments = gt_xcalloc(session->count, sizeof(char *)),
		.number_name = NULL,
	};

	contrast_arguments(session, &contrast);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		contrast_setting(session, &contrast, i);
	return contrast;
}

void gt_contrast_clear(struct gt_contrast *contrast)
{
	for (size_t i = 0; i < contrast->inputs; i++)
		free(contrast->arguments[i]);
	for (size_t s = 0; s < contrast->setting_count; s++) {
		for (size_t i = 0; i < contrast->inputs; i++)
			free(contrast->settings[s].values[i]);
		free(contrast->settings[s].values);
	}
	free(contrast->arguments);
	free(contrast->settings);
	free(contrast->numbers);
	free(contrast->number_name);
	*contrast = (struct gt_contrast){0};
}

char *gt_contrast_text(const struct gt_contrast *contrast, size_t input)
{
	char *text = gt_xstrdup(contrast->arguments[input]);

	for (size_t s = 0; s < contrast->setting_count; s++) {
		const struct gt_setting *setting = &contrast->settings[s];

		if (setting->differs)
			text = gt_xappend(text, "%s%s=%s", *text ? " " : "", setting->name,
					  setting->values[input]);
	}
	return text;
}

/* ---- batch sizes ----------------------------------------------------------------------------- */

static bool names_batch(const char *word)
{
	const char *batch = strstr(word, "batch");
	size_t length = strcspn(word, "=");

	return *word == '-' && ((batch && batch + 5 <= word + length) ||
				(length == 4 && !strncmp(word, "--bs", 4)));
}

bool gt_batch_argument(const struct gt_trace *trace, double *ret)
{
	struct tokens line = tokens_of(trace);
	bool found = false;

	for (size_t i = 0; i < line.count && !found; i++) {
		const char *word = line.words[i];

		if (!names_batch(word))
			continue;
		if (!strchr(word, '='))
			word = i + 1 < line.count ? line.words[i + 1] : "";
		found = parse_value(word, ret) && *ret > 0;
	}
	free(line.words);
	return found;
}

/* ---- levels ---------------------------------------------------------------------------------- */

static bool has_blocks(const struct gt_trace *trace)
{
	for (size_t i = 0; i < trace->lane_count; i++)
		if (trace->lanes[i].ctr.peak[GT_TOTAL_TORCH])
			return true;
	return false;
}

static const char *why_no_blocks(const struct gt_trace *trace)
{
	static const char *const keys[] = {"env.PYTORCH_CUDA_ALLOC_CONF", "env.PYTORCH_ALLOC_CONF"};

	if (gt_trace_info(trace, "env.PYTORCH_NO_CUDA_MEMORY_CACHING"))
		return " (PYTORCH_NO_CUDA_MEMORY_CACHING)";
	for (size_t i = 0; i < 2; i++) {
		const struct gt_bytes *conf = gt_trace_info(trace, keys[i]);

		if (conf && memmem(conf->text, conf->length, "cudaMallocAsync", 15))
			return " (cudaMallocAsync)";
	}
	return gt_has_torch(trace) ? "" : " (no torch in the process)";
}

int gt_check_levels(const struct gt_args *args, const struct gt_session *session)
{
	const struct gt_trace *with = NULL, *without = NULL;

	for (size_t i = 0; i < session->count; i++) {
		const struct gt_trace *trace = session->inputs[i].trace;

		if (has_blocks(trace))
			with = trace;
		else
			without = trace;
	}
	if (!with || !without || args->total == GT_TOTAL_RESERVED)
		return 0;
	return gt_message(GT_EXIT_USAGE,
			  "%s: %s has no torch level%s, %s has: compare with --level driver",
			  args->command->name, without->path, why_no_blocks(without), with->path);
}
