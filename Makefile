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
VERSION	:= $(shell sed -n 's/^\#define GT_TOOL_VERSION "\(.*\)"/\1/p' tools/cmd/cmd.h)

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
include $(PARTS) $(filter-out $(PARTS),$(sort $(wildcard tests/*.mk tests/*/*.mk docs/*/*.mk .packaging/*.mk)))

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

# FROM:TO of every file; a page of section N goes to manN.
INSTALLED = $(O)/gputrace:bin/gputrace $(O)/libgputrace.so:lib/libgputrace.so \
	$(foreach h,$(headers),$(h):$(h)) $(O)/gputrace.pc:share/pkgconfig/gputrace.pc \
	$(foreach p,$(MAN_PAGES),$(p):share/man/man$(patsubst .%,%,$(suffix $(p)))/$(notdir $(p))) \
	tools/completion/gputrace.bash:share/bash-completion/completions/gputrace \
	tools/completion/_gputrace:share/zsh/site-functions/_gputrace
from	= $(firstword $(subst :, ,$(1)))
to	= $(dest)/$(lastword $(subst :, ,$(1)))

install: $(O)/libgputrace.so $(O)/gputrace $(O)/gputrace.pc $(MAN_PAGES)
	$(Q)umask 022; $(foreach f,$(INSTALLED),install -D -m $(if $(filter bin/% lib/lib%,$(lastword \
		$(subst :, ,$(f)))),755,644) $(call from,$(f)) $(call to,$(f)) &&) true
	$(if $(MAN_PAGES),,$(Q)echo "no manual pages: help2man or lowdown is missing (make deps)")

uninstall:
	$(Q)rm -f $(foreach f,$(INSTALLED),$(call to,$(f)))
	$(Q)[ ! -d $(dest)/include/gputrace ] || rmdir $(dest)/include/gputrace

$(O)/gputrace.pc: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'Name: gputrace' 'Version: $(VERSION)' 'Cflags: -I$${prefix}/include' \
		'Description: names for steps, ranges and moments in the GPU memory traces of gputrace' >$@

clean:
	$(Q)rm -rf $(O)
