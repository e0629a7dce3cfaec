# The Python half of the stacks, inside every interpreter that is found; see tests/python/run.
#   make check-python        every interpreter, all scenarios; PyTorch's own history beside a trace
#   make check-python-mutants  one rule broken at a time: some scenario must notice
#   make check-python-all    and the long ones: all line tables, both GIL modes, Debian's newest

CHECKS += python
DEPS += python3-pip libcriterion-dev

PYTHON_TEST := $(O)/tests/python
PYLIB_SRC := $(addprefix preload/,os.c options.c redact.c elf.c intern.c py_check.c py_code.c py_find.c \
	     py_layout.c py_line.c py_nodes.c py_walk.c py_watch.c stack_python.c)
PYLIB_OBJ := $(PYLIB_SRC:preload/%=$(P)/%.o)

.PHONY: check-python check-python-all
check-python check-python-all: all $(addprefix $(PYTHON_TEST)/,pylib.so embed layout_test)
	$(Q)$(PYTHON_TEST)/layout_test --tap
	$(Q)O=$(O) $(PYTHON) tests/python/run $(if $(filter check-python-all,$@),--all)
	$(Q)O=$(O) $(PYTHON) tests/python/compare_history

.PHONY: check-python-mutants
check-python-mutants: $(PYTHON_TEST)/pylib.so
	$(Q)O=$(O) CC=$(CC) PYLIB_SRC='$(PYLIB_SRC)' $(PYTHON) tests/python/mutants

$(PYTHON_TEST)/pylib.so: tests/python/pylib.c $(PYLIB_OBJ)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(PRELOAD_CFLAGS) -shared -Wl,-z,defs,--wrap=gt_py_find -o $@ \
		$(filter %.c %.o,$^) -ldl -lpthread

$(PYTHON_TEST)/embed: tests/python/embed.c $(PYTHON_TEST)/pylib.so
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -o $@ $< $(PYTHON_TEST)/pylib.so -ldl \
		-Wl,-rpath,'$$ORIGIN'

$(PYTHON_TEST)/layout_test: tests/python/layout_test.c tests/python/pylib.c $(PYLIB_OBJ)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -Wl,--wrap=gt_py_find -o $@ $(filter %.c %.o,$^) \
		-lcriterion -ldl -lpthread

-include $(PYTHON_TEST)/pylib.d
