# What the answers say of real trainings: categories to the byte, steps, growth, verdicts.
# check-answers is the everyday part; check-answers-all has every row of the tables.

CHECKS	+= answers

.PHONY: check-answers check-answers-all
check-answers: all $(O)/tests/answers/lives
	$(Q)$(PYTHON) tests/answers/check.py $(O)

check-answers-all: all $(O)/tests/answers/lives
	$(Q)$(PYTHON) tests/answers/check.py $(O) --all

ANSWERS_LIB := $(patsubst %.c,$(O)/%.o,$(wildcard $(addsuffix /*.c,$(addprefix tools/,model out read \
	symbols))))

# The model's judgement of each block, for tests that know better.
$(O)/tests/answers/lives: tests/answers/lives.c $(ANSWERS_LIB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(TOOLS_CFLAGS) -o $@ $(filter %.c %.o,$^) $(TOOLS_LIBS)
