# Coverage: every hook through every way to the driver; the simulator's books against the trace; real
# runtimes and clients. `make check-coverage` is all of it, check-ledger the everyday part.

CHECKS += ledger
COVERAGE := $(O)/tests/coverage

$(COVERAGE)/libcheckpoint.so: tests/coverage/checkpoint.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -shared -o $@ $<

.PHONY: check-ledger
check-ledger: all $(COVERAGE)/libcheckpoint.so
	$(Q)O=$(O) $(PYTHON) tests/coverage/ledger 100000 1000
