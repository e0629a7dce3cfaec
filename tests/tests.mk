# The everyday set: every suite of CHECKS, one summary. A suite is a target check-NAME that prints
# lines "ok CASE", "not ok CASE: why" or "skip CASE: why" and fails when a case does.

.PHONY: check
check: all
	$(Q)O=$(O) MAKE="$(MAKE)" tests/check $(sort $(CHECKS))

.PHONY: demo
demo:
	$(Q)O=$(O) MAKE="$(MAKE)" tests/demo
