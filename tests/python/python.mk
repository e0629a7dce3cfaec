# The Python half of the stacks, inside every interpreter that is found; see tests/python/run.
#   make check-python        every interpreter, all scenarios; PyTorch's own history beside a trace
#   make check-python-all    and the long ones: all line tables, both GIL modes, Debian's newest

CHECKS += python
DEPS += python3-pip libcriterion-dev

PYTHON_TEST := $(O)/tests/python
PYLIB_OBJ := $(addprefix $(P)/,os.c.o options.c.o elf.c.o intern.c.o py_check.c.o py_code.c.o py_find.c.o py_layout.c.o \
	     py_line.c.o py_nodes.c.o py_walk.c.o py_watch.c.o stack_python.c.o)

.PHONY: check-python check-python-all
check-python check-python-all: all $(addprefix $(PYTHON_TEST)/,pylib.so embed layout_test)
	$(Q)$(PYTHON_TEST)/layout_test --tap
	$(Q)O=$(O) $(PYTHON) tests/python/run $(if $(filter check-python-all,$@),--all)
	$(Q)O=$(O) $(PYTHON) tests/python/compare_history

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
