# Native stack capture against libgcc and libunwind: the library's own objects with a recorder that
# keeps definitions in memory.

CHECKS += unwind unwind-trace unwind-torch
DEPS += libunwind8
T_STACKS := $(O)/stacks
STACK_OBJ := $(patsubst %,$(P)/%.c.o,stack_native unwind_own unwind_cfi unwind_other modules native_nodes redact \
	intern elf)
STACK_CFLAGS = $(CFLAGS_ALL) -D_GNU_SOURCE -Wno-missing-prototypes -pthread
STACK_CXXFLAGS = -std=gnu++17 -Wall -Wextra -Werror -Wno-unused-parameter -g -Iinclude -MMD -MP
CLANG := $(if $(filter x86_64,$(shell uname -m)),$(shell command -v clang))
STACK_GCC := gcc
STACK_WIDE := $(if $(filter x86_64,$(shell uname -m)),-mavx2)

# NAME|COMPILER|FLAGS with % for spaces; STACK_MORE for a machine's own
STACK_VARIANTS := gcc_O2|$(STACK_GCC)|-O2 gcc_O0|$(STACK_GCC)|-O0 \
	gcc_O2_fp|$(STACK_GCC)|-O2%-fno-omit-frame-pointer \
	gcc_O3_nofp|$(STACK_GCC)|-O3%-fomit-frame-pointer%$(STACK_WIDE) gcc_Os|$(STACK_GCC)|-Os \
	$(if $(CLANG),clang_O2|clang|-O2 clang_O0|clang|-O0 clang_O2_fp|clang|-O2%-fno-omit-frame-pointer)
STACK_VARIANTS += $(STACK_MORE)
variant = $(word $(2),$(subst |, ,$(1)))
variant_flags = $(subst %, ,$(call variant,$(1),3))
STACK_NAMES := $(foreach v,$(STACK_VARIANTS),$(call variant,$(v),1))

define STACK_VARIANT
$(T_STACKS)/hook_$(call variant,$(1),1).o: tests/stacks/hook.c
	@mkdir -p $$(@D)
	$$(Q)$(call variant,$(1),2) $$(STACK_CFLAGS) $(call variant_flags,$(1)) \
		-DHOOK=hook_$(call variant,$(1),1) -c -o $$@ $$<
$(T_STACKS)/scenes_$(call variant,$(1),1).o: tests/stacks/scenes.cc
	@mkdir -p $$(@D)
	$$(call say,CXX,$$< ($(call variant,$(1),1)))
	$$(Q)$(subst gcc,g++,$(subst clang,clang++,$(call variant,$(1),2))) $$(STACK_CXXFLAGS) \
		$(call variant_flags,$(1)) -DNAME=scenes_$(call variant,$(1),1) \
		-DFLAGS='"$(call variant,$(1),1)"' -c -o $$@ $$<
endef
$(foreach v,$(STACK_VARIANTS),$(eval $(call STACK_VARIANT,$(v))))

$(T_STACKS)/hooks.o: tests/stacks/hooks.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(STACK_CFLAGS) -DHOOKS='${STACK_NAMES:%=X(hook_%)}' \
		-DSCENES='${STACK_NAMES:%=X(scenes_%)}' -c -o $@ $<

$(T_STACKS)/%.o: tests/stacks/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(STACK_CFLAGS) -c -o $@ $<

UNWIND_OBJ := $(patsubst %,$(T_STACKS)/%.o,unwind check double hooks moving still jit) $(STACK_OBJ) \
	$(STACK_NAMES:%=$(T_STACKS)/hook_%.o) $(STACK_NAMES:%=$(T_STACKS)/scenes_%.o)

$(T_STACKS)/unwind: $(UNWIND_OBJ)
	$(call say,LD,$@)
	$(Q)$(CXX) -rdynamic -pthread -o $@ $^ -ldl -lgcc_s

$(T_STACKS)/moving.o $(T_STACKS)/unwind.o: CFLAGS += -fno-omit-frame-pointer
$(T_STACKS)/still.o: CFLAGS += -fomit-frame-pointer

$(T_STACKS)/corrupt: $(patsubst %,$(T_STACKS)/%.o,corrupt double) $(STACK_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) -pthread -o $@ $^ -ldl

# Its own tables are what it reads: other compilations of the scenes make them richer.
$(T_STACKS)/cfi_fuzz: $(T_STACKS)/cfi_fuzz.o $(filter-out $(T_STACKS)/unwind.o,$(UNWIND_OBJ))
	$(call say,LD,$@)
	$(Q)$(CXX) -pthread -o $@ $^ -ldl -lgcc_s

# Frames of other sizes in code of the same size; and the same code in another build.
$(T_STACKS)/module_%.so: tests/stacks/module.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(STACK_CFLAGS) -Wl,--build-id -fPIC -shared -DFRAME=$(word 1,$(subst _, ,$*)) \
		-DBUILD='"$(word 2,$(subst _, ,$*))"' -DINNER=inner_$(word 2,$(subst _, ,$*)) -o $@ $<

$(T_STACKS)/bare.so: tests/stacks/bare.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(STACK_CFLAGS) -fPIC -shared -fomit-frame-pointer -fno-asynchronous-unwind-tables \
		-fno-unwind-tables -o $@ $<

STACK_MODULES := $(patsubst %,$(T_STACKS)/module_%.so,200_a 200_b 296_a) $(T_STACKS)/bare.so

$(T_STACKS)/torch_check.so: $(patsubst %,$(T_STACKS)/pic_%.o,torch_check check double) $(STACK_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,--wrap=gt_walk -o $@ $^ -pthread -ldl -lgcc_s

$(T_STACKS)/pic_%.o: tests/stacks/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(STACK_CFLAGS) -fPIC -fvisibility=hidden -c -o $@ $<

.PHONY: check-unwind
check-unwind: $(T_STACKS)/unwind $(T_STACKS)/corrupt $(T_STACKS)/cfi_fuzz $(STACK_MODULES)
	$(Q)timeout 120 $(T_STACKS)/unwind $(STACK_MODULES) $(T_STACKS)
	$(Q)for u in libgcc libunwind; do CHECK_UNWINDER=$$u timeout 120 $(T_STACKS)/unwind \
		$(STACK_MODULES) $(T_STACKS) || exit 1; done
	$(Q)timeout 120 $(T_STACKS)/corrupt $(firstword $(STACK_MODULES)) $(T_STACKS) 1000
	$(Q)timeout 120 $(T_STACKS)/cfi_fuzz 1000000

$(T_STACKS)/bench: tests/bench/unwind.c $(T_STACKS)/double.o $(STACK_OBJ)
	$(call say,CC,$@)
	$(Q)$(CC) $(STACK_CFLAGS) -o $@ $(filter %.c %.o,$^) -ldl -lgcc_s

.PHONY: bench-unwind
bench-unwind: $(T_STACKS)/bench
	$(Q)$(T_STACKS)/bench

$(T_STACKS)/replaced: tests/stacks/replaced.c $(wildcard $(O)/sim/libcuda.so.1) | sim
	@mkdir -p $(@D)
	$(Q)[ ! -e $(O)/sim/libcuda.so.1 ] || $(CC) $(STACK_CFLAGS) -Wno-missing-prototypes -o $@ $< \
		$(O)/sim/libcuda.so.1 -ldl

.PHONY: check-unwind-trace
check-unwind-trace: all $(T_STACKS)/replaced $(STACK_MODULES)
	$(Q)tests/stacks/trace_test $(O) $(wordlist 1,2,$(STACK_MODULES))

.PHONY: check-unwind-mutants
check-unwind-mutants: $(UNWIND_OBJ) $(STACK_MODULES)
	$(Q)MUTANT_CC='$(CC) $(filter-out -MMD -MP,$(STACK_CFLAGS)) $(PRELOAD_CFLAGS) -iquote preload' \
		MUTANT_LD='$(CXX) -rdynamic -pthread' tests/stacks/mutants $(T_STACKS)/mutant \
		$(UNWIND_OBJ) -- $(STACK_MODULES) $(T_STACKS)

# 20 rounds are more than 100,000 captures.
.PHONY: check-unwind-torch check-unwind-torch-all
check-unwind-torch-all: ROUNDS := 20
check-unwind-torch check-unwind-torch-all: $(T_STACKS)/torch_check.so $(O)/libgputrace.so sim
	$(Q)GT_BUILD=$(abspath $(O)) tests/stacks/torch_test $< $(O)/libgputrace.so $(ROUNDS)

-include $(wildcard $(T_STACKS)/*.d)
