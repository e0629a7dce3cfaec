# The model and the output against brute force, with Criterion.

CHECKS	+= model
DEPS	+= libcriterion-dev

MODEL	:= $(O)/tests/model

MODEL_SRC := $(wildcard tests/model/*_test.c) tests/read/writer.c
MODEL_LIB := $(patsubst %.c,$(O)/%.o,$(wildcard $(addsuffix /*.c,$(addprefix tools/,model out read \
	symbols))))

.PHONY: check-model
check-model: $(MODEL)/model_test
	$(Q)$< --tap -j2

$(MODEL)/model_test: $(MODEL_SRC) $(MODEL_LIB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(SANFLAGS) $(TOOLS_CFLAGS) -o $@ $(filter %.c %.o,$^) -lcriterion \
		$(TOOLS_LIBS) -lxxhash
