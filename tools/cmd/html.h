/* SPDX-License-Identifier: MIT */
/* What the page says of a device beside its history: html.c asks, html_facts.c answers. */
#ifndef GT_CMD_HTML_H
#define GT_CMD_HTML_H

#include "cmd/session.h"
#include "page/write.h"

struct gt_html_view { /* a device of a process on the page */
	const struct gt_place *place;
	const struct gt_report *failure; /* that ended the run, if it was on this device */
	const struct gt_page_history *history;
	struct gt_paths *paths;
	struct gt_state state; /* at gt_html_when */
	bool state_known;
};

/* The moment that the page opens at: the failure, else the peak. */
struct gt_when gt_html_when(const struct gt_html_view *view);

/* All of it as the page's script reads it. */
json_t *gt_html_facts(const struct gt_args *args, struct gt_html_view *view);

/* The lines that diff prints before its table. */
json_t *gt_html_diff_head(const struct gt_args *args, struct gt_session *session);

/* Tables that need no script, from the facts and the moment's holders. */
int gt_html_fixed(const struct gt_html_view *view, const json_t *facts,
		  const struct gt_page_device *device, struct gt_page *page);

#endif
