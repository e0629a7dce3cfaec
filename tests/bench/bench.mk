# Figures: prints "name value unit target ok|missed", see tests/bench/run; FIGURES="hook pair" takes some.

BENCH_HOOK := $(O)/bench/hook
BENCH_PROGRAMS := $(BENCH_HOOK) $(O)/bench/pause $(O)/bench/slices $(O)/bench/wakes
BENCH_PATTERNS := $(O)/bench/pattern-cuda.so $(O)/bench/pattern-heap.so
BENCH_STACKS := $(O)/stacks/bench $(O)/stacks/torch_check.so $(O)/tests/python/pylib.so
BENCH_DRIVER := $(O)/bench/driver/libcuda.so.1

.PHONY: bench bench-quick
bench bench-quick: all $(BENCH_PROGRAMS) $(BENCH_PATTERNS) $(O)/bench/recorder $(BENCH_STACKS) $(if $(CUDA13),$(O)/pagetest/chain)
	$(Q)O=$(O) $(PYTHON) tests/bench/run $(if $(filter bench-quick,$@),--quick) $(FIGURES)
	$(if $(filter bench,$@),$(if $(FIGURES),,$(Q)O=$(O) $(PYTHON) tests/bench/commands))
	$(Q)$(if $(filter bench,$@),$(if $(CUDA13),O=$(O) $(PYTHON) tests/bench/page.py $(O)/pagetest/chain))

# Every command on long trainings; two minutes to record them.
.PHONY: bench-commands
bench-commands: all
	$(Q)O=$(O) $(PYTHON) tests/bench/commands

# Stacks of a long training, by name; a minute to record it.
.PHONY: bench-symbols
bench-symbols: all
	$(Q)O=$(O) $(PYTHON) tests/bench/symbols

# Linked by soname, as a program built on a GPU machine would be.
$(BENCH_PROGRAMS): $(O)/bench/%: tests/bench/%.c $(BENCH_DRIVER)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $< $(BENCH_DRIVER)

$(BENCH_PATTERNS): $(O)/bench/pattern-%.so: tests/bench/pattern.c $(BENCH_DRIVER)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -shared $(if $(filter cuda,$*),-DCUDA) -o $@ $< \
		$(if $(filter cuda,$*),$(BENCH_DRIVER)) -pthread

$(BENCH_DRIVER): tests/bench/driver.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

-include $(BENCH_PROGRAMS:=.d) $(BENCH_PATTERNS:.so=.d)
