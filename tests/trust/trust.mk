# Trust: killed, forked, starved, attacked, combined. tests/trust/cases.py has the cases that no other
# suite has; tests/trust/run collects those of all suites in one table.
#   make check-trust   the quick cases of its own; trust-quick: the table from everyday sizes;
#   make trust         the table from everything; make soak SECONDS=3600; make fuzz RUNS=1000000

CHECKS += trust
TRUST	:= $(O)/tests/trust
TRUST_BIN := $(if $(CUDA13),$(TRUST)/victim $(TRUST)/victim-ubsan $(TRUST)/blocked)
TRUST_ENV = O=$(O) CC=$(CC) MAKE="$(MAKE)"

.PHONY: check-trust trust trust-quick
check-trust: all
	$(Q)$(MAKE) -s $(TRUST_BIN)
	$(Q)$(TRUST_ENV) $(PYTHON) tests/trust/cases.py

$(TRUST)/victim $(TRUST)/victim-ubsan: tests/trust/victim.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(if $(findstring ubsan,$@),-fsanitize=undefined -fno-sanitize-recover=undefined) -rdynamic -o $@ $< $(O)/sim/libcuda.so.1 -pthread

$(TRUST)/blocked: tests/trust/blocked.c $(TRUST)/wait/libcuda.so.1
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $< $(TRUST)/wait/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/wait',--disable-new-dtags -ldl -pthread

$(TRUST)/wait/libcuda.so.1: tests/trust/blocked.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -DDRIVER -fPIC -shared -Wl,-soname,$(@F) -o $@ $<
