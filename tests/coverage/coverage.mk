# Coverage: every hook through every way to the driver; the simulator's books against the trace; real
# runtimes and clients. `make check-coverage` is all of it, the suites in CHECKS the everyday part.

CHECKS += ledger matrix reports toolkit
COVERAGE := $(O)/tests/coverage

$(COVERAGE)/libcheckpoint.so: tests/coverage/checkpoint.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -shared -o $@ $<

$(COVERAGE)/libways.so: tests/coverage/ways.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -fPIC -shared -o $@ $^ -ldl

# The runtime as a copy inside a library, where no name of it can be seen or replaced.
$(COVERAGE)/libways-static.so: tests/coverage/ways.c $(O)/sim/libcudart_static.a $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -fPIC -shared -o $@ $< -Wl,--whole-archive $(filter %.a,$^) \
		-Wl,--no-whole-archive $(filter %.1,$^) -ldl -pthread

# A pool that was destroyed with blocks in it, and lost some of them before a checkpoint.
SEED_DESTROYED := 738
# A mipmapped array of more levels than it has texels to halve, alive at a checkpoint.
SEED_FEW_TEXELS := 948

.PHONY: check-ledger check-matrix
check-ledger: all $(COVERAGE)/libcheckpoint.so
	$(Q)status=0; O=$(O) $(PYTHON) tests/coverage/ledger 100000 1000 || status=1; \
	O=$(O) GT_SIM_DEVICES=4 $(PYTHON) tests/coverage/ledger 2000 2000 $(SEED_DESTROYED) || status=1; \
	O=$(O) GT_SIM_DEVICES=4 $(PYTHON) tests/coverage/ledger 14000 2000 $(SEED_FEW_TEXELS) || status=1; exit $$status

check-matrix: all $(if $(CUDA13),$(COVERAGE)/libways.so $(COVERAGE)/libways-static.so)
	$(Q)$(if $(CUDA13),O=$(O) $(PYTHON) tests/coverage/matrix.py,echo "skip matrix: no CUDA headers here")

# The vendor's runtimes: those of a toolkit, else those that came with the headers (sim-deps).
vendor = $(firstword $(wildcard $(CUDA_HOME)/lib64/$(1) $(O)/deps/cu13/lib/$(1) $(O)/deps/cu12/lib/$(1)))
TOOLKIT_12 := $(call vendor,libcudart.so.12)
TOOLKIT_13 := $(call vendor,libcudart.so.13)
TOOLKIT_STATIC := $(call vendor,libcudart_static.a)
TOOLKIT := $(if $(TOOLKIT_12),$(COVERAGE)/toolkit-12) $(if $(TOOLKIT_13),$(COVERAGE)/toolkit-13) \
	   $(if $(TOOLKIT_STATIC),$(COVERAGE)/toolkit-static)

$(COVERAGE)/libwatch.so: tests/coverage/watch.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -fPIC -shared -o $@ $< -ldl

$(COVERAGE)/toolkit-12 $(COVERAGE)/toolkit-13: $(COVERAGE)/toolkit-%: tests/interpose/runtime.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $< $(TOOLKIT_$*) -Wl,-rpath,$(abspath $(dir $(TOOLKIT_$*))) \
		-Wl,--disable-new-dtags -ldl

$(COVERAGE)/toolkit-static: tests/interpose/runtime.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $< $(TOOLKIT_STATIC) -ldl -lpthread -lrt -lm

.PHONY: check-toolkit
check-toolkit: all $(COVERAGE)/libwatch.so $(TOOLKIT)
	$(Q)for v in $(if $(TOOLKIT_12),,12) $(if $(TOOLKIT_13),,13) $(if $(TOOLKIT_STATIC),,static); do \
		echo "skip toolkit-$$v: no such runtime in $(CUDA_HOME), and make deps has fetched none"; done
	$(Q)$(if $(strip $(TOOLKIT)),O=$(O) $(PYTHON) tests/coverage/toolkit $(TOOLKIT))

# All of it. The torch versions are those of tests/torch/python: one of each CUDA, or all.
TORCH_VERSIONS ?= 2.1.2 2.4.1 2.6.0 2.11.0 2.15.0
COVERED := matrix interpose marks toolkit clients reports
.PHONY: check-settings check-clients check-coverage check-coverage-all check-reports
check-reports:
	$(Q)$(PYTHON) tests/coverage/reports

$(COVERAGE)/libpluggable%.so: tests/coverage/pluggable.c $(O)/sim/libcudart.so.%
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -shared -o $@ $^

check-settings: all $(if $(CUDA13),$(COVERAGE)/libpluggable13.so) $(if $(CUDA12),$(COVERAGE)/libpluggable12.so)
	$(Q)O=$(O) $(PYTHON) tests/coverage/torch $(SETTINGS)

check-clients: all
	$(Q)O=$(O) CUDA_HEADERS="$(CUDA13)" $(PYTHON) tests/coverage/clients

# The allocator's settings and the ranges of one version: check-settings-2.6.0.
check-settings-%: all
	$(Q)TORCH=$* $(MAKE) -s check-settings check-ranges

check-coverage: all
	$(Q)O=$(O) MAKE="$(MAKE)" LIMIT=1800 SHOW=matrix tests/check $(COVERED) settings-2.6.0 settings-2.11.0 ledger-long

check-coverage-all: all
	$(Q)O=$(O) MAKE="$(MAKE)" LIMIT=1800 SHOW=matrix tests/check $(COVERED) $(TORCH_VERSIONS:%=settings-%) ledger-long

.PHONY: check-ledger-long
check-ledger-long: all $(COVERAGE)/libcheckpoint.so
	$(Q)O=$(O) $(PYTHON) tests/coverage/ledger 1150000 1000
