# Coverage: every hook through every way to the driver; the simulator's books against the trace; real
# runtimes and clients. `make check-coverage` is all of it, the suites in CHECKS the everyday part.

CHECKS += ledger matrix
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
	$(Q)$(if $(CUDA13),O=$(O) $(PYTHON) tests/coverage/matrix,echo "skip matrix: no CUDA headers here")
