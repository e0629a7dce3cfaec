/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over files, without a fuzzer: replay NAME FILE... prints one case. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	FILE *f = fopen(path, "rbe");
	uint8_t *data = NULL;
	size_t size = 0, n;

	if (!f)
		return -1;
	do {
		data = realloc(data, size + 65536);
		n = data ? fread(data + size, 1, 65536, f) : 0;
		size += n;
	} while (n);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (replay(argv[i])) {
			printf("not ok fuzz-corpus-%s: cannot read %s\n", argv[1], argv[i]);
			return 1;
		}
	}
	printf("ok fuzz-corpus-%s # %d files\n", argv[1], argc - 2);
	return argc < 3;
}
