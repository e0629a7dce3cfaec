# The recorder alone: its calls with fake stacks, its files judged by a model and a reader of their own.
# check-recorder is the everyday part; check-recorder-full is all of it, with more of everything.

CHECKS	+= recorder
DEPS	+= libcriterion-dev

REC	:= $(O)/tests/recorder
REC_TESTS := $(addprefix $(REC)/,peak killed truncated disk forks ring)
REC_LIB	:= $(RECORDER_SRC:preload/%=$(P)/%.o)
REC_COMMON := tests/recorder/model.c tests/recorder/check.c tests/recorder/fake.c
REC_CFLAGS = $(filter-out $(SANFLAGS),$(CFLAGS_ALL)) -D_GNU_SOURCE
REC_STORES := $(addprefix $(REC)/stores,-gcc -clang -1 -2 -3 -4 -5 -6 -7)

.PHONY: check-recorder check-recorder-full bench-recorder
check-recorder: $(REC_TESTS) $(REC)/live $(REC)/unit_test $(REC)/process_test $(REC_STORES)
	$(Q)O=$(O) tests/recorder/run everyday

check-recorder-full: $(REC_TESTS) $(REC)/live $(REC)/unit_test $(REC)/process_test $(REC_STORES)
	$(Q)O=$(O) tests/recorder/run full

$(REC_TESTS): $(REC)/%: tests/recorder/%.c $(REC_COMMON) $(REC_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(REC_CFLAGS) -o $@ $(filter %.c %.o,$^) -l:libzstd.a -lpthread

$(REC)/unit_test $(REC)/process_test: $(REC)/%: tests/recorder/%.c $(REC_COMMON) $(REC_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(REC_CFLAGS) -o $@ $(filter %.c %.o,$^) -l:libzstd.a -lcriterion -lpthread

# The recorder's own cost: prints "name value unit".
bench-recorder: $(O)/bench/recorder
	$(Q)dir=$$(mktemp -d) && GPUTRACE_DIR=$$dir $<; rm -rf "$$dir"

$(O)/bench/recorder: tests/bench/recorder.c tests/recorder/fake.c $(REC_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(REC_CFLAGS) -Wl,--wrap=gt_ring_seal,--wrap=gt_lock_wait -o $@ $(filter %.c %.o,$^) \
		-l:libzstd.a -lpthread

# The tool's reader beside the test's own.
$(REC)/live: tests/recorder/live.c $(REC_COMMON) $(REC_LIB) \
		$(patsubst %.c,$(O)/%.o,$(wildcard tools/read/*.c))
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(REC_CFLAGS) -Itools -o $@ $(filter %.c %.o,$^) -l:libzstd.a -lxxhash -lpthread

# Store by store, with both compilers and with each of the known faults.
$(REC)/stores-gcc $(REC)/stores-clang: REC_CC = $(@:$(REC)/stores-%=%)
$(REC)/stores-%: REC_CC = $(CC) -DGT_MUTANT=$(@:$(REC)/stores-%=%)
$(REC_STORES): tests/recorder/stores.c $(REC_COMMON) $(RECORDER_SRC)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(REC_CC) $(filter-out -MMD -MP,$(REC_CFLAGS)) -Wl,--wrap=mmap -o $@ $(filter %.c,$^) -l:libzstd.a

$(REC_STORES): preload/preload.h preload/recorder.h $(wildcard tests/recorder/*.h) include/gputrace/format.h
-include $(REC_TESTS:=.d)
