#!/usr/bin/env python3
"""Compares what the compiler made of all kernels with budgets.toml: usage budgets.py PTXAS_LOG SASS TABLE.

Registers and spills are what ptxas says, instructions are counted in the code, each generation by itself. The table, in Markdown, has them all.
"""

import collections
import pathlib
import re
import sys
import tomllib

WHAT = ("registers", "stack", "spills", "prmt", "lop3", "lds", "imma", "all")


def resources(log):
    """What ptxas says: {(kernel, generation): {what: number}}."""
    found, of = collections.defaultdict(dict), None
    for line in log.splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)' for '(sm_\d+)'", line):
            of = found[entry.groups()]
        elif stack := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            # Functions that are no entries have lines of their own, in front of any entry.
            if of is not None:
                of["stack"] = int(stack[1])
                of["spills"] = int(stack[2]) + int(stack[3])
        elif used := re.search(r"Used (\d+) registers", line):
            of["registers"] = int(used[1])
            of = None
    return found


def instructions(sass):
    """How often each instruction is in the code of each kernel: {(kernel, generation): {name: number}}."""
    found, generation, of = collections.defaultdict(collections.Counter), None, None
    for line in sass.splitlines():
        if code := re.match(r"\s*code for (sm_\d+)", line):
            generation = code[1]
        elif function := re.match(r"\s*Function : (\w+)", line):
            of = found[function[1], generation]
        elif (one := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[T\d]+\s+)?([A-Z0-9_]+)", line)) and one[1] != "NOP":
            of[one[1].lower()] += 1
            of["all"] += 1
    return found


def main():
    log, sass, table = map(pathlib.Path, sys.argv[1:])
    budgets = tomllib.loads(pathlib.Path(__file__).with_suffix(".toml").read_text())
    used, counted = resources(log.read_text()), instructions(sass.read_text())
    wrong = []
    if not used or used.keys() != counted.keys():
        wrong.append(f"the log and the code do not have the same kernels: {sorted(used.keys() ^ counted.keys())}")
    rows = ["| Kernel | Generation | " + " | ".join(WHAT) + " |", "|---|---|" + "---:|" * len(WHAT)]
    for (kernel, generation), numbers in sorted(used.items()):
        numbers = {what: 0 for what in WHAT} | counted[kernel, generation] | numbers
        rows.append(f"| {kernel} | {generation} | " + " | ".join(str(numbers[what]) for what in WHAT) + " |")
        if kernel not in budgets:
            wrong.append(f"{kernel} has no budget: add one to kernels/budgets.toml")
            continue
        for what, limit in budgets[kernel].items():
            if what not in WHAT:
                wrong.append(f"{kernel}: nobody counts {what}")
            elif numbers[what] > limit:
                wrong.append(f"{kernel} on {generation} has {what} = {numbers[what]}, and its budget is {limit}")
        for what in ("registers", "spills"):
            if what not in budgets[kernel]:
                wrong.append(f"{kernel} has no budget of {what}")
    known = {kernel for kernel, _ in used}
    wrong += [f"{kernel} has a budget, and there is no such kernel" for kernel in budgets if kernel not in known]
    table.write_text("\n".join(rows) + "\n")
    for line in dict.fromkeys(wrong):
        print(f"error: {line}", file=sys.stderr)
    print(f"budgets of {len(known)} kernels: {'kept' if not wrong else 'not kept'}; all numbers are in {table}")
    return bool(wrong)


sys.exit(main())
