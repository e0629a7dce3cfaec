# Trust: killed, forked, starved, attacked, combined. tests/trust/cases.py has the cases that no other
# suite has, files.py those of the trace's file; tests/trust/run collects those of all suites in one table.
#   make check-trust   the quick cases of its own; trust-quick: the table from everyday sizes;
#   make trust         the table from everything; make soak SECONDS=3600; make fuzz RUNS=1000000

CHECKS += trust
TRUST	:= $(O)/tests/trust
TRUST_BIN := $(if $(CUDA13),$(TRUST)/victim $(TRUST)/victim-ubsan $(TRUST)/victim-asan $(TRUST)/blocked $(COVERAGE)/libcheckpoint.so $(addprefix $(TRUST)/tsan/,libgputrace.so unlocked/libgputrace.so victim traffic))
BUILT	+= $(TRUST_BIN)
TRUST_ENV = O=$(O) CC=$(CC) MAKE="$(MAKE)"

.PHONY: check-trust trust trust-quick trust-deps soak fuzz fuzz-symbols fuzz-replay
check-trust: all $(TRUST)/replay_symbols
	$(Q)$(MAKE) -s $(TRUST_BIN)
	$(Q)status=0; $(TRUST_ENV) $(PYTHON) tests/trust/cases.py || status=1; \
	$(PYTHON) tests/trust/order.py || status=1; \
	$(PYTHON) tests/trust/messages.py || status=1; \
	$(TRUST)/replay_symbols symbols tests/fuzz/corpus/symbols/* || status=1; exit $$status

# The table. check-interpose builds what its cases need.
trust trust-quick: all
	$(Q)$(MAKE) -s $(TRUST_BIN) $(INTERPOSE_BIN) $(if $(filter trust,$@),$(if $(CUDA13),$(TRUST)/step $(STEPPED)))
	$(Q)$(TRUST_ENV) $(PYTHON) tests/trust/run $(if $(filter trust,$@),full,quick)

# Neighbours and file systems; a case whose package is not there is a skip. Not gcc-multilib: it would
# remove the compilers for other machines.
trust-deps:
	$(Q)DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gdb heaptrack libjemalloc2 \
		libtcmalloc-minimal4 libmimalloc2.0 musl-tools lib32gcc-12-dev libc6-dev-i386 gcc-aarch64-linux-gnu \
		fuse3 python3-fusepy quota

SECONDS	?= 3600
soak: all
	$(Q)$(MAKE) -s $(TRUST_BIN)
	$(Q)$(TRUST_ENV) $(PYTHON) tests/trust/soak.py $(SECONDS)

# Each target RUNS times; what crashes goes to $(O)/fuzz. fuzz-trace and fuzz-pickle run for a time.
RUNS	?= 1000000
FUZZERS	:= $(READ)/fuzz_trace $(O)/tests/pickle/fuzz_pickle $(TRUST)/fuzz_symbols
fuzz: $(FUZZERS)
	$(Q)status=0; for f in $(FUZZERS); do name=$${f##*_}; mkdir -p $(O)/fuzz/$$name; \
	$$f -runs=$(RUNS) -max_len=40000 -timeout=20 -rss_limit_mb=2000 -print_final_stats=1 -verbosity=0 \
		-artifact_prefix=$(O)/fuzz/ $(O)/fuzz/$$name tests/fuzz/corpus/$$name >$(O)/fuzz/$$name.log 2>&1 && \
	echo "ok fuzz-$$name # $(RUNS) tries" || { echo "not ok fuzz-$$name: see $(O)/fuzz/$$name.log"; status=1; }; \
	done; exit $$status

fuzz-replay: $(READ)/fuzz_replay $(O)/tests/pickle/fuzz_replay $(TRUST)/replay_symbols
	$(Q)status=0; for f in $^; do case $$f in */read/*) name=trace ;; */pickle/*) name=pickle ;; *) name=symbols ;; \
	esac; $$f $$name tests/fuzz/corpus/$$name/* || status=1; done; exit $$status

$(TRUST)/fuzz_symbols: tests/fuzz/symbols.c tools/symbols/object.c tools/symbols/cold.c $(wildcard tools/symbols/*.h)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iinclude -Itools \
		-o $@ $(filter %.c,$^) -ldw -lelf

$(TRUST)/replay_symbols: tests/fuzz/symbols.c tests/fuzz/replay.c tools/symbols/object.c tools/symbols/cold.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Itools -o $@ $(filter %.c,$^) -ldw -lelf

$(TRUST)/victim $(TRUST)/victim-ubsan $(TRUST)/victim-asan: tests/trust/victim.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(if $(findstring -ubsan,$@),-fsanitize=undefined -fno-sanitize-recover=undefined) $(if $(findstring -asan,$@),-fsanitize=address) -rdynamic -o $@ $< $(O)/sim/libcuda.so.1 -pthread

# Stepped through: the library of each compiler, and one with a fault in its store order.
STEPPED	:= $(addprefix $(TRUST)/step-,gcc/libgputrace.so clang/libgputrace.so mutant/libgputrace.so)
$(STEPPED): $(LIB_SRC) $(wildcard preload/*.h include/gputrace/*.h) $(P)/exports.map
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(if $(findstring clang,$@),clang,gcc) -std=gnu11 -O2 -g -w -Iinclude $(PRELOAD_CFLAGS) \
		$(if $(findstring mutant,$@),-DGT_MUTANT=2) $(PRELOAD_LDFLAGS) -o $@ $(LIB_SRC) -l:libzstd.a

$(TRUST)/step: tests/trust/step.c tests/recorder/check.c tests/recorder/check.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $(filter %.c,$^) -l:libzstd.a

# The library as a race detector wants it: its own look-up comes before the detector is ready, so without dlsym.
TSAN_CC = $(CC) -std=gnu11 -O1 -g -w -Iinclude $(PRELOAD_CFLAGS) -fsanitize=thread
TSAN_OBJ := $(LIB_SRC:preload/%=$(TRUST)/tsan/%.o)
$(TRUST)/tsan/%.o: preload/% $(wildcard preload/*.h include/gputrace/*.h) preload/hooks.def
	@mkdir -p $(@D)
	$(call say,CC,$< (tsan))
	$(Q)$(TSAN_CC) -c -o $@ $<

$(TRUST)/tsan/unlocked_lane.o: tests/trust/unlocked_lane.c preload/lane.c $(wildcard preload/*.h include/gputrace/*.h)
	@mkdir -p $(@D)
	$(call say,CC,$< (tsan))
	$(Q)$(TSAN_CC) -c -o $@ $<

# One without the locks of its lanes: its races must be reported.
$(TRUST)/tsan/unlocked/libgputrace.so: TSAN_LINKED = $(subst lane.c.o,unlocked_lane.o,$(TSAN_OBJ))
$(TRUST)/tsan/libgputrace.so: TSAN_LINKED = $(TSAN_OBJ)
$(addprefix $(TRUST)/tsan/,libgputrace.so unlocked/libgputrace.so): $(TSAN_OBJ) $(TRUST)/tsan/unlocked_lane.o $(P)/exports.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)sed 's/\bdl[a-z]*;//g' $(P)/exports.map >$@.map
	$(Q)$(CC) -shared -Wl,-z,now,-Bsymbolic-functions,--version-script=$@.map -fsanitize=thread -o $@ $(TSAN_LINKED) -l:libzstd.a

$(TRUST)/tsan/victim $(TRUST)/tsan/traffic: $(TRUST)/tsan/%: $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fsanitize=thread -DAT_END=2 -rdynamic -isystem $(CUDA13) -o $@ \
		$(firstword $(wildcard tests/trust/$*.c tests/prog/$*.c)) $< -pthread

$(TRUST)/blocked: tests/trust/blocked.c $(TRUST)/wait/libcuda.so.1
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $< $(TRUST)/wait/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/wait',--disable-new-dtags -ldl -pthread

$(TRUST)/wait/libcuda.so.1: tests/trust/blocked.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -DDRIVER -fPIC -shared -Wl,-soname,$(@F) -o $@ $<
