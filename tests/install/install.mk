# make install and uninstall, into folders of the test's own.

CHECKS += install

.PHONY: check-install
check-install: all
	$(Q)O=$(O) MAKE="$(MAKE)" CC="$(CC)" tests/install/run

# Longer, and only as root: the packages in roots of three releases.
DEPS += debootstrap zlib1g-dev liblzma-dev libbz2-dev
.PHONY: check-packages
check-packages: all
	$(Q)O=$(O) MAKE="$(MAKE)" CUDA12=$(abspath $(CUDA12)) CUDA13=$(abspath $(CUDA13)) tests/install/packages
