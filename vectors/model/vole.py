#!/usr/bin/env python3
"""Golden model of vectors of products with the sender's offset: entries of 128 correlations, and rounds over blocks, by trees as those of silent transfers.

    python3 vectors/model/vole.py            write the vectors
    python3 vectors/model/vole.py --check    compare them with what is committed; exit 1 if they differ
    python3 vectors/model/vole.py --escapes  cheat in d of trees, and compare how many lies pass with how many should; and break codes whose coefficients are bits
    python3 vectors/model/vole.py --margin   what two attacks cost against the parameters

An entry is B of the sender and A, C of the receiver with A = B xor C Delta; products are those of POLYVAL, a b x^-128.

From: Weng, Yang, Katz, Wang, Wolverine: Fast, Scalable, and Communication-Efficient Zero-Knowledge Proofs for Boolean and Arithmetic Circuits, S&P 2021 (rounds over a
field); and what silent.py names. The coefficients of rows are blocks here, see `descent`. Parameters of the vectors are toys: they hide nothing.
"""

import argparse
import hashlib
import math
import pathlib
import random
from dataclasses import dataclass

from common import BITS, draw, prf_block, prf_stream, require, write_or_check
from ot import SESSION, dot
from silent import HIDING, ONE, WEIGHT, At, Hash, Lpn, blocks, fold, grow, lacking, le, numbers, pack, puncture, total

ROOT, TREE, LEAF, ROWS = 0x2009, 0x200A, 0x200B, 0x200C
# Uses of digests: the challenge, and what the sender answers.
CHALLENGE, ANSWER = 32, 33


@dataclass(frozen=True)
class Blocks(Lpn):
    """A set over blocks: a round takes entries, and correlations of levels, which are an array of their own."""

    tags = (ROOT, TREE)

    @property
    def base(self):
        return (1 << self.log_secret) + self.trees + 1

    @property
    def kept(self):
        """Outputs that are the base of the next round: those of whole trees."""
        return -(-self.base // self.leaves) * self.leaves

    def level(self, tree, level):
        return tree * self.height + level

    @property
    def levels(self):
        return self.trees * self.height

    def noise(self, base):
        return base[1 << self.log_secret :][: self.trees]

    def hides(self, base):
        return base[(1 << self.log_secret) + self.trees]


def packed(correlations, count):
    """Entries of the first correlations: their sums, and their choices as numbers."""
    groups = [correlations[HIDING * k : HIDING * (k + 1)] for k in range(count)]
    return [pack(group) for group in groups], [sum((x & 1) << i for i, x in enumerate(group)) for group in groups]


def second(lpn, common, at, leaves):
    """The hashes of leaves, of each tree."""
    hashed = []
    for tree in range(lpn.trees):
        h = Hash(prf_block(common, LEAF, at.lane, at.tree(lpn, tree), at.chunk))
        hashed.append([h(x) for x in leaves[tree * lpn.leaves : (tree + 1) * lpn.leaves]])
    return hashed


def give(lpn, common, at, base, leaves):
    """The sender's v, and d."""
    hashed = second(lpn, common, at, leaves)
    return sum(hashed, []), [b ^ total(of) for b, of in zip(lpn.noise(base), hashed)]


def fill(lpn, common, at, levels, bases, leaves, sealed):
    """The receiver's w, and the noise."""
    w, noise, choices = [], [], [x & 1 for x in levels]
    for tree, of in enumerate(second(lpn, common, at, leaves)):
        alpha = lacking(lpn, choices, tree)
        # What it has there is the hash of another leaf than the sender's.
        of[alpha] = sealed[tree] ^ lpn.noise(bases[0])[tree] ^ total(x for i, x in enumerate(of) if i != alpha)
        w += of
        noise += [lpn.noise(bases[1])[tree] if i == alpha else 0 for i in range(lpn.leaves)]
    return w, noise


def rows(lpn, common, at, base, leaves):
    """Leaves become outputs."""
    first = at.first + at.number * lpn.outputs * WEIGHT
    terms = numbers(prf_stream(common, ROWS, at.lane, first, at.chunk, 16 * WEIGHT * lpn.outputs))
    places = (1 << lpn.log_secret) - 1
    products = [dot(term & ~places, base[term & places]) for term in terms]
    return [x ^ total(products[WEIGHT * i : WEIGHT * (i + 1)]) for i, x in enumerate(leaves)]


def are_entries(offset, a, b, c):
    return all(x == y ^ dot(z, offset) for x, y, z in zip(a, b, c, strict=True))


def answers(lpn, by, offset, base, v, told):
    return fold(by, v) ^ lpn.hides(base) ^ dot(told, offset)


def round_fields(lpn, common, own, at, offset, levels, bases):
    """A round of both, checked; its outputs. `levels` are of sender and receiver; `bases` B, A and C."""
    b, a, c = bases
    require(are_entries(offset, a, b, c), "a base is wrong")
    leaves, sums = grow(lpn, common, own, at, offset, levels[0])
    v, sealed = give(lpn, common, at, b, leaves)
    punctured = puncture(lpn, common, at, levels[1], sums)
    w, noise = fill(lpn, common, at, levels[1], (a, c), punctured, sealed)
    require(are_entries(offset, w, v, noise), "leaves are wrong")
    require(sum(x != 0 for x in noise) == lpn.trees, "another noise")
    challenge = at.digest(CHALLENGE, lpn, blocks(sums + sealed))[:16]
    by = int.from_bytes(challenge, "little")
    told, kept = fold(by, noise) ^ lpn.hides(c), fold(by, w) ^ lpn.hides(a)
    require(kept == answers(lpn, by, offset, b, v, told), "the check fails")
    outputs = [rows(lpn, common, at, base, x) for base, x in ((b, v), (a, w), (c, noise))]
    require(are_entries(offset, outputs[1], outputs[0], outputs[2]), "an output is wrong")
    fields = {
        "message": blocks(sums + sealed).hex(),
        "challenge": challenge.hex(),
        "told": le(told).hex(),
        "kept": le(kept).hex(),
        "answer": at.digest(ANSWER, lpn, le(kept)).hex(),
    }
    joined = {"sender_leaves": leaves, "receiver_leaves": punctured, "v": v, "w": w, "noise": noise}
    joined |= dict(zip("bac", outputs))
    if at.number == 0:
        return fields | {name: blocks(of).hex() for name, of in joined.items()}, outputs
    return fields | {f"{name}_sha256": hashlib.sha256(blocks(of)).hexdigest() for name, of in joined.items()}, outputs


def case(silent, lpn, entries, rounds, lane, chunk, rows_):
    """Entries of correlations, and some rounds, each of which makes the base of the next one."""
    name = f"vole/{lpn.trees}/{lpn.height}"
    offset = int.from_bytes(draw(f"{name}/offset", 16), "little") | 1
    common, own = draw(f"{name}/common", 16), draw(f"{name}/own", 16)
    keys = [x & ~1 for x in numbers(draw(f"{name}/keys", 16 * silent.outputs))]
    bits = BITS.decode(draw(f"{name}/choices", -(-silent.outputs // 8)), silent.outputs)
    macs = [x ^ bit * offset for x, bit in zip(keys, bits)]
    b, _ = packed(keys, lpn.base)
    a, c = packed(macs, lpn.base)
    # Levels are the last columns of correlations, whole ones for each round.
    columns = -(-lpn.levels // silent.leaves)
    first = (silent.trees - rounds * columns) * silent.leaves
    require(first >= HIDING * lpn.base, "levels are among what was packed")
    fields = {
        "silent": [silent.trees, silent.log_secret, silent.height],
        "blocks": [lpn.trees, lpn.log_secret, lpn.height],
        "entries": entries,
        "lane": lane,
        "chunk": chunk,
        "rows": rows_,
        "offset": le(offset).hex(),
        "common": common.hex(),
        "own": own.hex(),
        "keys": blocks(keys).hex(),
        "macs": blocks(macs).hex(),
        "base_b": blocks(b).hex(),
        "base_a": blocks(a).hex(),
        "base_c": blocks(c).hex(),
        "rounds": [],
    }
    bases, made = [b, a, c], 0
    for number in range(rounds):
        at = At(lane, chunk, rows_, number)
        taken = slice(first + number * columns * silent.leaves, first + (number + 1) * columns * silent.leaves)
        round_, outputs = round_fields(lpn, common, own, at, offset, (keys[taken], macs[taken]), bases)
        fields["rounds"].append(round_)
        last = number == rounds - 1
        made += lpn.outputs - (0 if last else lpn.kept)
        bases = [x[-lpn.kept :][: lpn.base] for x in outputs]
    require(made >= entries, "too few entries")
    return fields


CASES = [(Lpn(24, 3, 6), Blocks(6, 2, 3), 80, 2, 1, 0x01020304, 129)]


# ---------------------------------------------------------------------------------------------- cheating


def bet(lpn, rng, trees):
    """A sender that changes d of some trees, and guesses the receiver's leaf of each, where it changes v as well. Whether it passes, and whether it had guessed."""
    common, own = rng.randbytes(16), rng.randbytes(16)
    at, offset = At(0, 1, 8, 0), rng.getrandbits(128) | 1
    keys = [rng.getrandbits(128) & ~1 for _ in range(lpn.levels)]
    macs = [x ^ rng.getrandbits(1) * offset for x in keys]
    b, c = ([rng.getrandbits(128) for _ in range(lpn.base)] for _ in range(2))
    a = [x ^ dot(y, offset) for x, y in zip(b, c)]
    leaves, sums = grow(lpn, common, own, at, offset, keys)
    v, sealed = give(lpn, common, at, b, leaves)
    choices, guessed = [x & 1 for x in macs], True
    for tree in trees:
        guess, change = rng.randrange(lpn.leaves), rng.getrandbits(128) | 1
        guessed &= guess == lacking(lpn, choices, tree)
        sealed[tree] ^= change
        v[tree * lpn.leaves + guess] ^= change
    punctured = puncture(lpn, common, at, macs, sums)
    w, noise = fill(lpn, common, at, macs, (a, c), punctured, sealed)
    by = int.from_bytes(at.digest(CHALLENGE, lpn, blocks(sums + sealed))[:16], "little")
    told, kept = fold(by, noise) ^ lpn.hides(c), fold(by, w) ^ lpn.hides(a)
    passes = kept == answers(lpn, by, offset, b, v, told)
    return passes, guessed


def check_escapes():
    lpn, rng = Blocks(3, 1, 3), random.Random(14)
    for trees in ([0], [1], [0, 2]):
        trials, passed = 600, 0
        for _ in range(trials):
            passes, guessed = bet(lpn, rng, trees)
            require(passes == guessed, "a lie passes although the guess was wrong, or the other way")
            passed += passes
        rate, want = passed / trials, 2.0 ** -(lpn.height * len(trees))
        spread = (want * (1 - want) / trials) ** 0.5
        require(abs(rate - want) < 5 * spread, f"{trees}: {rate}, not {want}")
        print(f"{len(trees)} leaves guessed: {rate:.4f} pass, {want:.4f} should")


# ------------------------------------------------------------------------------ why coefficients are blocks


def reduced(row, value, basis):
    """A row without the columns that a basis has, and what its sample becomes."""
    while row:
        top = row.bit_length() - 1
        if top not in basis:
            return row, value
        row, value = row ^ basis[top][0], value ^ basis[top][1]
    return row, value


def descent(width, log_secret, trees, height, rng):
    """Samples of a code whose coefficients are bits, over elements of `width` bits. As many of them as the secret has blocks say what it is if none has noise. If those
    with noise are fewer than `width`, then some sum of bits of an element is 0 in all of their noises, and the samples that are left, whose noise is sparse, say
    which one: it vanishes on almost all of them. Whether that sum is found; and the rank of the noises of the samples that were taken first."""
    k, n = 1 << log_secret, trees << height
    secret = [rng.getrandbits(width) for _ in range(k)]
    noise = {tree << height | rng.getrandbits(height): rng.getrandbits(width) for tree in range(trees)}
    samples = []
    for i in range(n):
        places = [rng.randrange(k) for _ in range(WEIGHT)]
        row = total(1 << p for p in places)
        samples.append((i, row, total(secret[p] for p in places) ^ noise.get(i, 0)))
    rng.shuffle(samples)
    basis, used, left = {}, [], []
    for i, row, value in samples:
        row, value = reduced(row, value, basis)
        if row:
            basis[row.bit_length() - 1] = (row, value)
            used.append(i)
        else:
            left.append(value)
    require(len(used) == k or len(basis) < k, "another rank")
    noises = rank(noise[i] for i in used if i in noise)
    # Sums of bits that vanish on some samples: there are some if these are no basis of all elements.
    return any(rank(rng.sample(left, width + 16)) < width for _ in range(60)), noises


def rank(values):
    """Of elements, as vectors of bits."""
    basis = {}
    for value in values:
        rest, _ = reduced(value, 0, basis)
        if rest:
            basis[rest.bit_length() - 1] = (rest, 0)
    return len(basis)


def check_descent():
    rng = random.Random(3)
    for width in (4, 32):
        found, ranks = zip(*(descent(width, 6, 60, 3, rng) for _ in range(20)))
        require(found == tuple(x < width for x in ranks), "other codes are broken than should be")
        print(f"elements of {width} bits, noises of rank {min(ranks)} to {max(ranks)} among samples: {sum(found)} of 20 codes over bits are broken at the first try")


# ---------------------------------------------------------------------------------------------- margin


def gauss(lpn):
    """log2 of operations to guess as many samples without noise as the secret has blocks, evenly over trees, with linear algebra of k^2.8 for each guess."""
    each = (1 << lpn.log_secret) / lpn.trees
    return -lpn.trees * math.log2(1 - each / lpn.leaves), 2.8 * lpn.log_secret


def binomial(n, k):
    """log2 of it."""
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) / math.log(2)


def degree(forms, trees, others, guessed, most):
    """The first degree in which (1 - z)^(forms - t) (1 + (N - 1) z)^(t - f) (1 + (N - 1 - mu) z)^f is not positive: there polynomials of this degree have one solution left
    (Briaud, Oygarden, A New Algebraic Approach to the Regular Syndrome Decoding Problem and Implications for PCG Constructions, EUROCRYPT 2023), over a large field."""
    factors = [(-1, forms - trees), (others, trees - guessed[0]), (others - guessed[1], guessed[0])]
    series = [1] + [0] * most
    for root, times in factors:
        term, powers = 1, []
        for d in range(most + 1):
            powers.append(term)
            term = term * root * (times - d) // (d + 1)
        series = [sum(series[i] * powers[d - i] for i in range(d + 1)) for d in range(most + 1)]
    return next((d for d, x in enumerate(series) if x <= 0), None)


def solved(unknowns, d):
    """log2 of operations to find the solution of polynomials of degree d: linear algebra of exponent 2.8, or Wiedemann's for rows as long as a quadratic polynomial."""
    monomials = binomial(unknowns + d, d)
    return min(2.8 * monomials, 2 * monomials + math.log2(3) + binomial(unknowns + 2, 2))


def algebraic(lpn):
    """log2 of operations, on a coarse grid: mu leaves of each of f trees are guessed to be without noise, and the rest is a system of polynomials."""
    k, n, best = 1 << lpn.log_secret, lpn.outputs, (math.inf,)
    for f in range(0, lpn.trees + 1, lpn.trees // 32):
        for mu in range(0, lpn.leaves, lpn.leaves // 64):
            left = k - f * mu
            if left <= 0 or (f == 0) != (mu == 0):
                continue
            guess = -f * math.log2(1 - mu / lpn.leaves)
            d = degree(n - k, lpn.trees, lpn.leaves - 1, (f, mu), 24) if guess < best[0] else None
            if d is not None:
                best = min(best, (guess + solved(left, d), d, f, mu))
    return best


def margin():
    lpn = Blocks(2560, 16, 9)
    guess, algebra = gauss(lpn)
    print(f"V: Gauss, 2^{guess:.1f} guesses, 2^{guess + algebra:.1f} operations")
    cost, d, f, mu = algebraic(lpn)
    print(f"V: algebraic, 2^{cost:.1f} operations, degree {d}, {mu} leaves of {f} trees guessed")


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of vectors of products.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--escapes", action="store_true", help="cheat, and count; break codes over bits")
    parser.add_argument("--margin", action="store_true", help="what two attacks cost")
    args = parser.parse_args()
    if args.escapes:
        check_escapes()
        check_descent()
        return
    if args.margin:
        margin()
        return
    require(dot(3, ONE) == 3, "another field")
    folder = pathlib.Path(__file__).resolve().parent.parent
    cases = [case(*of) for of in CASES]
    write_or_check(folder, {"vole.json": {"session": SESSION.hex(), "cases": cases}}, args.check, "vectors/model/vole.py")


if __name__ == "__main__":
    main()
