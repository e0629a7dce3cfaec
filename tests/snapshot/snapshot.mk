# Symbols and memory_viz snapshots: unit tests with Criterion, then files of real runs.
# VIZCHECK=FILE names a strict checker of memory_viz files; without it its cases are skipped.

CHECKS += snapshot
DEPS += libcriterion-dev binutils

SNAPSHOT := $(O)/tests/snapshot
PROBES := $(addprefix $(SNAPSHOT)/,probe.so probe-noaranges.so probe-stripped.so probe-split.so)

.PHONY: check-snapshot
check-snapshot: $(SNAPSHOT)/symbols_test $(SNAPSHOT)/say $(PROBES) all
	$(Q)$(SNAPSHOT)/symbols_test --tap
	$(Q)$(PYTHON) tests/snapshot/run.py $(O)

# Twenty traces of all kinds, with and without a budget; a few minutes.
.PHONY: check-snapshot-all
check-snapshot-all: all
	$(Q)$(PYTHON) tests/snapshot/many.py $(O)

$(SNAPSHOT)/symbols_test: TEST_FLAGS = -DPROBE_DIR='"$(abspath $(SNAPSHOT))"' \
	-DPROBE_SOURCE='"$(abspath tests/snapshot/probe.cc)"'
$(SNAPSHOT)/symbols_test: TEST_LIBS = -lcriterion
$(SNAPSHOT)/symbols_test $(SNAPSHOT)/say: $(SNAPSHOT)/%: tests/snapshot/%.c $(O)/libgtread.a
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(SANFLAGS) $(TOOLS_CFLAGS) $(TEST_FLAGS) -o $@ $^ $(TOOLS_LIBS) \
		$(TEST_LIBS)

PROBE_CC = $(CXX) -O1 -g -fPIC -shared -fno-omit-frame-pointer -Wl,--build-id -o $@ \
	$(abspath tests/snapshot/probe.cc)

$(SNAPSHOT)/probe.so: tests/snapshot/probe.cc
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PROBE_CC)

$(SNAPSHOT)/probe-noaranges.so: $(SNAPSHOT)/probe.so
	$(Q)objcopy --remove-section .debug_aranges $< $@

$(SNAPSHOT)/probe-stripped.so: $(SNAPSHOT)/probe.so
	$(Q)strip -o $@ $<

# Another build-id, or the test would find one and the same object.
$(SNAPSHOT)/probe-split.so: tests/snapshot/probe.cc
	$(Q)mkdir -p $(@D)/debug/.build-id/ab
	$(Q)$(PROBE_CC) -Wl,--build-id=0xabcdef0123456789abcdef0123456789abcdef01
	$(Q)objcopy --only-keep-debug $@ \
		$(@D)/debug/.build-id/ab/cdef0123456789abcdef0123456789abcdef01.debug
	$(Q)strip $@
