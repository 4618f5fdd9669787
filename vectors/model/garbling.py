#!/usr/bin/env python3
"""Golden model of garbled circuits: half-gates and three-halves, from fixed keys and zero-labels.

    python3 vectors/model/garbling.py            write the vectors
    python3 vectors/model/garbling.py --check    compare them with what is committed; exit 1 if they differ

From: Zahur, Rosulek, Evans, Two Halves Make a Whole, EUROCRYPT 2015; Rosulek, Roy, Three Halves Make a Whole?, CRYPTO 2021;
Guo, Katz, Wang, Weng, Yu, Better Concrete Security for Half-Gates Garbling, CRYPTO 2020 (the hash).
"""

import argparse
import pathlib

from aes128 import Aes128
from common import draw, prf_block, prf_stream, require, write_or_check

# Uses of randomness: the start point of the hash, and dice.
GARBLE, DICE = 0x1500, 0x1501
LANE, CHUNK, CHUNK_ROWS = 3, 70_001, 70
LOW = (1 << 64) - 1


def sigma(x):
    high, low = x >> 64, x & LOW
    return (high ^ low) << 64 | high


def hashed(start, tweak, x):
    """The label x under the tweak: AES of sigma(x), and sigma(x) again; the tweak is in the high half of the key."""
    key = start ^ tweak << 64
    block = sigma(x).to_bytes(16, "little")
    return int.from_bytes(Aes128(key.to_bytes(16, "little")).encrypt(block), "little") ^ sigma(x)


class HalfGates:
    name, counter, dice = "half-gates", 0, False

    def garble(self, start, gate, offset, a, b, _):
        h = [hashed(start, 2 * gate + k // 2, [a, a ^ offset, b, b ^ offset][k]) for k in range(4)]
        p, q = a & 1, b & 1
        garbler = h[0] ^ h[1] ^ q * offset
        evaluator = h[2] ^ h[3] ^ a
        return h[0] ^ p * garbler ^ h[2] ^ q * (evaluator ^ a), [garbler, evaluator], []

    def evaluate(self, start, gate, a, b, labels, _):
        garbler, evaluator = labels
        left = hashed(start, 2 * gate, a) ^ (a & 1) * garbler
        return left ^ hashed(start, 2 * gate + 1, b) ^ (b & 1) * (evaluator ^ a)


class ThreeHalves:
    """Halves as vectors over GF(2^64): what a label contributes is a matrix times (A_L, A_R, B_L, B_R)."""

    name, counter, dice = "three-halves", 1, True
    S1 = [[1, 1, 1, 0], [1, 0, 0, 1]]
    S2 = [[1, 0, 0, 1], [0, 1, 1, 1]]
    P = {
        (0, 0): [[0, 0, 1, 0], [0, 1, 0, 0]],
        (0, 1): [[0, 0, 1, 0], [0, 0, 0, 0]],
        (1, 0): [[0, 0, 0, 0], [0, 1, 0, 0]],
        (1, 1): [[0, 0, 0, 0], [0, 0, 0, 0]],
    }

    def part(self, colours, control, a, b):
        """Both halves of R times the labels."""
        halves = [a >> 64, a & LOW, b >> 64, b & LOW]
        result = []
        for s1, s2, p in zip(self.S1, self.S2, self.P[colours]):
            row = [control[0] * x ^ control[1] * y ^ z for x, y, z in zip(s1, s2, p)]
            total = 0
            for factor, half in zip(row, halves):
                total ^= factor * half
            result.append(total)
        return result

    def garble(self, start, gate, offset, zero_a, zero_b, dice):
        a, b = 1 ^ zero_a & 1, 1 ^ zero_b & 1
        of_a = [zero_a ^ (c ^ zero_a & 1) * offset for c in (0, 1)]
        of_b = [zero_b ^ (c ^ zero_b & 1) * offset for c in (0, 1)]
        of_x = [of_a[0] ^ of_b[0] ^ c * offset for c in (0, 1)]
        h = [[hashed(start, 3 * gate + k, x) for x in labels] for k, labels in enumerate((of_a, of_b, of_x))]
        half = [[x & LOW for x in both] for both in h]
        eta = [[x >> 64 & 1 for x in both] for both in h]
        r, s = dice
        control = {
            (0, 0): (r, s),
            (0, 1): (a ^ b ^ r, a ^ s),
            (1, 0): (b ^ r, a ^ b ^ s),
            (1, 1): (a ^ r, b ^ s),
        }
        offset_halves = [offset >> 64, offset & LOW]
        # Of each pair of colours the halves that hashes and labels give, and the offset where the result is 1.
        given = {}
        for i, j in control:
            labels = self.part((i, j), control[i, j], of_a[i], of_b[j])
            one = int((i, j) == (a, b))
            hashes = [half[0][i] ^ half[2][i ^ j], half[1][j] ^ half[2][i ^ j]]
            given[i, j] = [h ^ x ^ one * d for h, x, d in zip(hashes, labels, offset_halves)]
        c = given[0, 0]
        missing = {colours: [x ^ y for x, y in zip(halves, c)] for colours, halves in given.items()}
        g0, g1, g2 = missing[1, 1][0], missing[1, 1][1], missing[0, 1][0]
        # Four pairs of colours, two halves each: three unknowns satisfy all.
        for (i, j), halves in missing.items():
            require(halves == [i * g0 ^ (i ^ j) * g2, j * g1 ^ (i ^ j) * g2], f"colours {i}, {j} of gate {gate}")
        z = [
            r ^ eta[0][0] ^ eta[2][0],
            s ^ eta[1][0] ^ eta[2][0],
            a ^ eta[0][0] ^ eta[0][1],
            b ^ eta[1][0] ^ eta[1][1],
            a ^ b ^ eta[2][0] ^ eta[2][1],
        ]
        return c[0] << 64 | c[1], [g0, g1, g2], z

    def evaluate(self, start, gate, a, b, labels, z):
        i, j = a & 1, b & 1
        h = [hashed(start, 3 * gate + k, x) for k, x in enumerate((a, b, a ^ b))]
        eta = [x >> 64 & 1 for x in h]
        r = z[0] ^ i * z[2] ^ (i ^ j) * z[4] ^ eta[0] ^ eta[2]
        s = z[1] ^ j * z[3] ^ (i ^ j) * z[4] ^ eta[1] ^ eta[2]
        left, right = self.part((i, j), (r, s), a, b)
        g0, g1, g2 = labels
        left ^= (h[0] ^ h[2]) & LOW ^ i * g0 ^ (i ^ j) * g2
        right ^= (h[1] ^ h[2]) & LOW ^ j * g1 ^ (i ^ j) * g2
        return left << 64 | right


def circuit():
    """Layers of gates on wires 0 and 1: every AND of both with any inversions, then an AND of results with each other. A gate is its
    kind and its operands; results are numbered behind the inputs."""
    first = [["not", 0], ["not", 1], ["xor", 0, 1], ["one"]]
    pairs = [(0, 1), (2, 1), (0, 3), (2, 3), (4, 0), (4, 4), (5, 0), (1, 5)]
    first += [["and", a, b] for a, b in pairs]
    second = [["not", 6 + k] for k in range(8)]
    second += [["xor", 6, 7], ["xor", 22, 8]]
    second += [["and", 14, 15], ["and", 6, 9], ["and", 23, 12]]
    return 2, [first, second]


class Run:
    """A chunk, at both sides."""

    def __init__(self, scheme, rows):
        self.scheme, self.rows = scheme, rows
        name = f"garbling/{scheme.name}/{rows}"
        self.keys = {key: draw(f"{name}/{key}", 16) for key in ("offset", "start", "dice")}
        self.keys["offset"] = bytes([self.keys["offset"][0] | 1]) + self.keys["offset"][1:]
        self.offset = int.from_bytes(self.keys["offset"], "little")
        self.first = 5 if rows == 1 else int.from_bytes(draw(f"{name}/first", 5), "little")
        self.start = int.from_bytes(prf_block(self.keys["start"], GARBLE, LANE, scheme.counter, CHUNK), "little")
        inputs, self.layers = circuit()
        self.zero, self.active, self.values = [], [], []
        for wire in range(inputs):
            labels = [int.from_bytes(draw(f"{name}/{wire}/{row}", 16), "little") for row in range(rows)]
            bits = [draw(f"{name}/{wire}/bit/{row}", 1)[0] & 1 for row in range(rows)]
            self.put(labels, [x ^ bit * self.offset for x, bit in zip(labels, bits)], bits)

    def put(self, zero, active, values):
        self.zero.append(zero)
        self.active.append(active)
        self.values.append(values)

    def thrown(self, product):
        """The dice of all rows of a product."""
        stride = -(-CHUNK_ROWS * 2 // 128)
        counter = self.first + product * stride
        stream = prf_stream(self.keys["dice"], DICE, LANE, counter, CHUNK, -(-self.rows * 2 // 8))
        bits = int.from_bytes(stream, "little")
        return [(bits >> 2 * row & 1, bits >> 2 * row + 1 & 1) for row in range(self.rows)]

    def gate(self, product, row):
        return (self.first + product) << 16 | row

    def product(self, number, a, b):
        """The message of one AND: of each label of its table all rows, then of each bit."""
        tables, zero, active = [], [], []
        dice = self.thrown(number) if self.scheme.dice else [None] * self.rows
        for row in range(self.rows):
            gate = self.gate(number, row)
            c, labels, bits = self.scheme.garble(self.start, gate, self.offset, self.zero[a][row], self.zero[b][row], dice[row])
            got = self.scheme.evaluate(self.start, gate, self.active[a][row], self.active[b][row], labels, bits)
            require(got == c ^ (self.values[a][row] & self.values[b][row]) * self.offset, f"gate {gate}")
            tables.append((labels, bits))
            zero.append(c)
            active.append(got)
        self.put(zero, active, [x & y for x, y in zip(self.values[a], self.values[b])])
        size = 8 if self.scheme.dice else 16
        labels = b"".join(x.to_bytes(size, "little") for column in zip(*(t[0] for t in tables)) for x in column)
        columns = zip(*(t[1] for t in tables))
        bits = b"".join(
            sum(bit << row for row, bit in enumerate(column)).to_bytes(-(-self.rows // 8), "little") for column in columns
        )
        return labels, bits

    def layer(self, gates, products):
        """The messages of a layer, and the number of the next product."""
        messages = [b"", b""]
        for kind, *operands in gates:
            if kind == "and":
                of_gate = self.product(products, *operands)
                messages = [x + y for x, y in zip(messages, of_gate)]
                products += 1
                continue
            zero, active, values = ([columns[w] for w in operands] for columns in (self.zero, self.active, self.values))
            if kind == "xor":
                self.put(*([x ^ y for x, y in zip(*columns)] for columns in (zero, active, values)))
            else:
                # What is public and 1 is the offset at the garbler, and nothing at the evaluator.
                zero, active, values = (c[0] if c else [0] * self.rows for c in (zero, active, values))
                self.put([x ^ self.offset for x in zero], active, [x ^ 1 for x in values])
        return [m.hex() for m in messages if m], products

    def case(self):
        inputs, products, messages = len(self.zero), 0, []
        for gates in self.layers:
            of_layer, products = self.layer(gates, products)
            messages.append(of_layer)
        def column(labels):
            return b"".join(x.to_bytes(16, "little") for x in labels).hex()

        for zero, active, values in zip(self.zero, self.active, self.values):
            require(all((z ^ a) & 1 == v for z, a, v in zip(zero, active, values)), "colours")
        return {
            "scheme": self.scheme.name,
            "rows": self.rows,
            "lane": LANE,
            "chunk": CHUNK,
            "chunk_rows": CHUNK_ROWS,
            "first": str(self.first),
            "keys": {name: key.hex() for name, key in self.keys.items()},
            "inputs": inputs,
            "layers": self.layers,
            "values": ["".join(map(str, bits)) for bits in self.values],
            "zero": [column(labels) for labels in self.zero],
            "active": [column(labels) for labels in self.active],
            "messages": messages,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    check = parser.parse_args().check
    folder = pathlib.Path(__file__).resolve().parent.parent
    cases = [Run(scheme(), rows).case() for scheme in (HalfGates, ThreeHalves) for rows in (1, 3, 4, 13)]
    hashes = []
    for k in range(4):
        start, x = (int.from_bytes(draw(f"garbling/hash/{k}/{name}", 16), "little") for name in ("start", "x"))
        tweak = [0, 1, 1 << 32, (1 << 64) - 1][k]
        fields = {"start": start, "x": x, "hash": hashed(start, tweak, x)}
        hashes.append({"tweak": str(tweak)} | {n: v.to_bytes(16, "little").hex() for n, v in fields.items()})
    files = {"garbling.json": {"hashes": hashes, "cases": cases}}
    write_or_check(folder, files, check, "vectors/model/garbling.py")


if __name__ == "__main__":
    main()
