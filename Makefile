# gputrace: build, test, install.
#
#   make            build/libgputrace.so, build/libgputrace-nop.so, build/gputrace, build/sim/
#   make deps       install what is needed (root); make demo: the main job, end to end
#   make check      the everyday tests; make bench: the figures; make install PREFIX= DESTDIR=
#
# O=DIR builds elsewhere, V=1 shows commands, DEBUG=1 is -O0 with assertions,
# SAN=address|undefined|thread (or a comma list) instruments the tools and the unit tests.
# Each folder describes itself in a .mk file; this one only holds what they share: a part adds its
# products to ALL, its Debian packages to DEPS and its everyday suites (targets check-NAME that
# print "ok|not ok|skip NAME" lines) to CHECKS.

O	?= build
PREFIX	?= /usr/local
PYTHON	?= python3

WARN	:= -Wall -Wextra -Werror -Wno-unused-parameter -Wstrict-prototypes -Wmissing-prototypes \
	   -Wshadow -Wpointer-arith -Wundef
OPT	:= $(if $(DEBUG),-O0 -g3 -DGT_DEBUG,-O2 -g)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
CFLAGS_ALL = -std=gnu11 $(WARN) $(OPT) -Iinclude -MMD -MP $(CFLAGS)
Q	:= $(if $(V),,@)
say	= $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)')

DEPS	:= gcc g++ clang make pkg-config python3 python3-venv git
ALL	:=
CHECKS	:=

.PHONY: all deps deps-apt install uninstall clean
.DEFAULT_GOAL := all

# The simulator's part first: others ask whether it can be built.
PARTS := preload/preload.mk tools/tools.mk tests/sim/sim.mk
include $(PARTS) $(filter-out $(PARTS),$(sort $(wildcard tests/*.mk tests/*/*.mk docs/*.mk)))

all: $(ALL)

# Recursive makes of deps leave files of the calling user, not of root, behind sudo.
deps: deps-apt deps-more
	$(Q)[ -z "$$SUDO_UID" ] || [ ! -d $(O) ] || chown -R "$$SUDO_UID:$$SUDO_GID" $(O)

deps-apt:
	$(Q)[ "$$(id -u)" = 0 ] || { \
		echo "make deps: installs Debian packages, so it needs root: sudo make deps" >&2; exit 1; }
	$(Q)DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(sort $(DEPS))
.PHONY: deps-more
deps-more:: deps-apt

# The tool finds the library beside itself (../lib), so PREFIX may be moved; DESTDIR is for packages.
dest	:= $(DESTDIR)$(PREFIX)
headers	:= $(wildcard include/gputrace/*.h)

install: $(O)/libgputrace.so $(O)/gputrace
	$(Q)install -d -m 755 $(dest)/bin $(dest)/lib $(dest)/include/gputrace
	$(Q)install -m 755 $(O)/gputrace $(dest)/bin
	$(Q)install -m 755 $(O)/libgputrace.so $(dest)/lib
	$(Q)install -m 644 $(headers) $(dest)/include/gputrace

uninstall:
	$(Q)rm -f $(dest)/bin/gputrace $(dest)/lib/libgputrace.so $(headers:%=$(dest)/%)
	$(Q)[ ! -d $(dest)/include/gputrace ] || rmdir $(dest)/include/gputrace

clean:
	$(Q)rm -rf $(O)
