# Coverage: every hook through every way to the driver; the simulator's books against the trace; real
# runtimes and clients. `make check-coverage` is all of it, the suites in CHECKS the everyday part.

CHECKS += ledger matrix toolkit
COVERAGE := $(O)/tests/coverage

$(COVERAGE)/libcheckpoint.so: tests/coverage/checkpoint.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -shared -o $@ $<

$(COVERAGE)/libways.so: tests/coverage/ways.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -fPIC -shared -o $@ $^ -ldl

.PHONY: check-ledger check-matrix
check-ledger: all $(COVERAGE)/libcheckpoint.so
	$(Q)O=$(O) $(PYTHON) tests/coverage/ledger 100000 1000

check-matrix: all $(if $(CUDA13),$(COVERAGE)/libways.so)
	$(Q)$(if $(CUDA13),O=$(O) $(PYTHON) tests/coverage/matrix.py,echo "skip matrix: no CUDA headers here")

# The real runtime of a toolkit, where there is one.
TOOLKIT_SHARED := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcudart.so.1[23] $(CUDA_HOME)/lib64/libcudart.so))
TOOLKIT_STATIC := $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a)
TOOLKIT := $(if $(TOOLKIT_SHARED),$(COVERAGE)/toolkit-shared) $(if $(TOOLKIT_STATIC),$(COVERAGE)/toolkit-static)

$(COVERAGE)/libwatch.so: tests/coverage/watch.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -fPIC -shared -o $@ $< -ldl

$(COVERAGE)/toolkit-shared: tests/interpose/runtime.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $< $(TOOLKIT_SHARED) -Wl,-rpath,$(CUDA_HOME)/lib64 \
		-Wl,--disable-new-dtags -ldl

$(COVERAGE)/toolkit-static: tests/interpose/runtime.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $< $(TOOLKIT_STATIC) -ldl -lpthread -lrt -lm

.PHONY: check-toolkit
check-toolkit: all $(COVERAGE)/libwatch.so $(TOOLKIT)
	$(Q)$(if $(strip $(TOOLKIT)),O=$(O) $(PYTHON) tests/coverage/toolkit $(TOOLKIT),\
		echo "skip toolkit: no CUDA toolkit in $(CUDA_HOME)")

# All of it. The torch versions are those of tests/torch/python.
TORCH_VERSIONS ?= 2.1.2 2.4.1 2.6.0 2.11.0 2.15.0
.PHONY: check-settings check-clients check-coverage check-coverage-all
check-settings: all
	$(Q)O=$(O) $(PYTHON) tests/coverage/torch $(SETTINGS)

check-clients: all
	$(Q)O=$(O) $(PYTHON) tests/coverage/clients

check-coverage: all $(COVERAGE)/libcheckpoint.so
	$(Q)O=$(O) MAKE="$(MAKE)" tests/check matrix interpose toolkit clients settings ledger-long

check-coverage-all: check-coverage
	$(Q)for v in $(TORCH_VERSIONS); do TORCH=$$v $(MAKE) -s check-settings || exit 1; done

.PHONY: check-ledger-long
check-ledger-long: all $(COVERAGE)/libcheckpoint.so
	$(Q)O=$(O) $(PYTHON) tests/coverage/ledger 1000000 1000
