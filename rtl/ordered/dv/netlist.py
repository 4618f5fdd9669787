"""Sequential netlists: read from SCD files or made at random, as entries of ordered_core, and how many cycles these take.

Wires are numbered initial inputs, inputs of every cycle, registers, gates; -2 and -3 are the constants 0 and 1 (docs/sequential.md).
"""

import dataclasses

XOR, XNOR, NOT = 6, 9, 12
LINEAR = {XOR, XNOR, NOT}
# Of a truth table, bit 2a + b: is it an AND, are a, b and the result negated?
TYPES = {
    8: (1, 0, 0, 0), 4: (1, 0, 1, 0), 7: (1, 0, 0, 1), 11: (1, 0, 1, 1), 14: (1, 1, 1, 1), 13: (1, 1, 0, 1), 1: (1, 1, 1, 0),
    2: (1, 1, 0, 0), XOR: (0, 0, 0, 0), XNOR: (0, 0, 0, 1), NOT: (0, 0, 0, 1),
}  # fmt: skip
GATE, REGISTER, INPUT, ZERO = range(4)


@dataclasses.dataclass
class Netlist:
    initial: int  # inputs that have one value
    cyclic: int  # inputs that have one in each netlist cycle
    gates: list  # (a, b, type); b of a NOT is -2
    outputs: list
    registers: list  # (next, first)
    cycles: int

    @property
    def base(self):
        return self.initial + self.cyclic

    @property
    def ands(self):
        return sum(kind not in LINEAR for _, _, kind in self.gates)


def read(path, cycles):
    """An SCD file whose first line has seven numbers."""
    numbers = [[int(n) for n in line.split()] for line in path.read_text().split("\n")]
    numbers += [[]] * 7
    g_init, e_init, g_input, e_input, registers, outputs, gates = numbers[0]
    if not all(len(row) >= n for row, n in zip(numbers[1:7], [gates] * 3 + [outputs] + [registers] * 2)):
        raise ValueError(f"{path} is shorter than its first line says")
    listed = [(a, -2 if kind == NOT else b, kind) for a, b, kind in zip(*(row[:gates] for row in numbers[1:4]))]
    states = list(zip(numbers[5][:registers], numbers[6][:registers]))
    return Netlist(g_init + e_init, g_input + e_input, listed, numbers[4][:outputs], states, cycles)


def random_netlist(rng, gates, registers, cycles, initial=3, cyclic=3):
    """A netlist in which anything that the core has to get right occurs."""
    base = initial + cyclic
    listed, wires = [], base + registers
    for k in range(gates):
        near = range(max(0, wires + k - 12), wires + k)  # near ones make operands wait, far ones do not
        pick = lambda: rng.choice([rng.choice(near), rng.randrange(wires + k), rng.randrange(wires + k)]) if rng.random() < 0.97 else rng.choice([-2, -3])
        kind = rng.choice(list(TYPES))
        a = pick()
        listed.append((a, -2 if kind == NOT else a if rng.random() < 0.03 else pick(), kind))
    total = wires + gates
    outputs = sorted(rng.sample(range(base, total), min(9, total - base)))
    states = []
    for j in range(registers):
        # The last gates, which may end after their netlist cycle; registers: a chain, or itself; inputs; constants
        chosen = [total - 1 - rng.randrange(min(4, gates)), base + rng.randrange(registers), base + (j + 1) % registers]
        chosen += [rng.randrange(base), rng.randrange(total), -2, -3]
        states.append((rng.choice(chosen), rng.choice([-2, -3, rng.randrange(initial)])))
    return Netlist(initial, cyclic, listed, outputs, states, cycles)


@dataclasses.dataclass
class Entries:
    """A netlist as the core takes it. Inputs that nothing reads have no label."""

    netlist: Netlist  # with a gate more for each register that takes an input which others read
    words: list
    of_run: list
    of_cycle: list
    of_later: list  # taken by registers only: their label comes in the cycle after

    def position(self):
        return {wire: k for k, wire in enumerate(self.of_run + self.of_cycle + self.of_later)}


def entries(netlist):
    """The words of all entries, and which inputs they read."""
    base, initial = netlist.base, netlist.initial
    read_now = {w for a, b, _ in netlist.gates for w in (a, b)} | {first for _, first in netlist.registers}
    gates, states = list(netlist.gates), []
    for wire, first in netlist.registers:
        # What is read elsewhere, too, or has no label of its own in each cycle, is copied in the cycle before.
        if 0 <= wire < base and (wire in read_now or wire < initial):
            gates.append((wire, -2, XOR))
            read_now.add(wire)
            wire = base + len(netlist.registers) + len(gates) - 1
        states.append((wire, first))
    netlist = dataclasses.replace(netlist, gates=gates, registers=states)
    taken = {wire for wire, _ in states}
    own = Entries(
        netlist,
        [],
        [k for k in range(initial) if k in read_now],
        [k for k in range(initial, base) if k in read_now],
        [k for k in range(initial, base) if k not in read_now and k in taken],
    )
    position, outputs, registers = own.position(), set(netlist.outputs), len(states)

    def operand(wire):
        if wire < 0:
            return ZERO << 16, int(wire == -3)
        if wire < base:
            return INPUT << 16 | position[wire], 0
        return (REGISTER if wire < base + registers else GATE) << 16 | wire - base, 0

    def word(flags, a, b):
        bits = 0
        for flag in flags:
            bits = bits << 1 | flag
        return bits << 36 | a << 18 | b

    for j, (wire, first) in enumerate(states):
        (a, not_a), (b, not_b) = operand(wire), operand(first)
        own.words.append(word((1, 0, not_a, not_b, 0, int(base + j in outputs)), a, b))
    for k, (x, y, kind) in enumerate(gates):
        is_and, not_a, not_b, not_c = TYPES[kind]
        (a, one_a), (b, one_b) = operand(x), operand(y)
        own.words.append(word((0, is_and, not_a ^ one_a, not_b ^ one_b, not_c, int(base + registers + k in outputs)), a, b))
    return own


def cycles_of(netlist, rows):
    """Cycles of a run by the rule of rtl/README.md, and whether each register's operand is there when it starts."""
    base, registers = netlist.base, len(netlist.registers)
    count = registers + len(netlist.gates)
    start, there = [None] * count, [0] * count
    held, following, time = list(range(min(rows, count))), min(rows, count), 0

    def ready(entry):
        if entry < registers:
            return True
        a, b, _ = netlist.gates[entry - registers]
        return all(w < base or (start[w - base] is not None and there[w - base] <= time) for w in (a, b))

    while held:
        kept = []
        for entry in held:
            if not ready(entry):
                kept.append(entry)
                continue
            start[entry] = time
            linear = entry < registers or netlist.gates[entry - registers][2] in LINEAR
            there[entry] = time + (2 if linear else 12)
        while len(kept) < rows and following < count:
            kept.append(following)
            following += 1
        held, time = kept, time + 1
    last_output = max([start[w - base] for w in netlist.outputs if w >= base], default=-10)
    cycle = max(max(start) + 2, last_output + 12) + 3
    in_time = all(w < base + registers or there[w - base] <= cycle + start[j] for j, (w, _) in enumerate(netlist.registers))
    return 4 + netlist.cycles * cycle, in_time
