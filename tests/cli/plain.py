# SPDX-License-Identifier: MIT
"""An answer without what differs from run to run, for golden screens."""
import re


def plain(text):
    """Numbers of processes, times and addresses out of an answer, whatever its form."""
    text = re.sub(r'"(pid|seconds|idle_seconds|history_starts|stream)": [\d.e-]+', r'"\1": 0', text)
    text = re.sub(r'"(file|module)": "[^"]*/', r'"\1": "', text)
    text = re.sub(r"\b(for pid|context \(idle\),|pid) \d+", r"\1 N", text)
    text = re.sub(r"^  \d+ (?=torch|context|modules|driver|lib|oom|other)", "  N ", text, flags=re.M)
    text = re.sub(r"\b\d+\.\d{3} s\b", "T s", text)
    text = re.sub(r"(?<= )\d+\.\d{6}(?= )", "T", text)
    text = re.sub(r"(?<=\S) {2,}", "  ", text)  # as wide as a process's number
    return re.sub(r"  \d+(?=  0  T  )", "  N", text)
