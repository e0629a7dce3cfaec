# build/man: the manual pages. Those of the commands are made from --help, that of the format from
# docs/format.md; libgputrace.7 is written by hand.

DEPS += help2man lowdown

MAN_DIR := $(O)/man
MAN_COMMANDS := $(shell sed -n 's/^\t\t\.name = "\([a-z]*\)",$$/\1/p' tools/main.c)
# Without the two converters make install leaves the pages out and says so.
MAN_TOOLS := $(and $(shell command -v help2man),$(shell command -v lowdown))
MAN_PAGES := $(if $(MAN_TOOLS),$(addprefix $(MAN_DIR)/,gputrace.1 $(MAN_COMMANDS:%=gputrace-%.1) \
	libgputrace.7 gputrace-format.5))

.PHONY: man
man: $(MAN_PAGES)

$(MAN_DIR)/gputrace.1: $(O)/gputrace docs/man/page docs/man/gputrace.h2m
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D) && docs/man/page $(O)/gputrace >$@.new && mv $@.new $@

$(MAN_DIR)/gputrace-%.1: $(O)/gputrace docs/man/page docs/man/command.h2m
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D) && docs/man/page $(O)/gputrace $* >$@.new && mv $@.new $@

# Links have nowhere to lead on a page, and the list of contents is nothing but links.
$(MAN_DIR)/gputrace-format.5: docs/format.md docs/man/man.mk
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)(printf '# NAME\n\ngputrace-format - the file that holds a trace\n\n'; \
		sed -E -e '/\]\(#/d' -e 's/\[([^]]*)\]\([^)]*\)/\1/g' $<) | \
		lowdown -sTman -M title=gputrace-format -M section=5 | \
		sed -e 's/\\fC/\\fB/g' -e 's/^gputrace-format - /gputrace\\-format \\- /' >$@.new
	$(Q)mv $@.new $@

$(MAN_DIR)/libgputrace.7: docs/man/libgputrace.7
	$(Q)mkdir -p $(@D) && cp $< $@
