# Instructions per event against kept figures, see tests/cost/run. After a change that is meant:
# O=build tests/cost/run --update

DEPS	+= valgrind

.PHONY: check-cost
check-cost: $(O)/libgputrace.so $(O)/gputrace $(BENCH_HOOK)
	$(Q)O=$(O) CC="$(CC)" tests/cost/run
