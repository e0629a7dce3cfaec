# What the answers say of real trainings: categories to the byte, steps, growth, verdicts.
# check-answers is the everyday part; check-answers-all has every row of the tables.

CHECKS	+= answers

.PHONY: check-answers check-answers-all
check-answers: all
	$(Q)$(PYTHON) tests/answers/check.py $(O)

check-answers-all: all
	$(Q)$(PYTHON) tests/answers/check.py $(O) --all
