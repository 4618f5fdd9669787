#!/usr/bin/env python3
"""Golden model of the proof that products of bits were computed rightly: whole transcripts from fixed keys.

Written from the formulas, with plain Python integers; no code is shared with the Rust crates.

    python3 vectors/model/dzkp.py            write the vectors
    python3 vectors/model/dzkp.py --check    compare them with what is committed; exit 1 if they differ
    python3 vectors/model/dzkp.py --escapes  forge proofs over small fields, compare how many pass with the formula, and
                                             enumerate what a verifier sees: dzkp_escapes.py

From: Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai, Zero-Knowledge Proofs on Secret-Shared Data via Fully Linear PCPs,
CRYPTO 2019, section 4.2 for the recursion; Boyle, Gilboa, Ishai, Nof, Practical Fully Secure Three-Party Computation via
Sublinear Distributed Zero-Knowledge Proofs, CCS 2019, for its use with this sharing. The equations and the argument are in
docs/protocol-rep3.md; what every field of the file means is said in vectors/README.md.
"""

import argparse
import pathlib

from binary_field import Field
from common import BITS, FAMILIES, Place
from common import draw, prf_block, require, sharing_fields, tag, write_or_check
from rep3 import deal, local_product, zero_sharing

PARTIES = range(3)
FIELD = Field(64)


class Shape:
    """Sizes of a proof over a field: `words` of the batch, each of as many bits as the field; those of the `longest` chunk, which
    decide the number of levels; values that are folded into one at level 1 (`pieces`), at level 2, and at later ones."""

    def __init__(self, words, longest=None, field=FIELD, pieces=32, second=4, later=8):
        self.field, self.factors, self.words = field, (pieces, second, later), words
        self.per_piece = max(1, -(-words // pieces))
        self.last = self.levels(longest or words)

    def factor(self, level):
        return self.factors[min(level, 3) - 1]

    def levels(self, words):
        """The last level is the first from 3 on whose vectors leave room for a mask."""
        pieces, second, later = self.factors
        length = -(-2 * self.field.bits * max(1, -(-words // pieces)) // second)
        level = 3
        while length >= later:
            length, level = -(-length // later), level + 1
        return level

    def places(self, level):
        """Where the prover shares the level's polynomial. Claims say what its other values are."""
        size = self.factor(level)
        return range(size if level == 1 else 1, 2 * size - 1)

    def summed(self, level):
        """Places whose values add up to the claim, from level 2 on: at the last one all but that of the mask."""
        return self.factor(level) - (level == self.last)

    def pieces(self, words):
        """The words of each piece of level 1, zero beyond the end."""
        padded = words + [0] * (self.factors[0] * self.per_piece - len(words))
        return [padded[at : at + self.per_piece] for at in range(0, len(padded), self.per_piece)]


# ------------------------------------------------------------------------------------------- the statement


def known(i, gate):
    """Of party i's product what P_(i+1) knows, (a, c, e), and what P_(i-1) knows, (b, d, f): a b + c d + e + f = 0.

    A gate is (u, w, rho, r): the components of both operands, the masks, and what each party sent.
    """
    u, w, rho, r = gate
    return (u[i], w[i], r[i] ^ rho[i]), (w[i - 1], u[i - 1], rho[i - 1] ^ (u[i - 1] & w[i - 1]))


def words_of(rows, bits=64):
    """A column of single bits in whole words, the first row lowest; rows that do not exist are 0."""
    return [sum(bit << b for b, bit in enumerate(rows[at : at + bits])) for at in range(0, len(rows), bits)]


def statement(i, products, bits=64):
    """The six strings of words of party i's batch, `products[product][row]`: (a, c, e) and (b, d, f)."""
    halves = [], []
    for half, strings in enumerate(halves):
        for value in range(3):
            columns = [[known(i, gate)[half][value] for gate in column] for column in products]
            strings.append([word for column in columns for word in words_of(column, bits)])
    return halves


# ----------------------------------------------------------------------------------------------- vectors


def expanded(shape, keys, words, r):
    """Of two strings of words the value at r of the polynomial that each position is, times its weight where there are `keys`:
    element (bits c + b) n + j is of string c, bit b of word j."""
    field, result = shape.field, []
    at_r = field.coefficients(range(shape.factors[0]), r)
    for string in words:
        pieces = shape.pieces(string)
        for b in range(field.bits):
            for j in range(shape.per_piece):
                value = 0
                for coefficient, piece in zip(at_r, pieces):
                    value ^= coefficient if piece[j] >> b & 1 else 0
                result.append(field.mul(field.mul(keys[j], 1 << b), value) if keys else value)
    return result


def chunks(shape, level, vector):
    """Value k of position j is element k n + j; zero beyond the end."""
    size = shape.factor(level)
    n = -(-len(vector) // size)
    padded = vector + [0] * (size * n - len(vector))
    return [padded[k * n : (k + 1) * n] for k in range(size)]


def folded(shape, level, vector, r):
    at_r = shape.field.coefficients(range(shape.factor(level)), r)
    return [shape.field.dot(at_r, position) for position in zip(*chunks(shape, level, vector))]


def with_mask(shape, vector, mask):
    """The only position of the last level: what is left, and a mask in the last place."""
    size = shape.factor(shape.last)
    require(len(vector) < size, "the last level has room for a mask")
    return vector + [0] * (size - 1 - len(vector)) + [mask]


def from_products(shape, level, product):
    """The polynomial's values at 0, ..., 2 L - 2 from the inner products of values j of one vector and k of the other."""
    field, size = shape.field, shape.factor(level)
    table = [[product(j, k) for k in range(size)] for j in range(size)]
    values = [table[k][k] for k in range(size)]
    for x in range(size, 2 * size - 1):
        at_x = field.coefficients(range(size), x)
        values.append(field.dot(at_x, [field.dot(row, at_x) for row in table]))
    return values


def first_polynomial(shape, keys, a, b, c, d):
    """G_1(X) = sum of theta_p (A_p(X) B_p(X) + C_p(X) D_p(X)): a product of a key and a word of bits each."""
    a, b, c, d = (shape.pieces(string) for string in (a, b, c, d))

    def product(j, k):
        return shape.field.dot(keys, [p & q ^ s & t for p, q, s, t in zip(a[j], b[k], c[j], d[k])])

    return from_products(shape, 1, product)


def polynomial(shape, level, left, right):
    left, right = chunks(shape, level, left), chunks(shape, level, right)
    return from_products(shape, level, lambda j, k: shape.field.dot(left[j], right[k]))


# --------------------------------------------------------------------------------------------------- roles


class Verifier:
    """What one verifier keeps: its share of the claim, and its half of the vectors. `bits` are (a, c, e) or (b, d, f); only
    P_(i+1) weighs its half."""

    def __init__(self, shape, keys, bits, weighs):
        self.shape, self.keys, self.bits, self.weighs = shape, keys, bits, weighs
        self.claims = [shape.field.dot(keys, piece) for piece in shape.pieces(bits[2])]
        self.claim = self.vector = None

    def level(self, level, share, r):
        """From its share of the values that are shared: its share of all values, and of the next claim."""
        if level == 1:
            values = self.claims + share
        else:
            first = self.claim
            for value in share[: self.shape.summed(level) - 1]:
                first ^= value
            values = [first, *share]
        self.claim = self.shape.field.evaluate(values, r)

    def fold(self, level, r):
        if level == 1:
            self.vector = expanded(self.shape, self.keys if self.weighs else None, self.bits[:2], r)
        else:
            self.vector = folded(self.shape, level, self.vector, r)

    def findings(self, mask, r):
        """What it tells the other one: its half at the last challenge, and its share of the product."""
        return self.shape.field.evaluate(with_mask(self.shape, self.vector, mask), r), self.claim


def accepts(field, right, left):
    return field.mul(right[0], left[0]) == right[1] ^ left[1]


class Prover:
    """Party i, who has both halves: it computes with what it is told, which may be another seed or challenge."""

    def __init__(self, shape, keys, right, left):
        self.shape, self.keys = shape, keys
        self.sides = Verifier(shape, keys, right, True), Verifier(shape, keys, left, False)

    def polynomial(self, level, masks):
        if level == 1:
            (a, c, _), (b, d, _) = (side.bits for side in self.sides)
            return first_polynomial(self.shape, self.keys, a, b, c, d)
        halves = [side.vector for side in self.sides]
        if level == self.shape.last:
            halves = [with_mask(self.shape, half, mask) for half, mask in zip(halves, masks)]
        return polynomial(self.shape, level, *halves)

    def fold(self, level, r):
        for side in self.sides:
            side.fold(level, r)


class Transcript:
    """A proof: shares that P_(i+1) received, those that P_(i-1) drew, challenges, what both found, whether all echoes were right."""

    def __init__(self):
        self.sent, self.drawn, self.challenges, self.echoes = [], [], [], True
        self.right = self.left = self.accepted = None


def prove(shape, right, left, randomness, forge=None, told=None):
    """The proof about (a, c, e) of P_(i+1) and (b, d, f) of P_(i-1).

    `randomness(what, level, element)` is what keys give; "KEYS" are those of the weights. `forge(level, values, wanted)` is what a cheater makes of the
    values of a level, which should have `wanted` as claims, or as sum; `told(what, level, value)` is what a cheating P_(i+1) tells the prover.
    """
    field, result = shape.field, Transcript()
    keys = randomness("KEYS", 0, shape.per_piece)
    told_keys = told("KEYS", 0, keys) if told else keys
    result.echoes = told_keys == keys
    verifiers = Verifier(shape, keys, right, True), Verifier(shape, keys, left, False)
    prover = Prover(shape, told_keys, right, left)
    masks = randomness("PMASK", 0, 0), randomness("QMASK", 0, 0)
    for level in range(1, shape.last + 1):
        values = prover.polynomial(level, masks)
        if forge:
            claims = zip(verifiers[0].claims, verifiers[1].claims)
            wanted = [p ^ q for p, q in claims] if level == 1 else verifiers[0].claim ^ verifiers[1].claim
            values = forge(level, values, wanted)
        values = [values[x] for x in shape.places(level)]
        drawn = [randomness("SHARE", level, k) for k in range(len(values))]
        share = [v ^ d for v, d in zip(values, drawn)]
        r = randomness("CHAL", level, 0)
        verifiers[0].level(level, share, r)
        verifiers[1].level(level, drawn, r)
        if level < shape.last:
            told_r = told("CHAL", level, r) if told else r
            result.echoes &= told_r == r
            prover.fold(level, told_r)
            for verifier in verifiers:
                verifier.fold(level, r)
        result.sent.append(share)
        result.drawn.append(drawn)
        result.challenges.append(r)
    result.right, result.left = (v.findings(mask, r) for v, mask in zip(verifiers, masks))
    result.accepted = result.echoes and accepts(field, result.right, result.left)
    return result


# ------------------------------------------------------------------------------------------------- vectors


def low(block):
    """The lowest 64 bits of a PRF block."""
    return int.from_bytes(block[:8], "little")


def seed_of(kappa, place, i):
    """The key of the weights of party i's batch: two elements under the key that party i lacks."""
    blocks = (prf_block(kappa[(i + 1) % 3], tag("DZKP_SEED", i), place.lane, k, place.chunk) for k in range(2))
    return b"".join(block[:8] for block in blocks)


def keys_of(seed, place, count):
    """One for each word of a piece: halves of blocks."""
    blocks = [prf_block(seed, tag("DZKP_THETA"), place.lane, k, place.chunk) for k in range(-(-count // 2))]
    return [int.from_bytes(blocks[j // 2][8 * (j % 2) :][:8], "little") for j in range(count)]


def drawn_by_keys(shape, kappa, place, i):
    """What the keys give: shares and the mask of the left half under kappa_(i-1), the other mask under kappa_i, and seed and
    challenges under kappa_(i+1), which party i does not have."""
    under = {"SHARE": kappa[i - 1], "QMASK": kappa[i - 1], "PMASK": kappa[i], "CHAL": kappa[(i + 1) % 3]}

    def randomness(what, level, element):
        if what == "KEYS":
            return keys_of(seed_of(kappa, place, i), place, element)
        block = prf_block(under[what], tag(f"DZKP_{what}", i), place.lane, level << 16 | element, place.chunk)
        first = shape.factor(level)
        return first + int.from_bytes(block, "little") % (2**64 - first) if what == "CHAL" else low(block)

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
    words = lambda count: len(items) * -(-count // 64)
    shape = Shape(words(rows), words(place.chunk_rows))
    proofs = []
    for i in PARTIES:
        proof = prove(shape, *statement(i, gates), drawn_by_keys(shape, kappa, place, i))
        right = not any(party == i for party, *_ in wrong)
        require(proof.accepted == right, "a wrong bit is found, a right one is not")
        proofs.append(
            {
                "seed": seed_of(kappa, place, i).hex(),
                "shares": [elements(share) for share in proof.sent],
                "challenges": [elements([r]) for r in proof.challenges],
                "right": elements(proof.right),
                "left": elements(proof.left),
                "accepted": proof.accepted,
            }
        )
    return {
        "name": name,
        **place.fields(),
        "levels": shape.last,
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
    # The longest chunk has three words a piece and five levels, this one has one word and would have four.
    place = Place(BITS, 2, 9, 0, 700, 130)
    cases.append(case("fewer-words", place, kappa, operands("fewer", 130, 3), several))
    # Fifteen words a piece, so that half a block of keys is left, and vectors of exactly eight values at level 5 of six.
    place = Place(BITS, 1, 4, 0, 5000, 4800)
    cases.append(case("odd-words", place, kappa, operands("odd", 4800, 3), several))
    # Whole bytes: messages are computed along in rows that do not exist, which is not the model's business.
    place = Place(BITS, 1, 3, 0, 24, 16)
    chained = [(0, 1), (1, 1), (2, 3), (2, 0)]
    cases.append(case("two-layers", place, kappa, operands("chain", 16, 2), chained))
    for party in PARTIES:
        cases.append(case(f"wrong-{party}", place, kappa, operands("chain", 16, 2), chained, [(party, 2, 7)]))
    return {"keys": [k.hex() for k in kappa], "families": {k: v for k, v in FAMILIES.items() if "DZKP" in k}, "cases": cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed vectors")
    parser.add_argument("--escapes", action="store_true", help="forge proofs over small fields, and enumerate views")
    arguments = parser.parse_args()
    if arguments.escapes:
        import dzkp_escapes

        dzkp_escapes.main()
        return
    folder = pathlib.Path(__file__).resolve().parent.parent
    write_or_check(folder, {"dzkp.json": vectors()}, arguments.check, "vectors/model/dzkp.py")


if __name__ == "__main__":
    main()
