# build/gputrace, and build/libgtread.a: everything but main and the commands, for the unit tests.

# cairo by its headers alone: see chart/cairo.c
DEPS += pkg-config libcairo2-dev libzstd-dev libxxhash-dev uthash-dev libdw-dev libelf-dev libiberty-dev libjansson-dev libsqlite3-dev libncurses-dev
ALL  += $(O)/gputrace

TOOLS_PKGS   := libzstd libdw libelf jansson zlib sqlite3 ncursesw
TOOLS_HEADERS = $(shell pkg-config --cflags $(TOOLS_PKGS) 2>/dev/null)
TOOLS_CFLAGS  = -Itools $(TOOLS_HEADERS)
TOOLS_LIBS    = $(shell pkg-config --libs $(TOOLS_PKGS)) -liberty -lm -ldl -pthread

TOOLS_SRC := $(sort $(wildcard tools/*.c tools/*/*.c))
TOOLS_OBJ := $(TOOLS_SRC:%.c=$(O)/%.o)
READ_OBJ  := $(filter-out $(O)/tools/main.o $(O)/tools/cmd/%,$(TOOLS_OBJ))

# A new file, a new compiler or other sanitizers must not meet old objects.
TOOLS_STAMP := $(O)/tools/flags
$(TOOLS_STAMP): FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(CC) $(CFLAGS_ALL) $(SANFLAGS) $(TOOLS_SRC)' | cmp -s - $@ || \
		echo '$(CC) $(CFLAGS_ALL) $(SANFLAGS) $(TOOLS_SRC)' >$@
.PHONY: FORCE

$(O)/tools/%.o: tools/%.c $(TOOLS_STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(SANFLAGS) $(TOOLS_CFLAGS) -c -o $@ $<

$(O)/gputrace: $(TOOLS_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(TOOLS_LIBS)

$(O)/libgtread.a: $(READ_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

include tools/page/page.mk

-include $(TOOLS_OBJ:.o=.d)
