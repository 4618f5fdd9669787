#!/usr/bin/env python3
"""Golden model of the steps of cut-and-choose: seeds, marks, digests, sums, masked labels, the order, circuits of their own offsets, votes.

    python3 vectors/model/cut.py            write the vectors
    python3 vectors/model/cut.py --check    compare them with what is committed; exit 1 if they differ

From: Frederiksen, Nielsen, Fast and Maliciously Secure Two-Party Computation Using the GPU, ACNS 2013, repaired as docs/protocol-cut.md says; a step is
what its paragraph in crates/device/src/cut/mod.rs says. The garbling is that of garbling.py.
"""

import argparse
import hashlib
import pathlib

from aes128 import Aes128
from common import draw, require, write_or_check
from garbling import HalfGates

SESSION = bytes([0x5E]) * 32
EPOCH, LANE, CHUNK = 2, 3, 70_001
COLOURS, VALUES, DIGEST = 7, 8, 9
FIRST_CIRCUIT, FIRST_PRODUCT = 40, (1 << 33) + 5
# Wires of the circuit: two of the garbler, two of the evaluator; then gates.
INPUTS = 4
GATES = [["and", 0, 2], ["xor", 4, 1], ["and", 5, 3], ["not", 6], ["and", 7, 5]]


def le(x, size):
    return x.to_bytes(size, "little")


def number(data):
    return int.from_bytes(data, "little")


def aes(key, block):
    return Aes128(key).encrypt(le(block, 16))


def frame(kind):
    return le(kind, 2) + le(EPOCH, 2) + le(LANE, 2)


def mark(kind, wire, circuit, x):
    """The mark of a label: 52 bytes hashed."""
    data = SESSION[:16] + frame(kind) + bytes(2) + le(CHUNK, 4) + le(wire, 4) + le(circuit, 4) + le(x, 16)
    require(len(data) == 52, "a mark is of 52 bytes")
    return hashlib.sha256(data).digest()


def digest(kind, rows, labels, bits):
    """The digest of a row: a head of 64 bytes, labels, a byte for each bit."""
    head = SESSION + frame(kind) + le(CHUNK, 4) + le(rows, 4)
    return hashlib.sha256(head.ljust(64, b"\0") + b"".join(le(x, 16) for x in labels) + bytes(bits)).digest()


def matrix(key, row, columns):
    """Bits of a row of the matrix of a key."""
    bits = 0
    for block in range(-(-columns // 128)):
        bits |= number(aes(key, block << 64 | row)) << 128 * block
    return [bits >> column & 1 for column in range(columns)]


def shuffled(seed, circuits):
    """Fisher and Yates, by numbers that follow from a digest."""
    order = list(range(circuits))
    for k in range(circuits):
        x = number(aes(seed[:16], k)) & (1 << 64) - 1
        by = x * (circuits - k) >> 64
        order[k], order[k + by] = order[k + by], order[k]
    return order


class Half:
    """The circuits of a half: a row each."""

    def __init__(self, rows):
        self.rows = rows
        name = f"cut/{rows}"
        self.name = name
        self.seeds = [draw(f"{name}/seed/{row}", 16) for row in range(rows)]
        self.offsets = [number(aes(seed, 0)) | 1 for seed in self.seeds]
        self.starts = [number(aes(seed, 1)) for seed in self.seeds]
        self.zero = [[number(aes(seed, 2 + wire)) for seed in self.seeds] for wire in range(INPUTS)]
        self.bits = [draw(f"{name}/bit/{wire}", 1)[0] & 1 for wire in range(INPUTS)]
        self.numbers = [FIRST_CIRCUIT + row for row in range(rows)]

    def active(self, zero, bits):
        return [[x ^ bit * offset for x, offset in zip(labels, self.offsets)] for labels, bit in zip(zero, bits)]

    def marks(self, kind, labels, by_colour):
        """Both marks of each wire and row, in the order of colours or of values."""
        out = []
        for wire, zeros in enumerate(labels):
            of_wire = []
            for zero, offset, circuit in zip(zeros, self.offsets, self.numbers):
                first = zero ^ offset * (zero & 1) if by_colour else zero
                of_wire.append([mark(kind, wire, circuit, x) for x in (first, first ^ offset)])
            out.append(of_wire)
        return out

    def circuit(self):
        """Tables, zero-labels and active labels of all wires."""
        scheme, tables = HalfGates(), []
        zero, active = [list(w) for w in self.zero], [list(w) for w in self.active(self.zero, self.bits)]
        values, product = list(self.bits), 0
        for kind, *of in GATES:
            rows = range(self.rows)
            if kind == "and":
                gate, columns = (FIRST_PRODUCT + product) << 16, []
                a, b = of
                for row in rows:
                    start, offset = self.starts[row], self.offsets[row]
                    out, table, _ = scheme.garble(start, gate, offset, zero[a][row], zero[b][row], None)
                    got = scheme.evaluate(start, gate, active[a][row], active[b][row], table, None)
                    require(got == out ^ (values[a] & values[b]) * offset, "a gate")
                    columns.append((table, out, got))
                tables += [[c[0][k] for c in columns] for k in range(2)]
                zero.append([c[1] for c in columns])
                active.append([c[2] for c in columns])
                values.append(values[a] & values[b])
                product += 1
            elif kind == "xor":
                zero.append([x ^ y for x, y in zip(*(zero[w] for w in of))])
                active.append([x ^ y for x, y in zip(*(active[w] for w in of))])
                values.append(values[of[0]] ^ values[of[1]])
            else:
                zero.append([x ^ offset for x, offset in zip(zero[of[0]], self.offsets)])
                active.append(list(active[of[0]]))
                values.append(1 ^ values[of[0]])
        return tables, zero, active, values

    def fields(self):
        rows, name = self.rows, self.name
        tables, zero, active, values = self.circuit()
        labels = lambda items: b"".join(le(x, 16) for item in items for x in item).hex()
        halves = lambda marks: b"".join(
            pair[second][half : half + 16] for wire in marks for second in (0, 1) for half in (0, 16) for pair in wire
        ).hex()
        colours = [[x & 1 for x in item] for item in self.zero]
        digests = [digest(DIGEST, rows, [item[row] for item in self.zero], [item[row] for item in colours]) for row in range(rows)]
        # Sums over the inputs, beside what hides them.
        key = draw(f"{name}/matrix", 16)
        hides = [[number(draw(f"{name}/hides/{row}/{r}", 16)) for r in range(rows)] for row in range(3)]
        sums = []
        for row, item in enumerate(hides):
            bits = matrix(key, row, INPUTS)
            sums.append([x ^ xor(self.zero[w][r] for w in range(INPUTS) if bits[w]) for r, x in enumerate(item)])
        keys = [[draw(f"{name}/key/{wire}/{bit}", 16) for bit in (0, 1)] for wire in range(INPUTS)]
        masked = []
        for wire, both in enumerate(keys):
            for bit, pad in enumerate(both):
                own = zip(self.zero[wire], self.offsets, self.numbers)
                masked.append([x ^ bit * offset ^ number(aes(pad, circuit)) for x, offset, circuit in own])
        seed = draw(f"{name}/order", 32)
        # Some circuits have another result: fewer than half of them.
        flipped = [row for row in range(rows) if 3 * row < rows - 1]
        votes = [x ^ (self.offsets[row] if row in flipped else 0) for row, x in enumerate(active[-1])]
        return {
            "rows": rows,
            "seeds": b"".join(self.seeds).hex(),
            "offsets": labels([self.offsets]),
            "starts": labels([self.starts]),
            "zero": labels(self.zero),
            "bits": self.bits,
            "active": labels(self.active(self.zero, self.bits)),
            "marks_by_colour": halves(self.marks(COLOURS, self.zero, True)),
            "digests": b"".join(d[half : half + 16] for half in (0, 16) for d in digests).hex(),
            "matrix": key.hex(),
            "hides": labels(hides),
            "sums": labels(sums),
            "keys": [b"".join(both[bit] for both in keys).hex() for bit in (0, 1)],
            "masked": labels(masked),
            "order_seed": seed.hex(),
            "order": shuffled(seed, 2 * rows),
            "tables": labels(tables),
            "zero_out": labels(zero[INPUTS:]),
            "active_out": labels(active[INPUTS:]),
            "marks_by_value": halves(self.marks(VALUES, zero[-1:], False)),
            "votes": labels([votes]),
            "result": values[-1],
        }


def xor(labels):
    out = 0
    for x in labels:
        out ^= x
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed vectors")
    args = parser.parse_args()
    content = {
        "session": SESSION.hex(),
        "frame": {"epoch": EPOCH, "lane": LANE, "chunk": CHUNK},
        "labels": {"colours": COLOURS, "values": VALUES, "digest": DIGEST},
        "first_circuit": FIRST_CIRCUIT,
        "first_product": str(FIRST_PRODUCT),
        "gates": GATES,
        "cases": [Half(rows).fields() for rows in (1, 9, 35)],
    }
    write_or_check(pathlib.Path(__file__).resolve().parent.parent, {"cut.json": content}, args.check, "vectors/model/cut.py")


if __name__ == "__main__":
    main()
