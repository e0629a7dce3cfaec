/* SPDX-License-Identifier: MIT */
/* mktrace FILE SEED EVENTS LANES CAP EXTENT RING SITES LIVE: a trace of a random event program. */
#include <stdio.h>
#include <stdlib.h>
#include "writer.h"

int main(int argc, char **argv)
{
	struct writer_options o;
	struct written *written;
	int rc;

	if (argc != 10) {
		fputs("usage: mktrace FILE SEED EVENTS LANES CAP EXTENT RING SITES LIVE\n", stderr);
		return 2;
	}
	o = (struct writer_options){
		.seed = strtoull(argv[2], NULL, 0),
		.events = strtoull(argv[3], NULL, 0),
		.lanes = (uint32_t)strtoul(argv[4], NULL, 0),
		.cap = (uint32_t)strtoul(argv[5], NULL, 0),
		.extent = strtoull(argv[6], NULL, 0),
		.ring = strtoull(argv[7], NULL, 0),
		.sites = (uint32_t)strtoul(argv[8], NULL, 0),
		.live = strtoull(argv[9], NULL, 0),
	};
	written = writer_make(&o);
	rc = writer_save(written, argv[1], written->size);
	writer_free(written);
	return rc ? 1 : 0;
}
