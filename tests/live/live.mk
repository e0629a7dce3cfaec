# gputrace live: what it prints and draws, in a real terminal, on programs that run. check-live-once is the
# everyday part; check-live has the terminal (tmux) and the system calls (strace) too.

CHECKS += live-once
DEPS   += tmux strace libcriterion-dev

LIVE := $(O)/tests/live

.PHONY: check-live check-live-once
check-live-once: $(LIVE)/draw_test all
	$(Q)$(MAKE) -s $(LIVE)/steps
	$(Q)$(LIVE)/draw_test --tap -j2
	$(Q)$(PYTHON) tests/live/run.py $(O) once

check-live: check-live-once
	$(Q)$(PYTHON) tests/live/run.py $(O) screen

$(LIVE)/steps: tests/live/steps.c $(O)/sim/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -isystem $(CUDA13) $(filter %.c %.so.1,$^) -o $@

# With sanitizers: terminals of any size.
LIVE_LIB := $(patsubst %.c,$(O)/%.o,$(wildcard $(addsuffix /*.c,$(addprefix tools/,model out read symbols))))
$(LIVE)/draw_test: tests/live/draw_test.c tools/live/screen.c tools/live/view.c tools/live/draw.c tools/live/look.c \
		tools/live/rows.c $(LIVE_LIB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fsanitize=$(or $(SAN),address,undefined) -fno-sanitize-recover=all $(TOOLS_CFLAGS) -o $@ \
		$(filter %.c %.o,$^) -lcriterion $(TOOLS_LIBS) -lxxhash

-include $(LIVE)/steps.d $(LIVE)/draw_test.d
