# What the documents say against what there is. Every day: names, options, links (check.py). check-docs
# also runs what they show: sessions with their output (console.py), the differences of the cookbook's
# techniques against formulas (formulas.py), command lines (examples.py); some 5 minutes.

CHECKS += docs-static

.PHONY: check-docs check-docs-static
check-docs-static: all $(MAN_PAGES)
	$(Q)O=$(O) MAKE="$(MAKE)" $(PYTHON) tests/docs/check.py

check-docs: check-docs-static $(ANSWERS_PROGS)
	$(Q)$(PYTHON) tests/docs/console.py $(O)
	$(Q)$(PYTHON) tests/docs/examples.py $(O)
