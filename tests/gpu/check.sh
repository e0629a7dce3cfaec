#!/bin/sh
# SPDX-License-Identifier: MIT
# The check on a machine with a GPU, in at most 10 minutes: what only a real driver can show.
#
#	tests/gpu/check.sh [OUTDIR]
#
# Prints "PASS|FAIL|SKIP NAME FIGURE" per check; OUTDIR (default: build/gpu) gets the same as report.txt,
# and traces of at most 16 MiB each. Uses build/ (or O) as it is when it has the library and the tool,
# builds otherwise. PYTHON is one with PyTorch. Exit status: 1 when a check failed, 77 without a GPU.
# GPUTRACE_GPU_CHECK=sim does all of it on the simulated GPU.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${O:=build}" "${PYTHON:=python3}"
out=${1:-$O/gpu}

if [ "${GPUTRACE_GPU_CHECK:-}" = sim ]; then
	PYTHON=$PWD/tests/torch/python
elif ! "$PYTHON" tests/gpu/driver.py present; then
	echo "SKIP all no GPU here"
	exit 77
fi
if ! "$O/gputrace" --version >/dev/null 2>&1 || [ ! -e "$O/libgputrace.so" ]; then
	make -j"$(nproc)" O="$O" "$O/gputrace" "$O/libgputrace.so" >"$O.log" 2>&1 || {
		tail -n 20 "$O.log"
		echo "FAIL build make exits with an error"
		exit 1
	}
fi
mkdir -p "$out" || exit 1
GT_BUILD=$(cd "$O" && pwd)
export GT_BUILD PYTHON PYTHONUNBUFFERED=1
: >"$out/report.txt"
timeout 580 python3 tests/gpu/check.py "$out" >>"$out/report.txt" 2>"$out/errors.txt" &
child=$!
tail --pid=$child -n +1 -f "$out/report.txt"
wait $child
