# Interposition: every way to the driver counts once, and no program can tell that we are there.

CHECKS += interpose
DEPS += binutils

INTERPOSE := $(O)/tests/interpose
INTERPOSE_CC = $(CC) $(CFLAGS_ALL) -D_GNU_SOURCE $(filter %.c,$^)
INTERPOSE_BIN = $(addprefix $(INTERPOSE)/,reach lookup libother_dlsym.so libdriver_names.so absent libearly.so \
	odd strange/libcuda.so.1 strange/libodd_inner.so two/program libaudit.so reach-asan \
	$(if $(CUDA13),reach-elf locks liballocator.so liblocks1.so liblocks2.so children runtime-13 runtime-static) $(if $(CUDA12),runtime-12))

BUILT	+= $(INTERPOSE_BIN)
# Which of them can be built is known once the headers have been looked for, so not before the recipe.
.PHONY: check-interpose
check-interpose: all
	$(Q)$(MAKE) -s $(INTERPOSE_BIN)
	$(Q)O=$(O) CC=$(CC) CXX=$(CXX) CUDA_HEADERS="$(CUDA13) $(CUDA12)" $(PYTHON) tests/interpose/run

$(INTERPOSE)/reach $(INTERPOSE)/absent $(INTERPOSE)/odd: $(INTERPOSE)/%: tests/interpose/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -o $@ -ldl

$(INTERPOSE)/reach-elf: tests/interpose/reach.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -DELF -o $@ $(O)/sim/libcuda.so.1 -ldl

# A program whose sanitizer must be the first object; not every machine has one.
$(INTERPOSE)/reach-asan: tests/interpose/reach.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -fsanitize=address -o $@ -ldl 2>/dev/null || echo "  note    no address sanitizer here"

$(INTERPOSE)/libaudit.so: tests/interpose/audit.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes -fPIC -shared -o $@ $<

$(INTERPOSE)/locks: tests/interpose/locks.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -o $@ $(O)/sim/libcuda.so.1 -ldl -pthread

$(INTERPOSE)/liblocks1.so $(INTERPOSE)/liblocks2.so: tests/interpose/locks.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -DLIBRARY -fPIC -shared -Wl,-soname,$(@F) -o $@ $(O)/sim/libcuda.so.1

$(INTERPOSE)/liballocator.so: tests/interpose/locks.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -DALLOCATOR -fno-builtin -fPIC -shared -o $@ -pthread

$(INTERPOSE)/libearly.so: tests/interpose/reach.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -DEARLY -fPIC -shared -Wl,-soname,$(@F) -o $@ -ldl

$(INTERPOSE)/children: tests/interpose/children.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -o $@ $(O)/sim/libcuda.so.1

$(INTERPOSE)/runtime-%: tests/interpose/runtime.c $(O)/sim/libcudart.so.%
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -o $@ $(O)/sim/libcudart.so.$* -ldl

$(INTERPOSE)/runtime-static: tests/interpose/runtime.c $(O)/sim/libcudart_static.a
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -o $@ $(filter %.a,$^) -ldl -pthread

$(INTERPOSE)/libfirst.so $(INTERPOSE)/libsecond.so: $(INTERPOSE)/lib%.so: tests/interpose/lookup_lib.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -fPIC -shared -Wl,-soname,$(@F) -DPREFIX=$* -DNUMBER=$(if $(filter first,$*),1,2) -o $@ -ldl

$(INTERPOSE)/libdriver_names.so: tests/interpose/lookup_lib.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -fPIC -shared -Wl,-soname,$(@F) -DPREFIX=third -DNUMBER=3 -DDRIVER_NAMES -o $@ -ldl

$(INTERPOSE)/libother_dlsym.so: tests/interpose/other_dlsym.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -fPIC -shared -Wl,-soname,$(@F) -Wno-missing-prototypes -o $@ -ldl

$(INTERPOSE)/lookup: tests/interpose/lookup.c $(INTERPOSE)/libfirst.so $(INTERPOSE)/libsecond.so
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) -o $@ -Wl,-rpath,'$$ORIGIN' -Wl,--no-as-needed $(INTERPOSE)/libfirst.so \
		$(INTERPOSE)/libsecond.so -ldl

$(INTERPOSE)/strange/libcuda.so.1 $(INTERPOSE)/strange/libodd_inner.so: tests/interpose/odd_driver.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(INTERPOSE_CC) $(if $(findstring inner,$@),-DINNER) -fPIC -shared -Wl,-soname,$(@F) -o $@ -ldl

$(INTERPOSE)/two/libcudart.so.%: tests/interpose/two_runtimes.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(@F) { cudaMalloc; };' >$@.map
	$(Q)$(INTERPOSE_CC) -DRUNTIME=$* -fPIC -shared -Wl,-soname,$(@F) -Wl,--version-script=$@.map -o $@

$(INTERPOSE)/two/libcaller.so: tests/interpose/two_runtimes.c $(INTERPOSE)/two/libcudart.so.12
	$(call say,CC,$@)
	$(Q)$(INTERPOSE_CC) -DCALLER -fPIC -shared -Wl,-soname,$(@F) -o $@ $(filter %.12,$^) -Wl,-rpath,'$$ORIGIN'

$(INTERPOSE)/two/program: tests/interpose/two_runtimes.c $(INTERPOSE)/two/libcudart.so.13 \
	$(INTERPOSE)/two/libcaller.so
	$(call say,CC,$@)
	$(Q)$(INTERPOSE_CC) -o $@ $(filter %.13,$^) -Wl,-rpath,'$$ORIGIN' -ldl
