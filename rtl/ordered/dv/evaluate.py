"""Evaluates what ordered_core garbled, on random inputs, and compares its outputs with the netlist in the clear."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "vectors" / "model"))
from garbling import HalfGates  # noqa: E402
from netlist import LINEAR, NOT  # noqa: E402

# Tables that are evaluated of one run: the model takes about a millisecond for each.
MOST = 50_000


def evaluate(entries, run, first, instance, rng):
    """How many bits of outputs were compared. Raises if one is wrong, or if something is missing or too much."""
    netlist, labels, tables = entries.netlist, iter(run.labels), iter(run.tables)
    base, initial, cycles = netlist.base, netlist.initial, netlist.cycles
    want = len(entries.of_run) + cycles * len(entries.of_cycle) + (cycles - 1) * len(entries.of_later)
    counts = (len(run.labels), len(run.tables), len(run.masks))
    if counts != (want, cycles * netlist.ands, cycles):
        raise AssertionError(f"labels, tables, masks: {counts}, not {(want, cycles * netlist.ands, cycles)}")
    if len(set(run.labels)) != len(run.labels):
        raise AssertionError("two inputs have one label")

    bits = [rng.getrandbits(1) for _ in range(base)]
    active = [None] * base
    gate, compared = first, 0
    values, held = None, None

    def draw(wire, bit):
        return next(labels) ^ bit * run.offset

    def value(known, wire):
        return known[wire] if wire >= 0 else int(wire == -3)

    def label(known, wire):
        return known[wire] if wire >= 0 else 0

    for wire in entries.of_run:
        active[wire] = draw(wire, bits[wire])
    for cycle in range(cycles):
        if (gate - first) + netlist.ands > MOST:
            break
        before = list(bits)
        for wire in range(initial, base):
            bits[wire] = rng.getrandbits(1)
        for wire in entries.of_cycle:
            active[wire] = draw(wire, bits[wire])
        later = {wire: draw(wire, before[wire]) for wire in entries.of_later} if cycle else {}
        new_values, new_held = list(bits), list(active)
        for wire, start in netlist.registers:
            if cycle == 0:
                new_values.append(value(new_values, start))
                new_held.append(label(new_held, start))
            else:
                new_values.append(value(values, wire))
                new_held.append(later[wire] if wire in later else label(held, wire))
        for a, b, kind in netlist.gates:
            x, y = value(new_values, a), value(new_values, b)
            new_values.append(1 ^ x if kind == NOT else kind >> (2 * x + y) & 1)
            left, right = label(new_held, a), label(new_held, b)
            if kind in LINEAR:
                new_held.append(left ^ right)
            else:
                new_held.append(HalfGates().evaluate(run.start, gate << 16 | instance, left, right, next(tables), None))
                gate += 1
        values, held = new_values, new_held
        outputs = [w for w in sorted(set(netlist.outputs)) if w >= base]
        for k, wire in enumerate(outputs):
            if held[wire] & 1 ^ run.masks[cycle] >> k & 1 != values[wire]:
                raise AssertionError(f"output {k} of cycle {cycle} is wrong")
            compared += 1
    return compared
