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

# The progress bar, on a terminal whose clock is fast.
CHECKS += progress
CLI_CLOCK := $(O)/tests/cli/clock.so

.PHONY: check-progress
check-progress: $(CLI_CLOCK) all
	$(Q)$(PYTHON) tests/cli/progress.py $(O) $(CLI_CLOCK)

$(CLI_CLOCK): tests/cli/clock.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -shared -o $@ $<
