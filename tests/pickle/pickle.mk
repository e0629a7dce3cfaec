# torch's memory snapshots as input: read, told again by value, damaged, joined with a trace.

CHECKS += pickle

.PHONY: check-pickle
check-pickle: all
	$(Q)$(PYTHON) tests/pickle/run.py $(O)
