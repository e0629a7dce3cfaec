# The parts of the page that `gputrace html` writes: scripts, style and the used part of d3 become data
# of the tool.

DEPS	+= node-d3 zlib1g-dev

PAGE	:= $(O)/page
PAGE_D3	?= /usr/share/nodejs
PAGE_PARTS := $(wildcard tools/page/*.js tools/page/*.css tools/page/*.html)

$(PAGE)/hashes.h: tools/page/bundle.py $(PAGE_PARTS)
	$(call say,BUNDLE,$(PAGE))
	$(Q)mkdir -p $(PAGE)
	$(Q)$(PYTHON) tools/page/bundle.py $(PAGE) $(PAGE_D3)

$(O)/tools/page/%.o: TOOLS_CFLAGS += -I$(PAGE) -DGT_PAGE_DIR='"$(PAGE)"'
$(O)/tools/page/embed.o $(O)/tools/page/write.o: $(PAGE)/hashes.h
