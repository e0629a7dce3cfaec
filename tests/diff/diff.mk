# gputrace diff on random traffic and on real trainings: sums, alignment, windows, limits.

CHECKS	+= diff

.PHONY: check-diff
check-diff: all
	$(Q)$(PYTHON) tests/diff/run.py $(O)
