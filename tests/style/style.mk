# Layout, style and dependency direction; see tests/style/check.

CHECKS += style
DEPS += clang-format shellcheck

.PHONY: check-style
check-style:
	$(Q)tests/style/check
