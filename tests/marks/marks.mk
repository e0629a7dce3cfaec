# What programs say of themselves: gputrace.h, NVTX, windows and their peaks; and the doctor.

CHECKS += marks

MARKS := $(O)/tests/marks
# Where NVTX's headers are: beside cuda.h, or in the toolkit.
NVTX = $(firstword $(wildcard $(CUDA13)/nvtx3/nvToolsExt.h /usr/local/cuda/include/nvtx3/nvToolsExt.h))
BUILT	+= $(MARKS_BIN)
MARKS_BIN = $(addprefix $(MARKS)/,$(if $(CUDA13),say say-fixed say-cxx $(if $(NVTX),nvtx abi.o)))
MARKS_CFLAGS = $(CFLAGS_ALL) -isystem $(CUDA13)

# Which of them can be built is known once the headers have been looked for, so not before the recipe.
.PHONY: check-marks check-ranges
check-marks: all
	$(Q)$(MAKE) -s $(MARKS_BIN)
	$(Q)CC=$(CC) $(PYTHON) tests/marks/run $(O)

# Only the ranges of PyTorch, in the version TORCH.
check-ranges: all
	$(Q)$(MAKE) -s $(MARKS_BIN)
	$(Q)$(PYTHON) tests/marks/run $(O) torch

$(MARKS)/say: tests/marks/say.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(MARKS_CFLAGS) -fPIE -pie $(filter %.c %.so.1,$^) -o $@ -pthread

# In code that cannot move the header goes another way.
$(MARKS)/say-fixed: tests/marks/say.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(MARKS_CFLAGS) -fno-pie -no-pie $(filter %.c %.so.1,$^) -o $@ -pthread -ldl

$(MARKS)/say-cxx: tests/marks/say.c $(O)/sim/libcuda.so.1
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -x c++ -std=c++17 -Wall -Wextra -Werror -O2 -Iinclude -isystem $(CUDA13) tests/marks/say.c \
		-x none $(O)/sim/libcuda.so.1 -o $@ -pthread

$(MARKS)/nvtx: tests/marks/nvtx.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(MARKS_CFLAGS) -isystem $(NVTX:/nvtx3/nvToolsExt.h=) $(filter %.c %.so.1,$^) -o $@ -ldl

$(MARKS)/abi.o: tests/marks/abi.c preload/nvtx.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(MARKS_CFLAGS) -isystem $(NVTX:/nvtx3/nvToolsExt.h=) -c -o $@ $<
