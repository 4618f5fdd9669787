#!/usr/bin/env python3
"""Runs ordered_core on netlists: are its tables right, and does it take as many cycles as the rule says?

    python3 rtl/ordered/dv/bench.py FOLDER [--long] [--seed N]

FOLDER is where models are built. Netlists of a folder named by VEIL_CIRCUITS, *.scd, called NAME_CYCLES.scd, are run as well.
"""

import argparse
import dataclasses
import os
import pathlib
import random
import subprocess
import sys

from evaluate import evaluate
from netlist import cycles_of, entries, random_netlist, read

RTL = pathlib.Path(__file__).resolve().parents[2]
FIRST, INSTANCE = (1 << 31) - 5, 0xA5C3
# Oishi, Kadomoto, Irie, Sakai, "FPGA-based Garbling Accelerator with Parallel Pipeline Processing", table 3, "Proposal": two rows.
PUBLISHED = {
    "Mill_8_8": 252, "Add_8_1": 133, "Add_8_8": 172, "Hamm_32_1": 262, "Hamm_32_32": 2884, "Hamm_512_512": 75780,
    "Mult_256_512": 901124, "MAC_8_1": 588, "MAC_16_1": 2241, "MAC_32_1": 8133, "CORDIC_32_31": 97003, "AES_128_11": 55664,
}  # fmt: skip


@dataclasses.dataclass
class Run:
    offset: int = 0
    start: int = 0
    labels: list = dataclasses.field(default_factory=list)
    tables: list = dataclasses.field(default_factory=list)
    masks: list = dataclasses.field(default_factory=list)
    count: int = 0
    same: bool = False


def build(folder, rows, parameters=()):
    """The model, made by Verilator."""
    name = "-".join([f"ordered-{rows}", *parameters])
    out = pathlib.Path(folder).resolve() / name
    out.mkdir(parents=True, exist_ok=True)
    folders = [text for place in sorted(RTL.glob("*/rtl")) for text in ("-y", str(place))]
    sources = [*map(str, sorted(RTL.glob("*/rtl/*_pkg.sv"))), str(RTL / "ordered/rtl/ordered_core.sv"), str(RTL / "ordered/dv/model.cpp")]
    command = ["verilator", "--cc", "--exe", "--build", "--assert", "--flatten", "-O3", "-Wno-lint", "-Wno-fatal", f"-GRows={rows}"]
    command += [f"-G{p}" for p in parameters] + ["-CFLAGS", f"-O2 -std=c++17 -DROWS={rows}", "--top-module", "ordered_core"]
    done = subprocess.run([*command, "--Mdir", str(out), *folders, *sources], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return out / "Vordered_core"


def run(model, own, orders):
    """What the model printed of its runs."""
    text = f"netlist {len(own.words)}\n" + "\n".join(f"{w:x}" for w in own.words) + "\n"
    for what, seed, stalls in orders:
        fields = [own.netlist.cycles, len(own.of_run), len(own.of_cycle), len(own.of_later)]
        text += f"{what} {seed} {stalls} {FIRST} {INSTANCE} {' '.join(map(str, fields))}\n"
    done = subprocess.run([model], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{model}: {done.stdout[-300:]}{done.stderr[-600:]}")
    runs = []
    for line in done.stdout.splitlines():
        name, *values = line.split()
        if name in ("offset", "same"):
            runs.append(Run())
        now, number = runs[-1] if runs else None, values[0]
        if name in ("offset", "start"):
            setattr(now, name, int(number, 16))
        elif name == "label":
            now.labels.append(int(number, 16))
        elif name == "table":
            now.tables.append((int(number[32:], 16), int(number[:32], 16)))
        elif name == "masks":
            now.masks.append(int(number, 16))
        elif name == "count":
            now.count = int(number)
        elif name == "same":
            now.same = number == "1"
        elif name == "differ":
            print(line)
    return runs


def check(name, model, rows, netlist, rng, short=False):
    """Without stalls twice, with other labels; with stalls; and after a run that was ended."""
    own = entries(netlist)
    orders = [("run", 1, 0)] if short else [("run", 1, 0), ("run", 2, 0), ("run", 3, 9), (f"end {rng.randrange(20, 200)}\nrun", 4, 8), ("run", 5, 0)]
    runs = run(model, own, orders)
    if len(runs) != len(orders) - (not short):
        sys.exit(f"{name}: {len(runs)} runs")
    rule, in_time = cycles_of(own.netlist, rows)
    compared = sum(evaluate(own, r, FIRST, INSTANCE, rng) for r in runs)
    counts = [r.count for k, r in enumerate(runs) if short or k != 2]
    # A register whose operand is late waits for it, which the rule does not know.
    right = len(set(counts)) == 1 and (counts[0] == rule or (not in_time and counts[0] > rule))
    published = PUBLISHED.get(name) if rows == 2 else None
    if not right or published not in (None, counts[0]):
        sys.exit(f"{name}, {rows} rows: {counts} cycles, not {rule}, published {published}")
    print(f"{name:14} {rows} rows: {counts[0]} cycles{'' if in_time else ', late registers'}{', as published' if published else ''}; {compared} bits right", flush=True)


def repeats(model, rows, netlist, rng):
    """More runs, one after the other, than tags tell apart."""
    own = entries(netlist)
    runs = run(model, own, [("run", k + 1, 7 * (k % 2)) for k in range(19)])
    compared = sum(evaluate(own, r, FIRST, INSTANCE, rng) for r in runs)
    print(f"{len(runs)} runs        {rows} rows: {compared} bits right", flush=True)


def scrubs(model, rows, netlist, rng):
    """The whole state after a run was ended is the same for other labels."""
    own = entries(netlist)
    for end in [1, 5, 40, rng.randrange(41, 400)]:
        if not all(r.same for r in run(model, own, [(f"same {end}", 11, rng.choice([0, 7]))])):
            sys.exit(f"{rows} rows: labels are left after a run that was ended in cycle {end}")
    print(f"scrubbing      {rows} rows: nothing is left", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print(f"seed {options.seed}")
    for rows in (1, 2, 3, 4) if options.long else (2,):
        model = build(options.folder, rows, ("LabelW=9", "InputW=5", "TableW=6"))
        for number in range(60 if options.long else 12):
            registers = rng.choice([0, 0, 1, 2, 7])
            netlist = random_netlist(rng, rng.choice([1, 3, 20, 120]), registers, rng.choice([1, 2, 5]), rng.choice([1, 3]), rng.choice([0, 3]))
            check(f"random {number}", model, rows, netlist, rng)
        repeats(model, rows, random_netlist(rng, 60, 5, 3), rng)
        scrubs(model, rows, random_netlist(rng, 120, 5, 9), rng)
    if options.long:
        large = build(options.folder, 2, ("LabelW=14", "TableW=9"))
        check("large", large, 2, random_netlist(rng, 12_000, 60, 2), rng, short=True)
    folder = os.environ.get("VEIL_CIRCUITS")
    files = sorted(pathlib.Path(folder).glob("*.scd")) if folder else []
    if not files:
        print("skipped: VEIL_CIRCUITS names no folder of netlists")
    for rows in ((1, 2, 3, 4) if options.long else (2,)) if files else ():
        model = build(options.folder, rows)
        for path in files:
            check(path.stem, model, rows, read(path, int(path.stem.split("_")[-1])), rng, short=True)


if __name__ == "__main__":
    main()
