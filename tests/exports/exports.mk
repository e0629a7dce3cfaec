# Exports, opened by readers that are not ours. check-exports is the everyday part and downloads
# nothing; check-exports-all reads them with packages of PyPI too.

CHECKS += exports

.PHONY: check-exports check-exports-all
check-exports: all
	$(Q)$(MAKE) -s $(MARKS_BIN)
	$(Q)$(PYTHON) tests/exports/run.py $(O)

check-exports-all: check-exports
	$(Q)GT_BUILD=$(abspath $(O)) tests/exports/python tests/exports/readers.py $(O) || \
		{ [ $$? = 77 ] && echo "skip readers: no environment can be made here"; }
