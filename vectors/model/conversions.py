#!/usr/bin/env python3
"""Golden model of conversions between integers and bits on shares of three and of four parties: whole transcripts.

The smallest computation that has everything: y = bit 1 of x, as an integer. The components of x are added over bits, of
which the carry takes products of bits; the bit is lifted.

    python3 vectors/model/conversions.py            write the vectors
    python3 vectors/model/conversions.py --check    compare them with what is committed; exit 1 if they differ

From: Mohassel, Rindal, ABY3: A Mixed Protocol Framework for Machine Learning, CCS 2018, for what is known of a component.
"""

import argparse
import pathlib

import lifts
import rep3
import rep4
from common import BITS, Z32, Z64, Z128, Place
from common import draw, require, sharing_fields, tag, write_or_check


class Run:
    """One chunk of a run: where it stands, and what its parties send."""

    def __init__(self, parties, ring, lane, chunk, chunk_rows, rows):
        self.parties, self.ring, self.rows = parties, ring, rows
        self.where = (lane, chunk, chunk_rows, rows)
        self.messages = []
        name = f"conversions/{parties}/{ring.name}/{rows}"
        self.x = (rep3 if parties == 3 else rep4).deal(ring, name, rows)
        self.keys = [draw(f"conversions/{parties}/key{c}", 16) for c in range(parties)]

    def place(self, ring, first):
        lane, chunk, chunk_rows, rows = self.where
        return Place(ring, lane, chunk, first, chunk_rows, rows)

    def products(self, layer, ring, first, pairs):
        """The products of a layer; whoever sends something sends all of them in one message."""
        place = self.place(ring, first)
        results = []
        sent = [b""] * (3 if self.parties == 3 else 6)
        for item, pair in enumerate(pairs):
            if self.parties == 3:
                _, parts, _ = rep3.product(place, self.keys, item, [pair])
                results.append([place.share(part) for part in parts])
            else:
                _, parts, components, _ = rep4.product(place, self.keys, item, [pair])
                results.append([place.share(c) for c in components])
            sent = [whole + ring.encode(part) for whole, part in zip(sent, parts)]
        number = {"layer": layer}
        if self.parties == 3:
            part = 2 if ring is BITS else 0
            for i in range(3):
                self.messages.append(number | {"from": i, "to": (i + 1) % 3, "part": part, "bytes": sent[i].hex()})
            return results
        lane, chunk, _, _ = self.where
        for k, (pair, receiver, _) in enumerate(rep4.JOINT):
            sender, voucher = reversed(pair) if chunk % 2 else pair
            part = 18 + k if ring is BITS else 3 * k
            code = rep4.code(rep4.pair_key((voucher, receiver)), lane, tag("CODE4", k), layer, chunk, [sent[k]])
            self.messages.append(number | {"from": sender, "to": receiver, "part": part, "bytes": sent[k].hex()})
            self.messages.append(number | {"from": voucher, "to": receiver, "part": 3 * k + 2, "bytes": code.hex()})
        return results

    def component(self, ring, c, column):
        """The sharing of what is known to all holders of component c: all other components are zero."""
        zero = [0] * len(column)
        return [column if other == c else zero for other in range(self.parties)]

    def bit_of_component(self, c, j):
        bits = [u >> j & 1 for u in self.x[c]]
        return self.component(BITS, c, bits + [0] * (BITS.padded(self.rows) - self.rows))

    def bit_1(self, first):
        """Bit 1 of x: the XOR of that of all components, and of the carries of their bits 0."""
        low, high = ([self.bit_of_component(c, j) for c in range(self.parties)] for j in (0, 1))
        # A carry of three bits is a + (a + b)(a + c).
        a, b, c = low[-1], low[-2], low[-3]
        pairs = [(xor(a, b), xor(a, c))]
        linear = [*high, a]
        if self.parties == 4:
            # The sum of these three and the fourth bit make a carry too.
            pairs.append((low[0], xor(a, b, c)))
        return xor(*linear, *self.products(0, BITS, first, pairs))

    def lift(self, bit):
        """The integer that is a bit: a lift of two rounds, which begins in the layer that computes the bit."""
        place = self.place(self.ring, 0)
        columns = [column[: self.rows] for column in bit]
        messages, results = lifts.lifts(self.parties, place, self.keys, [columns], 0, (1, 2))
        self.messages += messages
        return results[0]

    def case(self):
        # There are no products of integers, whose draws would come before.
        bit = self.bit_1(0)
        result = self.lift(bit)
        value = self.ring.add(*self.x)
        require(self.ring.add(*result) == [x >> 1 & 1 for x in value], "the result is not bit 1")
        lane, chunk, chunk_rows, rows = self.where
        place = {"lane": lane, "chunk": chunk, "chunk_rows": chunk_rows, "rows": rows}
        shares = {"x": sharing_fields(self.ring, self.x), "result": sharing_fields(self.ring, result)}
        return {"ring": self.ring.name} | place | shares | {"messages": self.messages}


def xor(*sharings):
    return [BITS.add(*columns) for columns in zip(*sharings)]


def vectors(parties):
    cases = []
    for ring in (Z32, Z64, Z128):
        for lane, chunk, chunk_rows, rows in [(0, 0, 1, 1), (2, 1, 9, 9), (1, 6, 100, 67)]:
            cases.append(Run(parties, ring, lane, chunk, chunk_rows, rows).case())
    keys = [draw(f"conversions/{parties}/key{c}", 16).hex() for c in range(parties)]
    fields = {"keys": keys}
    if parties == 4:
        pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
        fields["pairs"] = {f"{a}{b}": rep4.pair_key((a, b)).hex() for a, b in pairs}
    return fields | {"cases": cases}


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of conversions between integers and bits.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    check = parser.parse_args().check
    folder = pathlib.Path(__file__).resolve().parent.parent
    files = {f"conversions{parties}.json": vectors(parties) for parties in (3, 4)}
    write_or_check(folder, files, check, "vectors/model/conversions.py")


if __name__ == "__main__":
    main()
