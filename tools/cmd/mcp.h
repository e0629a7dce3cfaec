/* SPDX-License-Identifier: MIT */
/*
 * What the files of gputrace mcp share. From the bottom: mcp_child.c runs a command where it can do no
 * harm, mcp_bound.c makes an answer fit, mcp_sql.c asks a database, mcp_tools.c is the table of tools,
 * mcp_call.c does what one of them says, mcp.c speaks the protocol.
 */
#ifndef GT_MCP_H
#define GT_MCP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define GT_MCP_ANSWER 32768u /* bytes of JSON that a tool answers with at most */

struct gt_mcp {
	const char *path; /* DIR */
	int directory;	  /* the same, opened */
	char *scratch;	  /* folder of databases, made when one is needed; NULL = none */
	struct gt_mcp_database *databases;
	size_t database_count;
	unsigned int made; /* databases, ever: gives each its name */
};

/* ---- mcp_child.c ---- */

struct gt_ran {
	char *out; /* what it printed; NUL terminated */
	size_t length;
	char *said;	 /* on standard error */
	int status;	 /* its exit status */
	const char *bad; /* why there is no answer; NULL = it ended by itself */
};

/* Runs job in a child whose working directory is DIR, and which opens traces only below it. */
void gt_mcp_run(const struct gt_mcp *mcp, int (*job)(void *ctx), void *ctx, struct gt_ran *ret);
void gt_ran_clear(struct gt_ran *ran);

/* ---- mcp_bound.c ---- */

/* Takes the reference. An answer that is too large becomes one that says what it leaves out. */
char *gt_mcp_bounded(json_t *answer);

/* ---- mcp_sql.c ---- */

struct gt_mcp_question {
	const char *database, *sql;
	size_t rows; /* at most */
};

/* A job: prints columns and rows as JSON, or says why not. */
int gt_mcp_ask(void *question);

/* ---- mcp_tools.c ---- */

json_t *gt_mcp_tools(void);

struct gt_mcp_line { /* a command line; words and files are the line's own */
	char **words;
	size_t count;
	char **files; /* behind the options */
	size_t file_count;
	const char *query; /* of sql, as rows */
	size_t rows;
	char *why; /* it cannot be: NULL = it can */
};

/* What a call becomes. False: there is no such tool. */
bool gt_mcp_line_of(const struct gt_mcp *mcp, const char *tool_name, const json_t *arguments,
		    struct gt_mcp_line *ret);
void gt_mcp_line_clear(struct gt_mcp_line *line);

/* A descriptor (O_PATH) of a file below DIR, or -1 with errno: EXDEV = it is not below. */
int gt_mcp_look(const struct gt_mcp *mcp, const char *path);

/* ---- mcp_call.c ---- */

/* The result of tools/call; NULL: there is no such tool. */
json_t *gt_mcp_call(struct gt_mcp *mcp, const char *name, const json_t *arguments);

/* Deletes the databases that were made. */
void gt_mcp_forget(struct gt_mcp *mcp);

#endif
