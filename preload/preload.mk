# libgputrace.so and libgputrace-nop.so. Both export exactly the names of hooks.def, need libc only and
# resolve everything at load time; zstd is linked in and hidden. Compiled without CUDA headers.
# RECORDER_SRC is the part that records, without hooks and stacks: what the recorder's tests build.

P	:= $(O)/preload
NOP_SRC := preload/nop.c preload/resolve.c preload/elf.c preload/hook_runtime.c \
	   preload/doctor.c preload/os.c \
	   preload/dlsym_x86_64.S preload/dlsym_aarch64.S
LIB_SRC := $(filter-out preload/nop.c,$(wildcard preload/*.c preload/*.S))
NOP_OBJ := $(NOP_SRC:preload/%=$(P)/%.o)
LIB_OBJ := $(LIB_SRC:preload/%=$(P)/%.o)
RECORDER_SRC := $(addprefix preload/,os.c options.c redact.c start.c truncated.c fork.c file.c extent.c clock.c defs.c \
	index.c site.c lane.c commit.c ring.c columns.c oom.c nvml.c marks.c doctor.c)

DEPS	+= libzstd-dev libxxhash-dev
ALL	+= $(if $(wildcard preload/stack_native.c),$(O)/libgputrace.so) $(O)/libgputrace-nop.so

# nodelete: our addresses are with the program, in its tables, its environment and its loader.
# -Bsymbolic-functions: the table of wrappers holds ours even if another library exports the same name.
PRELOAD_CFLAGS := -fPIC -fvisibility=hidden -fasynchronous-unwind-tables -D_GNU_SOURCE
PRELOAD_LDFLAGS = -shared -Wl,-z,defs,-z,now,-z,noexecstack,-z,nodelete -Wl,-Bsymbolic-functions \
	-Wl,--exclude-libs,ALL -Wl,--version-script=$(P)/exports.map -Wl,-soname,$(@F)

$(P)/%.o: preload/%
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(filter-out $(SANFLAGS),$(CFLAGS_ALL)) $(PRELOAD_CFLAGS) -c -o $@ $<

$(P)/exports.map: preload/exports.in preload/hooks.def
	@mkdir -p $(@D)
	$(call say,CPP,$@)
	$(Q)$(CC) -E -P -x c -o $@ $<

$(O)/libgputrace-nop.so: $(NOP_OBJ) $(P)/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) $(PRELOAD_LDFLAGS) -o $@ $(NOP_OBJ)

$(O)/libgputrace.so: $(LIB_OBJ) $(P)/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) $(PRELOAD_LDFLAGS) -o $@ $(LIB_OBJ) -l:libzstd.a

-include $(NOP_OBJ:.o=.d) $(LIB_OBJ:.o=.d)
