# The commands as people type them: screens against expected text, JSON keys, exit statuses.

CHECKS	+= cli
DEPS	+= python3

.PHONY: check-cli
check-cli: all
	$(Q)$(PYTHON) tests/cli/run.py $(O)

# The whole tool with sanitizers, in a build folder of its own: what it reads is hostile.
CHECKS	+= damaged
TOOL_SAN := $(O)/san
TOOL_SANITIZERS := address,undefined

BUILT	+= tool-san
.PHONY: check-damaged tool-san
tool-san: all
	$(Q)$(MAKE) -s $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc)) O=$(TOOL_SAN) SAN=$(or $(SAN),$(TOOL_SANITIZERS)) $(TOOL_SAN)/gputrace

check-damaged: tool-san
	$(Q)$(PYTHON) tests/cli/damaged.py $(O) $(TOOL_SAN)/gputrace
