# Small C programs with known memory traffic; what each does stands at the top of its source.

PROG	:= $(O)/prog
PROGS	:= $(addprefix $(PROG)/,elf dlsym gpa1 gpa2 rt rt-pt traffic oom chaos)
# With the runtime linked in, where no cuda symbol is left to be seen.
PROG_STATIC := $(O)/sim-static
PROGS	+= $(addprefix $(PROG_STATIC)/,rt rt-pt two)
ALL	+= $(if $(CUDA13),$(PROGS))

PROG_CFLAGS = $(CFLAGS_ALL) -isystem $(CUDA13)
# By soname, as a program that was linked on a machine with a GPU.
PROG_DRIVER := $(O)/sim/libcuda.so.1

, := ,

define prog
$(call say,CC,$@)
$(Q)mkdir -p $(@D)
$(Q)$(CC) $(PROG_CFLAGS) $(1) $(filter %.c %.so.1 %.so.13 %.a %two.so,$^) -o $@ -pthread -ldl
endef

$(PROG)/elf: tests/prog/elf.c tests/prog/work.c $(PROG_DRIVER) ; $(call prog)
$(PROG)/dlsym: tests/prog/lookup.c tests/prog/work.c ; $(call prog,-DBY=0)
$(PROG)/gpa1: tests/prog/lookup.c tests/prog/work.c ; $(call prog,-DBY=1)
$(PROG)/gpa2: tests/prog/lookup.c tests/prog/work.c ; $(call prog,-DBY=2)
$(PROG)/rt: tests/prog/rt.c tests/prog/work.c $(O)/sim/libcudart.so.13 ; $(call prog)
$(PROG)/rt-pt: tests/prog/rt.c tests/prog/work.c $(O)/sim/libcudart.so.13
	$(call prog,-DCUDA_API_PER_THREAD_DEFAULT_STREAM)
$(PROG)/chaos: tests/prog/chaos.c tests/prog/chaos_ops.c tests/prog/chaos_ipc.c $(PROG_DRIVER) ; $(call prog)
$(PROG)/chaos: tests/prog/chaos.h tests/sim/gtsim.h
$(PROG)/traffic: tests/prog/traffic.c $(PROG_DRIVER) ; $(call prog)
$(PROG)/traffic: tests/prog/sites.h
$(PROG)/oom: tests/prog/oom.c $(PROG_DRIVER) ; $(call prog)
$(PROGS): tests/prog/work.h

$(PROG_STATIC)/rt: tests/prog/rt.c tests/prog/work.c $(O)/sim/libcudart_static.a ; $(call prog)
$(PROG_STATIC)/rt-pt: tests/prog/rt.c tests/prog/work.c $(O)/sim/libcudart_static.a
	$(call prog,-DCUDA_API_PER_THREAD_DEFAULT_STREAM)
$(PROG_STATIC)/libtwo.so: tests/prog/two.c $(O)/sim/libcudart_static.a
	$(call prog,-DLIBRARY -fPIC -shared)
$(PROG_STATIC)/two: tests/prog/two.c $(O)/sim/libcudart_static.a $(PROG_STATIC)/libtwo.so
	$(call prog,-Wl$(,)-rpath$(,)'$$ORIGIN')
