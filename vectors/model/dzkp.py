#!/usr/bin/env python3
"""Golden model of the proof that products of bits were computed rightly: whole transcripts from fixed keys.

Written from the formulas, with plain Python integers; no code is shared with the Rust crates.

    python3 vectors/model/dzkp.py            write the vectors
    python3 vectors/model/dzkp.py --check    compare them with what is committed; exit 1 if they differ
    python3 vectors/model/dzkp.py --escapes  forge proofs over a small field, and compare how many pass with the bound

From: Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai, Zero-Knowledge Proofs on Secret-Shared Data via Fully Linear PCPs,
CRYPTO 2019, section 4.2 for the recursion; Li, Duan, Dong, Hong, Li, Zhang, Li, Efficient 3PC for Binary Circuits with
Application to Maliciously-Secure DNN Inference, USENIX Security 2023, for the relation of an AND. What every field of
the file means is said in vectors/README.md.
"""

import argparse
import pathlib
import random
import sys

from common import BITS, FAMILIES, Place
from common import draw, prf_block, require, sharing_fields, tag, write_or_check
from rep3 import deal, local_product, zero_sharing

PARTIES = range(3)
P = 2**61 - 1


def factor(level):
    """How many values are folded into one at a level, from 1."""
    return 4 if level <= 3 else 8


def length(products, rows, level):
    """Length of the vectors that enter a level from 3 on: a value per product and row, whole bytes of rows."""
    n = -(-products // 4) * -(-rows // 8) * 8
    for before in range(3, level):
        n = -(-n // factor(before))
    return n


def levels(products, chunk_rows):
    """The last level is the first from 4 on whose vectors leave room for a mask."""
    level = 4
    while length(products, chunk_rows, level) >= factor(level):
        level += 1
    return level


def evaluate(values, x, p):
    """At x, the polynomial of smallest degree that has these values at 0, 1, 2, ..."""
    total = 0
    for i, value in enumerate(values):
        above = below = 1
        for j in range(len(values)):
            if j != i:
                above, below = above * (x - j) % p, below * (i - j) % p
        total += value * above * pow(below, -1, p)
    return total % p


# ------------------------------------------------------------------------------------------- the statement


def left_half(a, c, e, p):
    return [v * (1 - 2 * e) % p for v in (-2 * a * c, c, a, -pow(2, -1, p))]


def right_half(b, d, f, p):
    return [v * (1 - 2 * f) % p for v in (b * d, d, b, 1)]


def known(i, gate):
    """Of party i's product what both halves are made of: what P_(i+1) knows, and what P_(i-1) knows.

    A gate is (u, w, rho, r): the components of both operands, the masks, and what each party sent.
    """
    u, w, rho, r = gate
    return (u[i], w[i], r[i] ^ rho[i]), (w[i - 1], u[i - 1], rho[i - 1] ^ (u[i - 1] & w[i - 1]))


def prover(i, gate):
    """The same as party i itself has it, who knows what it should have sent."""
    (a, c, _), (b, d, f) = known(i, gate)
    return (a, c, (a & b) ^ (c & d) ^ f), (b, d, f)


def chunks(vector, n):
    """Chunk j is every n-th value from j on; zero beyond the end."""
    size = -(-len(vector) // n)
    padded = vector + [0] * (size * n - len(vector))
    return [padded[j::n] for j in range(n)]


class Statement:
    """Vectors of one half, as they are folded. `bits[product][row]`."""

    def __init__(self, half, bits, rows, p):
        self.p, self.level = p, 1
        width = -(-rows // 8) * 8
        self.columns = [[half(*bit, p) for bit in column] + [None] * (width - rows) for column in bits]
        self.vector = None

    def pieces(self):
        """Chunks of this level: four values of a gate, then a gate of each quarter of the products, then of the vector."""
        if self.level == 1:
            return [gate or [0] * 4 for column in self.columns for gate in column]
        size = factor(self.level)
        n = self.n if self.level == 2 else -(-len(self.vector) // size)
        return [piece + [0] * (size - len(piece)) for piece in chunks(self.vector, n)]

    def fold(self, r):
        self.vector = [evaluate(piece, r, self.p) for piece in self.pieces()]
        if self.level == 1:
            width = len(self.columns[0])
            self.n = -(-len(self.columns) // 4) * width
        self.level += 1

    def last(self, mask):
        """The only chunk of the last level: what is left, and a mask in the last place."""
        size = factor(self.level)
        require(len(self.vector) < size, "the last level has room for a mask")
        return self.vector + [0] * (size - 1 - len(self.vector)) + [mask]


def products_of(left, right, p):
    """The polynomial whose sum over a chunk's places is the inner product: its values at 0, ..., 2 L - 2."""
    size = len(left[0])
    points = range(2 * size - 1)
    return [sum(evaluate(u, x, p) * evaluate(v, x, p) for u, v in zip(left, right)) % p for x in points]


class Verifier:
    """What a verifier keeps of the claim: its share of it, and what it has to tell the other one."""

    def __init__(self, claim, p):
        self.claim, self.record, self.p = claim % p, [], p

    def level(self, share, places, r):
        self.record.append((self.claim - sum(share[:places])) % self.p)
        self.claim = evaluate(share, r, self.p)


def accepts(right, left, p):
    """Both records, the last two entries of which are a value of a half and a share of their product."""
    sums = all((a + b) % p == 0 for a, b in zip(right[:-2], left[:-2]))
    return sums and (right[-2] * left[-2] - right[-1] - left[-1]) % p == 0


def prove(i, gates, rows, last, p, randomness, forge=None):
    """The proof of party i about `gates[product][row]`: shares sent, challenges, records of both verifiers, verdict.

    `forge(values, claim, places)` is what a cheater makes of the values of a level, which it then computes from what
    the verifiers have; `randomness(what, level, element)` is what keys give.
    """
    of_prover = [[(known if forge else prover)(i, gate) for gate in column] for column in gates]
    of_others = [[known(i, gate) for gate in column] for column in gates]
    side = lambda bits, k: [[gate[k] for gate in column] for column in bits]
    mine = [Statement(half, side(of_prover, k), rows, p) for k, half in enumerate((left_half, right_half))]
    theirs = [Statement(half, side(of_others, k), rows, p) for k, half in enumerate((left_half, right_half))]
    claim = -len(gates) * rows * pow(2, -1, p)
    right, left = Verifier(claim, p), Verifier(0, p)
    sent, challenges, true_claim = [], [], claim % p
    for level in range(1, last + 1):
        size, ends = factor(level), level == last
        masks = [randomness("PMASK", 0, 0), randomness("QMASK", 0, 0)] if ends else []
        pieces = [[s.last(m)] for s, m in zip(mine, masks)] if ends else [s.pieces() for s in mine]
        values = products_of(*pieces, p)
        places = size - 1 if ends else size
        if forge:
            values = forge(values, true_claim, places)
        drawn = [randomness("SHARE", level, k) for k in range(len(values))]
        share = [(v - d) % p for v, d in zip(values, drawn)]
        r = randomness("CHAL", level, 0)
        right.level(share, places, r)
        left.level(drawn, places, r)
        true_claim = (right.claim + left.claim) % p
        sent.append(share)
        challenges.append(r)
        if ends:
            finals = [evaluate(s.last(m), r, p) for s, m in zip(theirs, masks)]
        else:
            for s in mine + theirs:
                s.fold(r)
    right.record += [finals[0], right.claim]
    left.record += [finals[1], left.claim]
    return sent, challenges, right.record, left.record, accepts(right.record, left.record, p)


# ------------------------------------------------------------------------------------------------- vectors


def drawn_by_keys(kappa, place, i):
    """What the keys give: shares and the mask of the right half under kappa_(i-1), the other mask under kappa_i, and
    challenges under kappa_(i+1), which party i does not have. 128 bits modulo the number of choices."""
    keys = {"SHARE": kappa[i - 1], "QMASK": kappa[i - 1], "PMASK": kappa[i], "CHAL": kappa[(i + 1) % 3]}

    def randomness(what, level, element):
        counter = level << 16 | element
        block = prf_block(keys[what], tag(f"DZKP_{what}", i), place.lane, counter, place.chunk)
        first = factor(level) if what == "CHAL" else 0
        return first + int.from_bytes(block, "little") % (P - first)

    return randomness


def elements(values):
    return b"".join(v.to_bytes(8, "little") for v in values).hex()


def case(name, place, kappa, inputs, items, wrong=()):
    """`items` are pairs of columns: inputs, then results of earlier items. `wrong` are (party, item, row) of bits that a
    party sends wrong, and that its next one then has."""
    rows = place.rows
    columns, gates = list(inputs), []
    sent = [[] for _ in PARTIES]
    for item, (l, r) in enumerate(items):
        u, w = columns[l], columns[r]
        rho = [place.stream(kappa[i], tag("AND3"), item) for i in PARTIES]
        alpha = zero_sharing(place, kappa, tag("AND3"), item)
        parts = [BITS.add(local_product(BITS, i, u, w), alpha[i]) for i in PARTIES]
        for party, at, row in wrong:
            if at == item:
                parts[party][row] ^= 1
        for i in PARTIES:
            sent[i].append(BITS.encode(parts[i]))
        columns.append([place.share(part) for part in parts])
        pick = lambda per_party, row: [per_party[i][row] for i in PARTIES]
        gates.append([tuple(pick(x, row) for x in (u, w, rho, parts)) for row in range(rows)])
    last = levels(len(items), place.chunk_rows)
    proofs = []
    for i in PARTIES:
        shares, challenges, right, left, verdict = prove(i, gates, rows, last, P, drawn_by_keys(kappa, place, i))
        require(verdict == (not any(party == i for party, *_ in wrong)), "a wrong bit is found, a right one is not")
        proofs.append(
            {
                "shares": [elements(share) for share in shares],
                "challenges": [elements([r]) for r in challenges],
                "right": elements(right),
                "left": elements(left),
                "accepted": verdict,
            }
        )
    return {
        "name": name,
        **place.fields(),
        "levels": last,
        "wrong": [list(w) for w in wrong],
        "operands": [sharing_fields(BITS, u) for u in inputs],
        "items": [list(item) for item in items],
        "messages": [b"".join(sent[i]).hex() for i in PARTIES],
        "proofs": proofs,
    }


def vectors():
    kappa = [draw(f"dzkp/kappa{i}", 16) for i in PARTIES]
    operands = lambda name, rows, count: [deal(BITS, f"dzkp/{name}/{k}", rows) for k in range(count)]
    cases = []
    for rows in (1, 9, 64):
        place = Place(BITS, 0, 1, 0, rows, rows)
        cases.append(case(f"one-{rows}", place, kappa, operands(f"one{rows}", rows, 2), [(0, 1)]))
    several = [(0, 1), (1, 2), (2, 0), (0, 0), (1, 1), (2, 2)]
    place = Place(BITS, 3, 0x01020304, 0, 200, 130)
    cases.append(case("last-chunk", place, kappa, operands("last", 130, 3), several))
    place = Place(BITS, 0, 2, 0, 600, 600)
    cases.append(case("longer", place, kappa, operands("longer", 600, 3), several[:5]))
    # Whole bytes: what is computed along in rows that do not exist is not the model's business.
    place = Place(BITS, 1, 3, 0, 24, 16)
    chained = [(0, 1), (1, 1), (2, 3), (2, 0)]
    cases.append(case("two-layers", place, kappa, operands("chain", 16, 2), chained))
    for party in PARTIES:
        cases.append(case(f"wrong-{party}", place, kappa, operands("chain", 16, 2), chained, [(party, 2, 7)]))
    return {"keys": [k.hex() for k in kappa], "families": {k: v for k, v in FAMILIES.items() if "DZKP" in k}, "cases": cases}


# ------------------------------------------------------------------------------------------------- escapes


def best_forgery(p, rng):
    """The sum becomes right by adding a polynomial with as many zeros as its degree allows, at possible challenges."""

    def forge(values, claim, places):
        size = (len(values) + 1) // 2
        missing = (claim - sum(values[:places])) % p
        if missing == 0:
            return values
        while True:
            zeros = rng.sample(range(size, p), 2 * size - 2)
            added = [product(x - z for z in zeros) % p for x in range(2 * size - 1)]
            if sum(added[:places]) % p:
                scale = missing * pow(sum(added[:places]), -1, p)
                return [(v + scale * a) % p for v, a in zip(values, added)]

    return forge


def product(numbers):
    result = 1
    for n in numbers:
        result *= n
    return result


def escapes(p, products, trials, rng):
    """How often a forged proof of one wrong bit passes over the field of p elements, and how often it should."""
    last = levels(products, 1)
    passed = 0
    for _ in range(trials):
        batch = []
        for g in range(products):
            u, w, rho = ([rng.getrandbits(1) for _ in PARTIES] for _ in range(3))
            r = [(u[i - 1] ^ u[i]) & (w[i - 1] ^ w[i]) ^ (u[i] & w[i]) ^ rho[i] ^ rho[i - 1] for i in PARTIES]
            r[0] ^= g == 0
            batch.append([(u, w, rho, r)])

        def randomness(what, level, element):
            return rng.randrange(factor(level), p) if what == "CHAL" else rng.randrange(p)

        passed += prove(0, batch, 1, last, p, randomness, best_forgery(p, rng))[-1]
    caught = product(1 - (2 * factor(t) - 2) / (p - factor(t)) for t in range(1, last + 1))
    return passed / trials, 1 - caught


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed vectors")
    parser.add_argument("--escapes", action="store_true", help="forge proofs over small fields")
    arguments = parser.parse_args()
    if arguments.escapes:
        for p in (127, 509, 2039):
            trials = 2000
            rate, expected = escapes(p, 3, trials, random.Random(1))
            deviation = (expected * (1 - expected) / trials) ** 0.5
            print(f"p = {p}: {rate:.4f} of forged proofs pass, {expected:.4f} expected")
            if abs(rate - expected) > 4 * deviation:
                sys.exit("not as many as the formula says")
        return
    folder = pathlib.Path(__file__).resolve().parent.parent
    write_or_check(folder, {"dzkp.json": vectors()}, arguments.check, "vectors/model/dzkp.py")


if __name__ == "__main__":
    main()
