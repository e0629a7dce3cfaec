# The reader: unit tests on synthetic traces, damaged files, a running recorder, a second reader.
# Everything that reads is built with sanitizers, SAN or not: the file is hostile.
# python3-zstandard belongs to Debian's Python, so the scripts are started by their own first line.

CHECKS += read
DEPS += libcriterion-dev python3-zstandard clang

READ	 := $(O)/tests/read
READ_SAN := -fsanitize=$(or $(SAN),address,undefined) -fno-sanitize-recover=all -fno-omit-frame-pointer
READ_TESTS := $(addprefix $(READ)/,columns_test trace_test damage_test)
READ_HELP := $(addprefix $(READ)/,writer.o model.o swallow.o follow.o)
READ_LIB := $(patsubst tools/%.c,$(READ)/%.o,$(wildcard tools/read/*.c))

.PHONY: check-read
check-read: $(READ_TESTS) $(READ)/ahead_test $(READ)/follow_test $(READ)/record $(READ)/mktrace $(READ)/fuzz_replay all
	$(Q)status=0; \
	for t in $(READ_TESTS); do $$t --tap --quiet || status=1; done; \
	$(READ)/ahead_test || status=1; \
	$(READ)/follow_test $(READ)/record || status=1; \
	$(READ)/fuzz_replay trace tests/fuzz/corpus/trace/* || status=1; \
	tests/read/files_test.py $(O) || status=1; \
	exit $$status

READ_CC = $(CC) $(CFLAGS_ALL) -O1 $(READ_SAN) -Itools

$(READ)/%.o: tests/read/%.c $(TOOLS_STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(READ_CC) -c -o $@ $<
$(READ)/read/%.o: tools/read/%.c $(TOOLS_STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(READ_CC) -c -o $@ $<

$(READ_TESTS) $(READ)/ahead_test $(READ)/follow_test $(READ)/mktrace: $(READ)/%: $(READ)/%.o $(READ_HELP) $(READ_LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(READ_SAN) -o $@ $^ -lzstd -pthread $(if $(findstring _test,$*),-lcriterion)

# Half a minute. Fences of traces that grow are no business of it: those are read on one core.
.PHONY: check-races
check-races: $(READ)/ahead_races
	$(READ)/ahead_races
$(READ)/ahead_races: tests/read/ahead_test.c tests/read/writer.c $(wildcard tools/read/*.c)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -O1 -fsanitize=thread -Wno-tsan -Itools -o $@ $^ -lzstd -pthread

# The recorder itself, without a program under it.
$(READ)/record: tests/read/record.c tests/recorder/fake.c $(RECORDER_SRC)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $^ -l:libzstd.a -pthread

$(READ)/fuzz_replay: tests/fuzz/trace.c tests/fuzz/replay.c $(READ)/swallow.o $(READ)/follow.o $(READ_LIB)
	$(call say,CC,$@)
	$(Q)$(READ_CC) -o $@ $^ -lzstd -pthread

# make fuzz-trace TIME=60: new inputs go to $(O)/fuzz/trace, what crashes to the same place.
.PHONY: fuzz-trace
fuzz-trace: $(READ)/fuzz_trace
	$(Q)mkdir -p $(O)/fuzz/trace
	$(READ)/fuzz_trace -max_total_time=$(or $(TIME),60) -max_len=40000 -timeout=20 -rss_limit_mb=2000 \
		-artifact_prefix=$(O)/fuzz/ $(O)/fuzz/trace tests/fuzz/corpus/trace

# Without checksums, or no input would get behind them.
$(READ)/fuzz_trace: tests/fuzz/trace.c tests/read/swallow.c tests/read/follow.c $(wildcard tools/read/*.c)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -Iinclude -Itools -o $@ $(filter %.c,$^) -lzstd -pthread

-include $(wildcard $(READ)/*.d $(READ)/read/*.d)
