# The everyday set: every suite of CHECKS, one summary. A suite is a target check-NAME that prints
# lines "ok CASE", "not ok CASE: why" or "skip CASE: why" and fails when a case does. As many suites run at
# a time as there are processors, up to four; so that no two of them build the same file, everything is built
# before. A suite that builds more than its prerequisites names a target for that in BUILT.

JOBS	?= $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))

.PHONY: check tests-built built-late
check: tests-built
	$(Q)O=$(O) MAKE="$(MAKE)" JOBS=$(JOBS) tests/check $(sort $(CHECKS))

tests-built: all
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) BUILD_ONLY=1 $(CHECKS:%=check-%)
	$(Q)$(MAKE) --no-print-directory built-late

# A make of its own: what can be built is known once the headers are there.
built-late:
	$(Q)$(MAKE) -s --no-print-directory -j$(shell nproc) $(sort $(BUILT))

# The prerequisites of a suite without the suite.
ifdef BUILD_ONLY
check-%: private SHELL := /bin/true
endif

.PHONY: demo
demo:
	$(Q)O=$(O) MAKE="$(MAKE)" tests/demo
