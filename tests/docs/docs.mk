# What the documents say against what there is: tests/docs/check.py.

CHECKS += docs

.PHONY: check-docs
check-docs: all
	$(Q)O=$(O) MAKE="$(MAKE)" $(PYTHON) tests/docs/check.py
