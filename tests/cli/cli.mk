# The commands as people type them: screens against expected text, JSON keys, exit statuses.

CHECKS	+= cli
DEPS	+= python3

.PHONY: check-cli
check-cli: all
	$(Q)$(PYTHON) tests/cli/run.py $(O)
