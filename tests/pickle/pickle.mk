# torch's memory snapshots as input: read, told again by value, damaged, joined with a trace.

CHECKS += pickle

.PHONY: check-pickle check-pickle-full fuzz-pickle
check-pickle: all $(O)/tests/pickle/fuzz_replay
	$(Q)status=0; \
	$(O)/tests/pickle/fuzz_replay pickle tests/fuzz/corpus/pickle/* || status=1; \
	$(PYTHON) tests/pickle/run.py $(O) || status=1; exit $$status

check-pickle-full: all
	$(Q)FULL=1 $(PYTHON) tests/pickle/run.py $(O)

$(O)/tests/pickle/fuzz_replay: tests/fuzz/pickle.c tests/fuzz/replay.c $(O)/libgtread.a
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(SANFLAGS) $(TOOLS_CFLAGS) -o $@ $^ $(TOOLS_LIBS)

# make fuzz-pickle TIME=60: new inputs go to $(O)/fuzz/pickle, what crashes to $(O)/fuzz.
fuzz-pickle: $(O)/tests/pickle/fuzz_pickle
	$(Q)mkdir -p $(O)/fuzz/pickle
	$(O)/tests/pickle/fuzz_pickle -max_total_time=$(or $(TIME),60) -max_len=20000 -timeout=20 \
		-rss_limit_mb=2000 -artifact_prefix=$(O)/fuzz/ $(O)/fuzz/pickle tests/fuzz/corpus/pickle

$(O)/tests/pickle/fuzz_pickle: tests/fuzz/pickle.c $(wildcard tools/torch/*.c tools/sqlite/*.c tools/read/*.c)
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-Iinclude $(TOOLS_CFLAGS) -o $@ $^ $(TOOLS_LIBS)
