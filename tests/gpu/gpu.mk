# The check on a real GPU, and its dry run on the simulated one.

.PHONY: check-gpu check-gpu-dry
check-gpu: all
	$(Q)O=$(O) tests/gpu/check.sh $(O)/gpu

check-gpu-dry: all
	$(Q)O=$(O) GPUTRACE_GPU_CHECK=sim tests/gpu/check.sh $(O)/gpu-dry
