# gputrace plan and compare: the worked example, formulas, forecasts against runs, the experiment table.

CHECKS	+= plan

.PHONY: check-plan
check-plan: all
	$(Q)$(PYTHON) tests/plan/run.py $(O)
