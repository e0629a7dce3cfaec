# What the answers say of real trainings: categories to the byte, steps, growth, verdicts.
# check-answers has every row of its tables; the everyday part is a few of each, and
# check-answers-python3.13 that part under another Python, for which PyTorch is fetched once.

CHECKS	+= answers-everyday

.PHONY: check-answers check-answers-everyday
check-answers-everyday: all $(O)/tests/answers/lives
	$(Q)$(PYTHON) tests/answers/check.py $(O)

check-answers: all $(O)/tests/answers/lives
	$(Q)$(PYTHON) tests/answers/check.py $(O) --all

ANSWERS_LIB := $(patsubst %.c,$(O)/%.o,$(wildcard $(addsuffix /*.c,$(addprefix tools/,model out read \
	symbols))))

# The model's judgement of each block, for tests that know better.
$(O)/tests/answers/lives: tests/answers/lives.c $(ANSWERS_LIB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(TOOLS_CFLAGS) -o $@ $(filter %.c %.o,$^) $(TOOLS_LIBS)

# Faults without PyTorch.
ANSWERS := $(O)/tests/answers
ANSWERS_PROGS := $(if $(CUDA13),$(ANSWERS)/leak $(ANSWERS)/async $(ANSWERS)/pinned)

$(ANSWERS)/%: tests/answers/%.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -isystem $(CUDA13) $^ -o $@

check-answers check-answers-everyday: $(ANSWERS_PROGS)

check-answers-python%: all $(O)/tests/answers/lives $(ANSWERS_PROGS)
	$(Q)GT_TORCH_PYTHON=python$* $(PYTHON) tests/answers/check.py $(O)
