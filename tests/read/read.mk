# The reader: unit tests on synthetic traces, damaged files, a running recorder, a second reader.
# Everything that reads is built with sanitizers, SAN or not: the file is hostile.

CHECKS += read
DEPS += libcriterion-dev python3-zstandard

READ	 := $(O)/tests/read
READ_SAN := -fsanitize=$(or $(SAN),address,undefined) -fno-sanitize-recover=all -fno-omit-frame-pointer
READ_TESTS := $(addprefix $(READ)/,columns_test trace_test damage_test)
READ_HELP := $(addprefix $(READ)/,writer.o model.o swallow.o)
READ_LIB := $(patsubst tools/%.c,$(READ)/%.o,$(wildcard tools/read/*.c))

.PHONY: check-read
check-read: $(READ_TESTS) $(READ)/follow_test $(READ)/record $(READ)/mktrace $(O)/gputrace
	$(Q)status=0; \
	for t in $(READ_TESTS); do $$t --tap --quiet || status=1; done; \
	$(READ)/follow_test $(READ)/record || status=1; \
	exit $$status

READ_CC = $(CC) $(CFLAGS_ALL) -O1 $(READ_SAN) -Itools

$(READ)/%.o: tests/read/%.c $(TOOLS_STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(READ_CC) -c -o $@ $<
$(READ)/read/%.o: tools/read/%.c $(TOOLS_STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(READ_CC) -c -o $@ $<

$(READ_TESTS) $(READ)/follow_test $(READ)/mktrace: $(READ)/%: $(READ)/%.o $(READ_HELP) $(READ_LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(READ_SAN) -o $@ $^ -lzstd $(if $(findstring _test,$*),-lcriterion)

# The recorder itself, without a program under it.
$(READ)/record: tests/read/record.c tests/recorder/fake.c $(RECORDER_SRC)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $^ -l:libzstd.a -pthread

-include $(wildcard $(READ)/*.d $(READ)/read/*.d)
