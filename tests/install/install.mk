# make install and uninstall, into folders of the test's own.

CHECKS += install

.PHONY: check-install
check-install: all
	$(Q)O=$(O) MAKE="$(MAKE)" CC="$(CC)" tests/install/run
