# gputrace: build, test, install.
#
#   make            build/libgputrace.so, build/libgputrace-nop.so, build/gputrace, build/sim/
#   make deps       install what is needed (root); make demo: the main job, end to end
#   make check      the everyday tests; make bench: the figures; make install PREFIX= DESTDIR=
#
# O=DIR builds elsewhere, V=1 shows commands, DEBUG=1 is -O0 with small buffers' asserts on,
# SAN=address|undefined|thread (or a comma list) instruments the tools and the unit tests.
# Each folder describes itself in a .mk file; this one only holds what they share.

O	?= build
PREFIX	?= /usr/local
CC	?= cc
CXX	?= c++
PYTHON	?= python3

WARN	:= -Wall -Wextra -Werror -Wno-unused-parameter -Wstrict-prototypes -Wmissing-prototypes \
	   -Wshadow -Wpointer-arith -Wundef
OPT	:= $(if $(DEBUG),-O0 -g3 -DGT_DEBUG,-O2 -g)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
CFLAGS_ALL = -std=gnu11 $(WARN) $(OPT) -Iinclude -MMD -MP $(CFLAGS)
Q	:= $(if $(V),,@)
say	= $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)')

.PHONY: all deps demo check bench install clean
.DEFAULT_GOAL := all
all:

-include preload/preload.mk
-include tools/tools.mk
-include tests/sim/sim.mk
-include tests/tests.mk
-include docs/docs.mk

clean:
	$(Q)rm -rf $(O)
