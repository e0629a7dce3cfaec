# Exports, opened by readers that are not ours, and the server of the Model Context Protocol.
# check-exports is the everyday part, without packages of PyPI but the protocol's client;
# check-exports-all reads the files with others too.

CHECKS += exports

.PHONY: check-exports check-exports-all
check-exports: all
	$(Q)$(MAKE) -s $(MARKS_BIN)
	$(Q)$(PYTHON) tests/exports/run.py $(O)
	$(Q)$(PYTHON) tests/exports/talk.py $(O)
	$(Q)GT_BUILD=$(abspath $(O)) tests/exports/python client tests/exports/client.py $(O) || \
		{ [ $$? = 77 ] && echo "skip client: no environment can be made here"; }

check-exports-all: check-exports
	$(Q)$(PYTHON) tests/exports/talk.py $(O) endless
	$(Q)GT_BUILD=$(abspath $(O)) tests/exports/python readers tests/exports/readers.py $(O) || \
		{ [ $$? = 77 ] && echo "skip readers: no environment can be made here"; }
