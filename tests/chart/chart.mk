# Pictures of timeline, steps and diff: their numbers against the commands' own, read back by programs
# that are not ours (pdftotext, Pillow where it is, and the XML of Python).

CHECKS	+= chart
DEPS	+= libcairo2 fonts-dejavu-core poppler-utils

.PHONY: check-chart
check-chart: all $(if $(CUDA13),$(O)/pagetest/chain)
	$(Q)$(PYTHON) tests/chart/run.py $(O)
