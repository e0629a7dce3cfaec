# Figures: prints "name value unit target ok|missed", see tests/bench/run.

BENCH_HOOK := $(O)/bench/hook

.PHONY: bench bench-quick
bench bench-quick: all $(BENCH_HOOK)
	$(Q)O=$(O) $(PYTHON) tests/bench/run $(if $(filter bench-quick,$@),--quick)

# Linked against the simulated driver by soname, as a program built on a GPU machine would be.
$(BENCH_HOOK): tests/bench/hook.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $< $(O)/sim/libcuda.so.1
