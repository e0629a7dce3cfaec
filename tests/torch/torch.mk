# Real PyTorch on the simulated GPUs: what the trace says against what PyTorch says of itself.

CHECKS	+= torch

.PHONY: check-torch
check-torch: all
	$(Q)$(PYTHON) tests/torch/check.py $(O)
