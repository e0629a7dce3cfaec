/* SPDX-License-Identifier: MIT */
/*
 * How the runs behind several traces were started, and in what that differs: the command line, the
 * settings that were in its environment, the program, torch's build, the card. For diff, compare and plan.
 */
#ifndef GT_CONTRAST_H
#define GT_CONTRAST_H

#include "cmd/session.h"

struct gt_setting {
	const char *name; /* "PYTORCH_CUDA_ALLOC_CONF", "torch", "GPU" */
	char **values;	  /* by input; "" = not set or not known */
	bool differs;
};

struct gt_contrast {
	size_t inputs;
	char **arguments; /* by input: the part of the command line that differs; "" = none */
	bool same_arguments;
	struct gt_setting *settings; /* those that any of them has */
	size_t setting_count;
	double *numbers;   /* by input: the one number in which the command lines differ, or NULL */
	char *number_name; /* the option before it, "--batch"; "" = none */
};

struct gt_contrast gt_contrast_of(const struct gt_session *session);
void gt_contrast_clear(struct gt_contrast *contrast);

/* What is set to this input and differs: arguments, then NAME=VALUE. To be freed. */
char *gt_contrast_text(const struct gt_contrast *contrast, size_t input);

/* The number behind an option whose name holds "batch" or is --bs. False: there is none. */
bool gt_batch_argument(const struct gt_trace *trace, double *ret);

/*
 * 0, or the exit status after saying it: one trace has torch's blocks, another only what the driver
 * gave, and --level does not say which to compare.
 */
int gt_check_levels(const struct gt_args *args, const struct gt_session *session);

#endif
