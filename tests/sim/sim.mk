# The simulated CUDA stack: driver, runtimes, NVML. See tests/sim/driver/sim.h.
#
# It compiles against CUDA headers: a toolkit's where there is one, else those that `make deps`
# has taken from PyPI. Without headers the rest of the project still builds.

SIM	:= $(O)/sim
SIM_DIR	:= tests/sim
CUDA_HOME ?= /usr/local/cuda
cuda_headers = $(firstword $(foreach d,$(2) $(CUDA_HOME)/include $(O)/deps/cu$(1),\
	$(if $(shell grep -s 'define CUDA_VERSION $(1)' $(d)/cuda.h),$(d))))
CUDA13	?= $(call cuda_headers,13)
CUDA12	?= $(call cuda_headers,12)
# The 12 runtime's wheel leaves out crt/, which has not changed since.
CUDA12_CRT := $(patsubst %/crt,%,$(firstword $(wildcard $(addsuffix /crt,$(CUDA12) $(CUDA13)))))

SIM_CFLAGS = $(CFLAGS_ALL) -fPIC -pthread
SIM_LDFLAGS = -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,-soname,$(@F) -pthread -ldl

sim_driver_o := $(patsubst $(SIM_DIR)/%.c,$(SIM)/%.o,$(wildcard $(SIM_DIR)/driver/*.c))
sim_rt_c := $(wildcard $(SIM_DIR)/runtime/*.c)
# ordered.c twice: see there.
sim_rt_o := $(patsubst $(SIM_DIR)/runtime/%.c,%.o,$(sim_rt_c)) ordered-pt.o
sim_rt13_o := $(addprefix $(SIM)/rt13/,$(sim_rt_o))
sim_rt12_o := $(addprefix $(SIM)/rt12/,$(sim_rt_o))

sim_rts_o := $(addprefix $(SIM)/rts/,$(sim_rt_o))

SIM_LIBS := $(if $(CUDA13),$(SIM)/libcuda.so.1 $(SIM)/libcudart.so.13 $(SIM)/libnvidia-ml.so.1 \
	    $(SIM)/libcudart_static.a) \
	    $(if $(CUDA12),$(SIM)/libcudart.so.12)

DEPS	+= python3-pip
ALL	+= sim
CHECKS += sim

.PHONY: sim sim-deps check-sim
sim: $(SIM_LIBS)
ifeq ($(CUDA13),)
sim:
	@echo "  note    no CUDA headers: the simulated CUDA stack is left out (make deps gets them)"
endif

$(SIM)/driver/%.o: $(SIM_DIR)/driver/%.c | $(SIM)/driver
	$(call say,CC,$<)
	$(Q)$(CC) $(SIM_CFLAGS) -isystem $(CUDA13) -c $< -o $@

$(SIM)/rt13/%.o: $(SIM_DIR)/runtime/%.c | $(SIM)/rt13
	$(call say,CC,$< (13))
	$(Q)$(CC) $(SIM_CFLAGS) -isystem $(CUDA13) -c $< -o $@

$(SIM)/rt12/%.o: $(SIM_DIR)/runtime/%.c | $(SIM)/rt12 $(SIM)/crt12/crt
	$(call say,CC,$< (12))
	$(Q)$(CC) $(SIM_CFLAGS) -isystem $(CUDA12) -isystem $(SIM)/crt12 -c $< -o $@

$(SIM)/rt13/ordered-pt.o: $(SIM_DIR)/runtime/ordered.c | $(SIM)/rt13
	$(call say,CC,$< (13, per thread))
	$(Q)$(CC) $(SIM_CFLAGS) -DCUDA_API_PER_THREAD_DEFAULT_STREAM -isystem $(CUDA13) -c $< -o $@

$(SIM)/rt12/ordered-pt.o: $(SIM_DIR)/runtime/ordered.c | $(SIM)/rt12 $(SIM)/crt12/crt
	$(call say,CC,$< (12, per thread))
	$(Q)$(CC) $(SIM_CFLAGS) -DCUDA_API_PER_THREAD_DEFAULT_STREAM -isystem $(CUDA12) \
		-isystem $(SIM)/crt12 -c $< -o $@

# Only this one folder of the other version may be seen, not its headers.
$(SIM)/crt12/crt:
	$(Q)mkdir -p $(@D) && ln -sfn $(abspath $(CUDA12_CRT))/crt $@

# The static runtime: one object whose symbols become local in whatever is linked with it.
$(SIM)/rts/%.o: $(SIM_DIR)/runtime/%.c | $(SIM)/rts
	$(call say,CC,$< (static))
	$(Q)$(CC) $(SIM_CFLAGS) -fvisibility=hidden -DRT_STATIC -isystem $(CUDA13) -c $< -o $@

$(SIM)/rts/ordered-pt.o: $(SIM_DIR)/runtime/ordered.c | $(SIM)/rts
	$(call say,CC,$< (static, per thread))
	$(Q)$(CC) $(SIM_CFLAGS) -fvisibility=hidden -DCUDA_API_PER_THREAD_DEFAULT_STREAM \
		-isystem $(CUDA13) -c $< -o $@

$(SIM)/libcudart_static.a: $(sim_rts_o)
	$(call say,AR,$@)
	$(Q)$(LD) -r $^ -o $(SIM)/rts/cudart.o && rm -f $@ && $(AR) rcs $@ $(SIM)/rts/cudart.o

$(SIM)/driver $(SIM)/rt13 $(SIM)/rt12 $(SIM)/rts $(SIM)/nvml:
	$(Q)mkdir -p $@

$(SIM)/libcuda.so.1: $(sim_driver_o) $(SIM_DIR)/driver/driver.map
	$(call say,LD,$@)
	$(Q)$(CC) $(sim_driver_o) $(SIM_LDFLAGS) -Wl,--version-script,$(SIM_DIR)/driver/driver.map -o $@
	$(Q)ln -sf $(@F) $(SIM)/libcuda.so

# A real runtime's symbols carry its soname as their version.
$(SIM)/libcudart.so.13: $(sim_rt13_o)
$(SIM)/libcudart.so.12: $(sim_rt12_o)
$(SIM)/libcudart.so.%:
	$(call say,LD,$@)
	$(Q)echo '$(@F) { global: cuda[A-Z]*; __cuda[A-Z]*; local: *; };' >$@.map
	$(Q)$(CC) $^ $(SIM_LDFLAGS) -Wl,--version-script,$@.map -o $@
	$(Q)ln -sf libcudart.so.13 $(SIM)/libcudart.so

$(SIM)/libnvidia-ml.so.1: $(SIM_DIR)/nvml/nvml.c | $(SIM)/nvml
	$(call say,LD,$@)
	$(Q)$(CC) $(SIM_CFLAGS) $< $(SIM_LDFLAGS) -o $@

sim-deps: deps-apt
	$(Q)$(SIM_DIR)/fetch-headers $(O)/deps $(if $(CUDA13),,13) $(if $(CUDA12),,12)
deps-more:: sim-deps

-include $(sim_driver_o:.o=.d) $(sim_rt13_o:.o=.d) $(sim_rt12_o:.o=.d) $(sim_rts_o:.o=.d)

# The self test.
SELF	:= $(SIM)/self
sim_self_c := $(addprefix $(SIM_DIR)/self/,main.c resolver.c memory.c objects.c pools.c graphs.c share.c \
		contexts.c)

check-sim: all $(if $(CUDA13),$(SELF)/selftest $(SELF)/ask $(SELF)/spy/libcuda.so.1)
	$(Q)$(if $(CUDA13),$(SIM_DIR)/selftest $(O) $(CUDA_HOME),echo "skip sim: no CUDA headers here")

$(SELF)/selftest: $(sim_self_c) $(SIM_DIR)/self/self.h $(SIM_DIR)/gtsim.h \
		   $(SIM)/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -isystem $(CUDA13) $(sim_self_c) $(SIM)/libcuda.so.1 -o $@ -pthread -ldl

$(SELF)/ask: $(SIM_DIR)/self/ask.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $< -o $@ -ldl

$(SELF)/spy/libcuda.so.1: $(SIM_DIR)/self/spy.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC $< -shared -Wl,-soname,libcuda.so.1 -o $@
