#!/usr/bin/env python3
"""Golden model of the check of products of integers by their codes, among three parties: whole transcripts from fixed keys.

Written from the formulas, with plain Python integers; no code is shared with the Rust crates.

    python3 vectors/model/codes.py            write the vectors
    python3 vectors/model/codes.py --check    compare them with what is committed; exit 1 if they differ
    python3 vectors/model/codes.py --escapes  cheat over small rings, and compare how often it is missed with the bound

From: Chida, Genkin, Hamada, Ikarashi, Kikuchi, Lindell, Nof, Fast Large-Scale Honest-Majority MPC for Malicious Adversaries,
CRYPTO 2018, for codes; Abspoel, Dalskov, Escudero, Nof, An Efficient Passive-to-Active Compiler for Honest-Majority MPC over
Rings, ACNS 2021, for the larger ring. Weights are shared, and r is of one chunk: docs/protocol-rep3.md says why. What every
field of the file means is said in vectors/README.md.
"""

import argparse
import itertools
import pathlib
import random
import sys
from fractions import Fraction

from common import Z128, Place, Ring
from common import draw, require, sharing_fields, write_or_check
from rep3 import deal, local_product, product

PARTIES = range(3)
# Tags of what is drawn for a check: r, weights of rows, masks of its products.
KEY, WEIGHT, MASK = 0x1400, 0x1401, 0x1403


class Chunk:
    """(x y) z in every row of a chunk, beside codes, and what its parties send."""

    def __init__(self, lane, chunk, chunk_rows, rows):
        self.where = (lane, chunk, chunk_rows, rows)
        self.keys = [draw(f"codes/key{i}", 16) for i in PARTIES]
        self.rows, self.messages, self.pairs, self.drawn = rows, [], [], 0
        name = f"codes/{chunk}/{rows}"
        self.inputs = [deal(Z128, f"{name}/{k}", rows) for k in "xyz"]

    def place(self, first, once=False):
        lane, chunk, chunk_rows, rows = self.where
        return Place(Z128, lane, chunk, first, chunk_rows, rows, once)

    def random(self, use, first, once=False):
        """A shared random column, or element: component i under the key of parties i and i + 1."""
        return [self.place(first, once).stream(key, use, 0) for key in self.keys]

    def send(self, step, shares):
        """What each party sends to the next one, and has itself as its own component."""
        for i in PARTIES:
            whole = "".join(Z128.hex(share[i]) for share in shares)
            self.messages.append({"step": step, "from": i, "to": (i + 1) % 3, "bytes": whole})

    def layer(self, step, pairs):
        """Products of a layer, each one mask and one element per row."""
        results = []
        for pair in pairs:
            first = self.drawn * self.place(0).stride
            results.append(product(self.place(first), self.keys, 0, [pair])[1])
            self.drawn += 1
        self.send(step, results)
        return results

    def masked(self, local, first):
        """The message that is a part of a sum of products: what each party computed of it, and a share of zero."""
        rho = self.random(MASK, first, once=True)
        return [[(local[i] + rho[i][0] - rho[i - 1][0]) & Z128.mask] for i in PARTIES]

    def dot(self, columns, first):
        """The sum of all products of two columns."""
        local = [sum(sum(local_product(Z128, i, u, w)) for u, w in columns) for i in PARTIES]
        return self.masked(local, first)

    def case(self):
        x, y, z = self.inputs
        r = self.random(KEY, 0, once=True)
        key = [component * self.rows for component in r]
        # The code of x, then products and their codes; a pair is what is checked to fit.
        (code,) = self.layer(0, [(x, key)])
        pairs = [(x, code)]
        value = x
        for step, factor in ((1, y), (2, z)):
            value, code = self.layer(step, [(value, factor), (code, factor)])
            pairs.append((value, code))
        _, _, chunk_rows, _ = self.where
        weights = [self.random(WEIGHT, k * chunk_rows) for k in range(len(pairs))]
        sums = [self.dot([(w, pair[k]) for w, pair in zip(weights, pairs)], k) for k in (0, 1)]
        self.send(3, sums)
        times = self.dot([(r, sums[0])], 2)
        self.send(4, [times])
        difference = [Z128.sub(sums[1][i], times[i]) for i in PARTIES]
        require(Z128.add(*difference) == [0], "codes do not fit")
        for i in PARTIES:
            # The component that a party lacks is told by both of its holders.
            own, previous = Z128.hex(difference[i]), Z128.hex(difference[i - 1])
            self.messages.append({"step": 5, "from": i, "to": (i + 2) % 3, "bytes": own})
            self.messages.append({"step": 5, "from": i, "to": (i + 1) % 3, "bytes": previous})
        clear = Z128.mul(Z128.mul(Z128.add(*x), Z128.add(*y)), Z128.add(*z))
        require(Z128.add(*value) == clear, "the result is not the product")
        lane, chunk, chunk_rows, rows = self.where
        place = {"lane": lane, "chunk": chunk, "chunk_rows": chunk_rows, "rows": rows}
        inputs = [sharing_fields(Z128, u) for u in self.inputs]
        return place | {"inputs": inputs, "result": sharing_fields(Z128, value), "messages": self.messages}


def vectors():
    cases = [Chunk(*where).case() for where in [(0, 1, 1, 1), (2, 3, 9, 9), (1, 6, 100, 67)]]
    keys = [draw(f"codes/key{i}", 16).hex() for i in PARTIES]
    return {"keys": keys, "cases": cases}


# --------------------------------------------------------------------------------------- what a cheater can do


def bound(s):
    """How often the check misses an error that changes a result, at most."""
    return Fraction(s + 3, 2 ** (s + 2))


def missed(k, s, rounds, rng):
    """How often three parties over Z_2^(k+s) miss the best error of party 0, which guesses r.

    It adds 2^(k-1) to a product x y, and what would fit if r was its guess to the code of it.
    """
    ring = Ring("small", k + s)
    size = 1 << ring.bits

    def share(value):
        u = [rng.randrange(size) for _ in range(2)]
        return [[u[0]], [u[1]], [(value - sum(u)) % size]]

    def times(u, w, error=0):
        zero = share(0)
        parts = [ring.add(local_product(ring, i, u, w), zero[i]) for i in PARTIES]
        return [ring.add(parts[0], [error % size]), *parts[1:]]

    count = 0
    for _ in range(rounds):
        x, y, r, w1, w2 = (share(rng.randrange(size)) for _ in range(5))
        guess, error = rng.randrange(size), 1 << (k - 1)
        code = times(x, r)
        value, code_of_value = times(x, y, error), times(code, y, guess * error)
        sums = [[ring.add(*both) for both in zip(times(w1, a), times(w2, b))] for a, b in ((x, value), (code, code_of_value))]
        product_with_r = times(r, sums[0])
        difference = [ring.sub(sums[1][i], product_with_r[i]) for i in PARTIES]
        count += ring.add(*difference) == [0]
    return count / rounds


def best(k, s):
    """The largest probability, over r and the weight, with which any errors of a product and of the check are missed."""
    size = 1 << (k + s)
    most = Fraction(0)
    harmful = [d for d in range(1, 1 << k)]
    for d, f, c, e in itertools.product(harmful, range(size), range(size), range(size)):
        # T = w (f - r d) + c - r e
        count = sum((w * (f - r * d) + c - r * e) % size == 0 for r in range(size) for w in range(size))
        most = max(most, Fraction(count, size * size))
    return most


def learned(size, shared):
    """How much whether the check fails depends on a secret y, when party 0 adds something to the code of x, and to that of x y.

    With shared weights as with public ones that a cheater knows: the largest difference between two values of y, over all errors.
    """
    most = Fraction(0)
    for e, f, c in itertools.product(range(size), repeat=3):
        # T = w_1 e + w_2 (e y + f) + c
        fails = {
            (w1, w2, y): (w1 * e + w2 * (e * y + f) + c) % size == 0
            for w1, w2, y in itertools.product(range(size), repeat=3)
        }
        weights = list(itertools.product(range(size), repeat=2))
        groups = [weights] if shared else [[w] for w in weights]
        for group in groups:
            rates = [Fraction(sum(fails[w1, w2, y] for w1, w2 in group), len(group)) for y in range(size)]
            most = max(most, max(rates) - min(rates))
    return most


def escapes():
    for k, s in ((1, 1), (2, 1), (1, 2)):
        found = best(k, s)
        print(f"k = {k}, s = {s}: at most {found} of all errors are missed, {bound(s)} by the formula")
        if found != bound(s):
            sys.exit("not the bound")
    for k, s in ((4, 3), (3, 5), (8, 6)):
        rounds = 40000
        rate, expected = missed(k, s, rounds, random.Random(1)), float(bound(s))
        print(f"k = {k}, s = {s}: {rate:.4f} of the best cheats are missed, {expected:.4f} expected")
        if abs(rate - expected) > 4 * (expected * (1 - expected) / rounds) ** 0.5:
            sys.exit("not as many as the formula says")
    shared, public = learned(8, True), learned(4, False)
    print(f"what the check tells about a secret: {shared} with weights of nobody, {public} with weights that a cheater knows")
    if shared != 0 or public == 0:
        sys.exit("the check tells something, or would not if weights were known")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed vectors")
    parser.add_argument("--escapes", action="store_true", help="cheat over small rings")
    arguments = parser.parse_args()
    if arguments.escapes:
        escapes()
        return
    folder = pathlib.Path(__file__).resolve().parent.parent
    write_or_check(folder, {"codes.json": vectors()}, arguments.check, "vectors/model/codes.py")


if __name__ == "__main__":
    main()
