# A thousand ranks in one folder: the summary, metrics and SQL over all of them.

.PHONY: check-ranks
check-ranks: all
	$(Q)$(PYTHON) tests/ranks/run.py $(O)
