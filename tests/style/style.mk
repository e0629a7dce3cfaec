# Layout, style and dependency direction (tests/style/check); what analysers find (tests/style/lint).

CHECKS += style
DEPS += clang-format shellcheck

.PHONY: check-style
check-style:
	$(Q)tests/style/check

# Longer than a day's check may take.
DEPS += cppcheck clang-tidy
.PHONY: check-lint
check-lint: $(PAGE)/hashes.h
	$(Q)O=$(O) tests/style/lint
