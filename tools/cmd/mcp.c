/* SPDX-License-Identifier: MIT */
/*
 * gputrace mcp: a server of the Model Context Protocol, over which an assistant asks about the traces of
 * one folder. JSON-RPC 2.0, a message per line on standard input and output, no network. It answers
 * one message after the other: a call is bounded in time (mcp_child.c), so that a client waits for
 * nothing longer. Nothing that a client or a trace contains ends it; it ends with its input, and takes
 * the databases that it made with it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/mcp.h"
#include "model/xalloc.h"

#define LIMIT_LINE (1u << 20)

enum { /* of JSON-RPC */
       NOT_PARSED = -32700,
       NOT_A_REQUEST = -32600,
       NO_METHOD = -32601,
       BAD_PARAMETERS = -32602,
};

/* The newest first: what is answered to a version that we do not know. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

#define VERSIONS (sizeof(versions) / sizeof(versions[0]))

/* ---- messages -------------------------------------------------------------------------------- */

/* NULL id: the request had none that could be read. Takes both references. */
static json_t *response(const json_t *id, const char *key, json_t *value)
{
	return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id ? id : json_null(), key,
			 value);
}

static json_t *error(const json_t *id, int code, const char *text)
{
	return response(id, "error", json_pack("{s:i, s:s}", "code", code, "message", text));
}

static json_t *initialize(const json_t *parameters)
{
	const char *asked = json_string_value(json_object_get(parameters, "protocolVersion"));
	const char *version = versions[0];

	for (size_t i = 0; asked && i < VERSIONS; i++)
		if (!strcmp(asked, versions[i]))
			version = versions[i];
	return json_pack(
		"{s:s, s:{s:{}}, s:{s:s, s:s, s:s}, s:s}", "protocolVersion", version,
		"capabilities", "tools", "serverInfo", "name", "gputrace", "title",
		"GPU memory traces", "version", GT_TOOL_VERSION, "instructions",
		"Where did the GPU memory go? traces lists what there is; then summary, and oom of "
		"a run that failed, growth of one that grows, peak for who holds what, diff of two "
		"runs. Sizes are bytes. sql answers everything else. An answer that is too large "
		"begins with left_out.");
}

static json_t *call(struct gt_mcp *mcp, const json_t *id, const json_t *parameters)
{
	const char *name = json_string_value(json_object_get(parameters, "name"));
	const json_t *arguments = json_object_get(parameters, "arguments");
	json_t *result;

	if (!name || (arguments && !json_is_object(arguments)))
		return error(id, BAD_PARAMETERS,
			     "tools/call needs a name, and arguments as an object");
	result = gt_mcp_call(mcp, name, arguments);
	return result ? response(id, "result", result)
		      : error(id, BAD_PARAMETERS, "no such tool; see tools/list");
}

static json_t *answer_request(struct gt_mcp *mcp, const json_t *id, const char *method,
			      const json_t *parameters)
{
	if (!strcmp(method, "tools/call"))
		return call(mcp, id, parameters);
	if (!strcmp(method, "initialize"))
		return response(id, "result", initialize(parameters));
	if (!strcmp(method, "ping"))
		return response(id, "result", json_object());
	if (!strcmp(method, "tools/list"))
		return response(id, "result", gt_mcp_tools());
	return error(id, NO_METHOD, "no such method");
}

/* The response; NULL: nothing is to be said. */
static json_t *answer(struct gt_mcp *mcp, const json_t *message)
{
	const json_t *id = json_object_get(message, "id");
	const char *method = json_string_value(json_object_get(message, "method"));
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));

	if (!method && (json_object_get(message, "result") || json_object_get(message, "error")))
		return NULL; /* we asked nothing */
	if (!method || !version || strcmp(version, "2.0"))
		return error(id, NOT_A_REQUEST, "not a request of JSON-RPC 2.0");
	if (!id)
		return NULL; /* a notification */
	if (!json_is_string(id) && !json_is_integer(id))
		return error(NULL, NOT_A_REQUEST, "an id is a text or a whole number");
	return answer_request(mcp, id, method, json_object_get(message, "params"));
}

/* Version 2025-03-26 has batches. */
static json_t *answer_all(struct gt_mcp *mcp, const json_t *message)
{
	json_t *list, *one;

	if (!json_is_array(message))
		return answer(mcp, message);
	if (!json_array_size(message))
		return error(NULL, NOT_A_REQUEST, "an empty batch");
	list = json_array();
	for (size_t i = 0; i < json_array_size(message); i++) {
		one = answer(mcp, json_array_get(message, i));
		if (one)
			json_array_append_new(list, one);
	}
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Length of the next line, 0 at the end of the input; of one that is too long only that it was. */
static size_t next_line(char *line, bool *ret_long)
{
	size_t length = 0, seen = 0;
	int c;

	while ((c = getc_unlocked(stdin)) != EOF) {
		seen++;
		if (c == '\n')
			break;
		if (length < LIMIT_LINE)
			line[length++] = (char)c;
	}
	*ret_long = seen > LIMIT_LINE + 1;
	line[length] = 0;
	return seen;
}

/* False: nobody reads us any more. */
static bool say(json_t *message)
{
	char *text = gt_xchecked(json_dumps(message, JSON_COMPACT));
	bool said = puts(text) >= 0 && !fflush(stdout);

	free(text);
	json_decref(message);
	return said;
}

static void serve(struct gt_mcp *mcp)
{
	char *line = gt_xcalloc(LIMIT_LINE + 1, 1);
	bool going = true, is_long;

	while (going && next_line(line, &is_long)) {
		json_t *message, *reply;

		if (!is_long && !line[strspn(line, " \t\r")])
			continue;
		message = is_long ? NULL : json_loads(line, JSON_DECODE_ANY, NULL);
		reply = message ? answer_all(mcp, message)
				: error(NULL, NOT_PARSED, "not a line of JSON");
		json_decref(message);
		if (reply)
			going = say(reply);
	}
	free(line);
}

/* ---- the command ----------------------------------------------------------------------------- */

int gt_cmd_mcp(struct gt_args *args)
{
	struct gt_mcp mcp = {.path = args->operands[0]};

	mcp.directory = open(mcp.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mcp.directory < 0)
		return gt_message(GT_EXIT_UNREADABLE, "%s: %s", mcp.path, strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	if (isatty(STDIN_FILENO))
		gt_message(0, "mcp: waits for JSON-RPC on standard input; an assistant starts it: "
			      "see docs/exports.md");
	serve(&mcp);
	gt_mcp_forget(&mcp);
	close(mcp.directory);
	return GT_EXIT_FINE;
}
