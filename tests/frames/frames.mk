# What stacks look like in the tool: both halves merged, names kept on disk and in packed traces, odd names.
#   make check-frames    on its own; with PyTorch where there is one
#   make check-stacks    everything about stacks: captures, Python, PyTorch, and this

CHECKS += frames

FRAMES_TEST := $(O)/tests/frames

.PHONY: check-frames check-stacks
check-frames: all $(FRAMES_TEST)/nest.so $(FRAMES_TEST)/split.so
	$(Q)$(PYTHON) tests/frames/run.py $(O)

check-stacks:
	$(Q)O=$(O) MAKE="$(MAKE)" LIMIT=1200 tests/check unwind unwind-mutants \
		unwind-trace unwind-torch-all python-all frames

$(FRAMES_TEST)/split.so: tests/frames/split.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)gcc $(CFLAGS_ALL) -Wno-missing-prototypes -fPIC -shared -g0 -freorder-blocks-and-partition \
		-Wl,-z,defs -o $@ $< && strip $@

$(FRAMES_TEST)/nest.so: tests/frames/nest.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -shared -o $@ $< -ldl
