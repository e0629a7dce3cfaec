# The offline page. check-page-data is the everyday part and needs no browser; check-page opens pages in
# Debian's Chromium, over ten groups of properties, with a trace of ten million events among them.

CHECKS	+= page-data

PAGE_CHAIN := $(O)/pagetest/chain

$(O)/pagetest/libtorch_double.so:
	$(Q)mkdir -p $(@D)
	$(Q)echo 'int gt_torch_double(int (*call)(void *, unsigned long), void *p, unsigned long n) \
		{ volatile int rc = call(p, n); return rc; }' | \
		$(CC) -O1 -x c -shared -fPIC -Wl,-soname,$(@F) -o $@ -

$(PAGE_CHAIN): tests/page/chain.c tests/prog/sites.h $(BENCH_DRIVER) $(O)/pagetest/libtorch_double.so
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -isystem $(CUDA13) -o $@ $< $(BENCH_DRIVER) -Wl,--no-as-needed \
		$(O)/pagetest/libtorch_double.so '-Wl,-rpath,$$ORIGIN:$$ORIGIN/../bench/driver' -ldl

.PHONY: check-page check-page-data
check-page-data: all $(if $(CUDA13),$(PAGE_CHAIN))
	$(Q)$(PYTHON) tests/page/structure.py $(O)

check-page: all $(if $(CUDA13),$(PAGE_CHAIN))
	$(Q)tests/page/run $(O)

