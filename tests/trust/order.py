#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The order of the stores around the commit, in the machine code. x86 does not show a missing barrier, and
emulation does not either, so the code of gt_commit is read: on every path stores before the commit come
before it, the commit is a release store, and what follows it is behind a barrier. Where the machine
orders stores by itself (x86-64), the compiler's order counts. A mutant without barriers must fail.

Which store is which is told by the line of the source that it belongs to.

usage: order.py     prints "ok|not ok|skip order-COMPILER-MACHINE-LEVEL"
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BEFORE = {"fill_slot", "fill_cell", "prepare", "next_line", "count_block", "count_totals"}
BEHIND = {"apply", "apply_line"}
ARM = "/usr/aarch64-linux-gnu/include"
COMPILERS = {
    ("gcc", "x86-64"): ["gcc"], ("clang", "x86-64"): ["clang"],
    ("gcc", "aarch64"): ["aarch64-linux-gnu-gcc"],
    ("clang", "aarch64"): ["clang", "--target=aarch64-linux-gnu", "-isystem", ARM],
}
OBJDUMP = {"x86-64": "objdump", "aarch64": "aarch64-linux-gnu-objdump"}
STORE = {
    "x86-64": r"(?:v?mov\w*|add\w*|sub\w*|inc\w*|dec\w*|xchg\w*) +(?:.*,)?[-0-9a-fx]*\((?!%rsp)[^)]*\)$",
    "aarch64": r"(?:st[lu]?[rp]\w*|stur\w*) +.*\[(?!sp)",
}
JUMP = {"x86-64": r"j\w+ +([0-9a-f]+)", "aarch64": r"(?:b(?:\.\w+)?|cbn?z|tbn?z) +(?:.*, )?(?:0x)?([0-9a-f]+)(?: |$)"}
GOES_ON = {"x86-64": r"(?!jmp |ret)", "aarch64": r"(?!b +|ret)"}
BARRIER = r"dmb +ish"


def lines_of_source(folder):
    """line -> "before", "behind" or "commit", by the function that it is in."""
    roles, role = {}, None
    with open(os.path.join(folder, "preload", "commit.c")) as f:
        for number, text in enumerate(f, 1):
            named = re.match(r"(?:INLINE|uint64_t) .*?(\w+)\(", text)
            if named:
                role = "before" if named.group(1) in BEFORE else "behind" if named.group(1) in BEHIND else None
            if role:
                roles[number] = role
            if "gt_store(&l->file->seq, q)" in text:
                roles[number] = "commit"
    return roles


def sources(folder, mutant):
    """A copy: without the refusal of a compiler that cannot walk stacks, and with the mutant's fault."""
    for part in "preload", "include":
        shutil.copytree(os.path.join(TOP, part), os.path.join(folder, part))
    path = os.path.join(folder, "preload", "preload.h")
    with open(path) as f:
        text = re.sub(r"^#error .*$", "", f.read(), flags=re.M)
    if mutant == "without barriers":
        text = re.sub(r"(#define gt_store_barrier\(\)).*", r"\1 ((void)0)", text)
        text = re.sub(r"(#define gt_store\(p, v\).*)__ATOMIC_RELEASE", r"\1__ATOMIC_RELAXED", text)
    with open(path, "w") as f:
        f.write(text)
    if mutant == "with the commit last":
        edit_commit(os.path.join(folder, "preload", "commit.c"))


def edit_commit(path):
    with open(path) as f:
        text = f.read()
    store = "\tgt_store(&l->file->seq, q);\n\tgt_store_barrier();\n"
    parts = text.partition(store)
    rest = parts[2].replace("\tl->seq = q;\n", store + "\tl->seq = q;\n", 1)
    if not parts[1] or rest == parts[2]:
        raise ValueError("the commit is not where it was")
    with open(path, "w") as f:
        f.write(parts[0] + rest)


def disassembly(folder, compiler, machine, level):
    out = os.path.join(folder, "commit.o")
    subprocess.run([*compiler, level, "-g", "-std=gnu11", "-fPIC", "-D_GNU_SOURCE", "-fvisibility=hidden", "-w",
                    *([] if compiler[0] == "clang" else ["-fno-reorder-blocks-and-partition"]),
                    "-isystem", "/usr/include" if machine == "x86-64" else ARM, "-I" + os.path.join(folder, "include"),
                    "-c", "-o", out, os.path.join(folder, "preload", "commit.c")], check=True, capture_output=True, text=True)
    return subprocess.run([OBJDUMP[machine], "-dl", "--no-show-raw-insn", "-j", ".text", out], check=True,
                          capture_output=True, text=True).stdout


def instructions(text):
    """(address, instruction, line of commit.c or None) of gt_commit, in order."""
    found, line, inside = [], None, False
    for row in text.splitlines():
        head = re.match(r"[0-9a-f]+ <(\w+)", row)
        place = re.match(r".*?([\w.-]+):(\d+)(?: \(discriminator.*)?$", row)
        code = re.match(r" *([0-9a-f]+):\t(.*)", row)
        if head:
            inside = head.group(1) == "gt_commit"
        elif code and inside:
            plain = re.sub(r" *(#|//|<).*", "", code.group(2)).replace("\t", " ").strip()
            found.append((int(code.group(1), 16), plain, line))
        elif place:
            line = int(place.group(2)) if place.group(1) == "commit.c" else None
    return found


def role_of(instruction, line, roles, machine):
    if machine == "aarch64" and re.match(BARRIER, instruction):
        return "barrier"
    return roles.get(line) if re.match(STORE[machine], instruction) else None


def successors(code, i, machine):
    index = {a: n for n, (a, _, _) in enumerate(code)}
    jump = re.match(JUMP[machine], code[i][1])
    if jump and int(jump.group(1), 16) in index:
        yield index[int(jump.group(1), 16)]
    if re.match(GOES_ON[machine], code[i][1]) and i + 1 < len(code):
        yield i + 1


def step(state, role, instruction, machine):
    """The state behind an instruction, and what is wrong with it."""
    if role == "before" and state != "before":
        return state, "a store that belongs before the commit is behind it"
    if role == "commit":
        weak = machine == "aarch64" and not instruction.startswith("stlr")
        return ("committed", "the commit is no release store" if weak else None) if state == "before" else \
            (state, "a second commit")
    if role == "barrier" and state == "committed":
        return "behind", None
    if role == "behind" and state != ("behind" if machine == "aarch64" else "committed"):
        return state, "a store that belongs behind the commit and its barrier is not"
    return state, None


def faults(code, roles, machine):
    seen, todo, wrong = set(), [(0, "before")], set()
    kinds = [role_of(text, line, roles, machine) for _, text, line in code]
    while todo:
        i, state = todo.pop()
        if (i, state) in seen:
            continue
        seen.add((i, state))
        after, fault = step(state, kinds[i], code[i][1], machine)
        if fault:
            wrong.add(f"{fault}: {code[i][1]} (line {code[i][2]})")
        todo += [(n, after) for n in successors(code, i, machine)]
    reached = [kinds[i] for i in {i for i, _ in seen}]
    counts = {k: reached.count(k) for k in ("before", "commit", "behind")}
    if counts["commit"] < 1 or counts["before"] < 30 or counts["behind"] < 9:
        wrong.add(f"stores not recognised: {counts}")
    return sorted(wrong), counts


def check(name, machine, level, mutant):
    with tempfile.TemporaryDirectory() as folder:
        sources(folder, mutant)
        code = instructions(disassembly(folder, COMPILERS[name, machine], machine, level))
        return faults(code, lines_of_source(folder), machine)


def find_mutants(name, machine):
    missed = False
    for mutant in "with the commit last", "without barriers":
        caught = check(name, machine, "-O2", mutant)[0]
        case = f"order-{name}-{machine}-" + mutant.replace(" ", "-")
        if caught or machine == "aarch64" or mutant == "with the commit last":
            print(f"ok {case}" if caught else f"not ok {case}: not found", flush=True)
            missed = missed or not caught
        else:
            print(f"# {case}: this compiler keeps the order, and the machine needs no instruction for it")
    return missed


def main():
    failed = False
    print("skip order-memory-model: no checker of memory models (herd7, genmc, dartagnan) is packaged for Debian 12; "
          "the machine code is read instead")
    for name, machine in COMPILERS:
        missing = [p for p in (COMPILERS[name, machine][0], OBJDUMP[machine]) if not shutil.which(p)]
        if missing or machine == "aarch64" and not os.path.isdir(ARM):
            print(f"skip order-{name}-{machine}: no {(missing + [ARM])[0]} here")
            continue
        for level in "-O2", "-O3":
            case = f"order-{name}-{machine}{level}"
            wrong, counts = check(name, machine, level, None)
            print(f"not ok {case}: {wrong[0]} (and {len(wrong) - 1} more)" if wrong else
                  f"ok {case} # {counts['before']} stores before, {counts['behind']} behind", flush=True)
            failed = failed or bool(wrong)
        failed = find_mutants(name, machine) or failed
    return failed


if __name__ == "__main__":
    sys.exit(main())
