#!/usr/bin/env python3
"""Golden model of silent transfers: trees whose levels add up to the offset, a sparse public code, the check of a round, and transfers of choices.

    python3 vectors/model/silent.py            write the vectors
    python3 vectors/model/silent.py --check    compare them with what is committed; exit 1 if they differ
    python3 vectors/model/silent.py --escapes  cheat in sums of levels, and compare how many lies pass with how many should

From: Yang, Weng, Lan, Zhang, Wang, Ferret: Fast Extension for Correlated OT with Small Communication, CCS 2020 (rounds, the check); Guo, Yang, Wang, Zhang,
Xie, Liu, Zhao, Half-Tree: Halving the Cost of Tree Expansion in COT and DPF, EUROCRYPT 2023 (trees); Gueron, Langley, Lindell, RFC 8452 (2019) (POLYVAL).
Parameters are toys: they hide nothing.
"""

import argparse
import hashlib
import pathlib
import random
from dataclasses import dataclass

from aes128 import Aes128
from common import BITS, draw, pieces, prf_block, prf_stream, require, write_or_check
from ot import SESSION, dot, polyval

ROOT, TREE, ROWS = 0x2005, 0x2006, 0x2007
# Uses of digests: the challenge, and what the sender answers.
CHALLENGE, ANSWER = 30, 31
WEIGHT, HIDING = 10, 128
FIELD = 1 << 127 | 1 << 126 | 1 << 121 | 1
# The factor that changes nothing: x^128.
ONE = FIELD


def le(x):
    return x.to_bytes(16, "little")


def blocks(numbers):
    return b"".join(le(x) for x in numbers)


def numbers(data):
    return [int.from_bytes(data[at : at + 16], "little") for at in range(0, len(data), 16)]


def total(values):
    total = 0
    for value in values:
        total ^= value
    return total


@dataclass(frozen=True)
class Lpn:
    trees: int
    log_secret: int
    height: int

    # Tags of roots, and of start points.
    tags = (ROOT, TREE)

    @property
    def leaves(self):
        return 1 << self.height

    @property
    def outputs(self):
        return self.trees * self.leaves

    @property
    def base(self):
        return (1 << self.log_secret) + self.trees * self.height + HIDING

    @property
    def base_columns(self):
        return -(-self.base // self.leaves)

    def level(self, tree, level):
        """Where the correlation of a level is in the base."""
        return (1 << self.log_secret) + tree * self.height + level


@dataclass(frozen=True)
class At:
    """Where a round stands: its chunk, and its number there."""

    lane: int
    chunk: int
    rows: int
    number: int
    # Of the chunk's first round.
    first: int = 0

    def tree(self, lpn, tree):
        return self.first + self.number * lpn.trees + tree

    def words(self, lpn):
        return self.first + self.number * lpn.outputs * WEIGHT // 4

    def digest(self, label, lpn, source):
        """Op::Hash: of a call that says from where on trees are counted, and of one source."""
        head = SESSION + label.to_bytes(2, "little") + bytes(2) + self.lane.to_bytes(2, "little")
        head += self.chunk.to_bytes(4, "little") + self.rows.to_bytes(4, "little")
        head += lpn.tags[1].to_bytes(2, "little") + self.tree(lpn, 0).to_bytes(8, "little")
        return hashlib.sha256(head + pieces(source)).digest()


class Hash:
    """H(x) = AES_S(sigma(x)) xor sigma(x), with sigma(hi || lo) = (hi xor lo) || hi."""

    def __init__(self, start):
        self.cipher = Aes128(start)

    def __call__(self, x):
        hi, lo = x >> 64, x & (1 << 64) - 1
        x = (hi ^ lo) << 64 | hi
        return int.from_bytes(self.cipher.encrypt(le(x)), "little") ^ x


def hash_of(common, at, lpn, tree):
    return Hash(prf_block(common, lpn.tags[1], at.lane, at.tree(lpn, tree), at.chunk))


def levels_of(h, height, root, offset):
    """All levels of a tree: node number i has its left child in the same place, and its right one behind all left ones."""
    levels = [[root, root ^ offset]]
    while len(levels) < height:
        left = [h(x) for x in levels[-1]]
        levels.append(left + [x ^ y for x, y in zip(levels[-1], left)])
    return levels


def grow(lpn, common, own, at, offset, base):
    """The sender's leaves, and the sums that it sends."""
    leaves, sums = [], []
    for tree in range(lpn.trees):
        root = int.from_bytes(prf_block(own, lpn.tags[0], at.lane, at.tree(lpn, tree), at.chunk), "little")
        levels = levels_of(hash_of(common, at, lpn, tree), lpn.height, root, offset)
        for level, nodes in enumerate(levels):
            require(total(nodes) == offset, "a level does not add up to the offset")
            sums.append(base[lpn.level(tree, level)] ^ total(nodes[: len(nodes) // 2]))
        leaves += [x & ~1 for x in levels[-1]]
    return leaves, sums


def lacking(lpn, choices, tree):
    """The number of the leaf that the receiver lacks."""
    return sum((1 - choices[lpn.level(tree, level)]) << level for level in range(lpn.height))


def puncture(lpn, common, at, base, sums):
    """The receiver's leaves."""
    choices, leaves = [x & 1 for x in base], []
    for tree in range(lpn.trees):
        h, alpha, nodes = hash_of(common, at, lpn, tree), lacking(lpn, choices, tree), [None]
        for level in range(lpn.height):
            if level:
                left = [x if x is None else h(x) for x in nodes]
                nodes = left + [x if x is None else x ^ y for x, y in zip(nodes, left)]
            else:
                nodes = [None, None]
            half, side = len(nodes) // 2, choices[lpn.level(tree, level)]
            off = (alpha & half - 1) + side * half
            require(nodes[off] is None, "a node is known twice")
            of_side = [x for x in nodes[side * half : (side + 1) * half] if x is not None]
            nodes[off] = total(of_side) ^ sums[tree * lpn.height + level] ^ base[lpn.level(tree, level)]
        require([i for i, x in enumerate(nodes) if x is None] == [alpha], "another leaf lacks")
        known = [x if x is None else x & ~1 for x in nodes]
        known[alpha] = total(x for x in known if x is not None) | 1
        leaves += known
    return leaves


def fold(challenge, values):
    return int.from_bytes(polyval(challenge, blocks(values)), "little")


def pack(values):
    return total(dot(x, 1 << i) for i, x in enumerate(values))


def hiding(lpn, base):
    return base[lpn.level(lpn.trees, 0) :][:HIDING]


def weight(lpn, challenge, choices):
    """phi: the powers of the challenge of the leaves that the receiver lacks."""
    powers, power = [], ONE
    for _ in range(lpn.outputs):
        power = dot(power, challenge)
        powers.append(power)
    lacks = [tree * lpn.leaves + lacking(lpn, choices, tree) for tree in range(lpn.trees)]
    return total(powers[lpn.outputs - 1 - i] for i in lacks)


def ask(lpn, challenge, base, leaves):
    """What the receiver tells, and what it has."""
    choices = [x & 1 for x in base]
    bits = sum(x << i for i, x in enumerate(hiding(lpn, choices)))
    return weight(lpn, challenge, choices) ^ bits, fold(challenge, leaves) ^ pack(hiding(lpn, base))


def answer(lpn, challenge, offset, base, leaves, told):
    return fold(challenge, leaves) ^ pack(hiding(lpn, base)) ^ dot(told, offset)


def rows(lpn, common, at, base, leaves):
    """Leaves become outputs."""
    words = prf_stream(common, ROWS, at.lane, at.words(lpn), at.chunk, 4 * WEIGHT * lpn.outputs)
    places = [int.from_bytes(words[k : k + 4], "little") & (1 << lpn.log_secret) - 1 for k in range(0, len(words), 4)]
    return [x ^ total(base[p] for p in places[WEIGHT * i : WEIGHT * (i + 1)]) for i, x in enumerate(leaves)]


def first_base(lpn, name, offset):
    """Both ends of as many correlations as the columns of a base have, as if transfers had made them."""
    count = lpn.base_columns * lpn.leaves
    keys = [x & ~1 for x in numbers(draw(f"{name}/base", 16 * count))]
    bits = BITS.decode(draw(f"{name}/choices", -(-count // 8)), count)
    return keys, [x ^ bit * offset for x, bit in zip(keys, bits)]


def round_fields(lpn, common, own, at, offset, bases):
    """A round of both, checked; its outputs."""
    mine, theirs = bases
    require(all(m == k ^ (m & 1) * offset and k & 1 == 0 for k, m in zip(mine, theirs)), "a base is wrong")
    leaves, sums = grow(lpn, common, own, at, offset, mine)
    punctured = puncture(lpn, common, at, theirs, sums)
    challenge = at.digest(CHALLENGE, lpn, blocks(sums))[:16]
    by = int.from_bytes(challenge, "little")
    told, kept = ask(lpn, by, theirs, punctured)
    require(kept == answer(lpn, by, offset, mine, leaves, told), "the check fails")
    outputs = [rows(lpn, common, at, base, x) for base, x in ((mine, leaves), (theirs, punctured))]
    require(all(m == k ^ (m & 1) * offset and k & 1 == 0 for k, m in zip(*outputs)), "an output is wrong")
    fields = {
        "sums": blocks(sums).hex(),
        "challenge": challenge.hex(),
        "told": le(told).hex(),
        "answer": at.digest(ANSWER, lpn, le(kept)).hex(),
        "kept": le(kept).hex(),
    }
    joined = {
        "sender_leaves": leaves,
        "receiver_leaves": punctured,
        "sender_outputs": outputs[0],
        "receiver_outputs": outputs[1],
    }
    if at.number == 0:
        return fields | {name: blocks(of).hex() for name, of in joined.items()}, outputs
    return fields | {f"{name}_sha256": hashlib.sha256(blocks(of)).hexdigest() for name, of in joined.items()}, outputs


def case(lpn, rounds, lane, chunk, items, rows_, first_output):
    """Some rounds, each of which makes the base of the next one, and transfers of choices by outputs of the last."""
    name = f"silent/{lpn.trees}/{lpn.height}"
    offset = int.from_bytes(draw(f"{name}/offset", 16), "little") | 1
    common, own = draw(f"{name}/common", 16), draw(f"{name}/own", 16)
    bases = first_base(lpn, name, offset)
    fields = {
        "trees": lpn.trees,
        "log_secret": lpn.log_secret,
        "height": lpn.height,
        "lane": lane,
        "chunk": chunk,
        "rows": rows_,
        "offset": le(offset).hex(),
        "common": common.hex(),
        "own": own.hex(),
        "sender_base": blocks(bases[0]).hex(),
        "receiver_base": blocks(bases[1]).hex(),
        "rounds": [],
    }
    for number in range(rounds):
        made, outputs = round_fields(lpn, common, own, At(lane, chunk, rows_, number), offset, bases)
        fields["rounds"].append(made)
        bases = [x[-lpn.base_columns * lpn.leaves :] for x in outputs]
    choices = [BITS.values(f"{name}/chosen/{p}", rows_) for p in range(items)]
    told, labels = [], [[], []]
    for p, bits in enumerate(choices):
        start = first_output + p * rows_
        k, m = [x[start : start + rows_] for x in outputs]
        told.append([x ^ label & 1 for x, label in zip(bits, m)])
        labels[0].append([x ^ d * offset for x, d in zip(k, told[-1])])
        labels[1].append(m)
        require(all(q == t ^ x * offset for q, t, x in zip(labels[0][-1], m, bits)), "a transfer is wrong")
    return fields | {
        "items": items,
        "first_output": first_output,
        "choices": "".join(BITS.hex(item) for item in choices),
        "turned": "".join(BITS.hex(item) for item in told),
        "sender_labels": "".join(blocks(item).hex() for item in labels[0]),
        "receiver_labels": "".join(blocks(item).hex() for item in labels[1]),
    }


# The smallest that the specification names, whose base is longer than what it makes; and one that goes on.
TOY, LASTING = Lpn(8, 5, 4), Lpn(32, 5, 5)


# ---------------------------------------------------------------------------------------------- cheating


def bet(lpn, rng, lies):
    """A sender that gives a node of level `level` - 1 of a tree other children than the hash says, which still add up to it. Receivers whose leaf is below that node
    know nothing else of it, so that their trees are those of the sender; all others find another sum. Of each lie (tree, level) the sender guesses so many bits of
    the number of the receiver's leaf. Whether it passes, and whether it had guessed."""
    common, own = rng.randbytes(16), rng.randbytes(16)
    at, offset = At(0, 1, 8, 0), rng.getrandbits(128) | 1
    keys = [rng.getrandbits(128) & ~1 for _ in range(lpn.base)]
    theirs = [x ^ rng.getrandbits(1) * offset for x in keys]
    leaves, sums = grow(lpn, common, own, at, offset, keys)
    choices, guessed = [x & 1 for x in theirs], True
    for tree, level in lies:
        guess, change = rng.getrandbits(level), rng.getrandbits(128) | 2
        guessed &= guess == lacking(lpn, choices, tree) & (1 << level) - 1
        root = int.from_bytes(prf_block(own, lpn.tags[0], at.lane, at.tree(lpn, tree), at.chunk), "little")
        h = hash_of(common, at, lpn, tree)
        nodes = levels_of(h, level + 1, root, offset)[-1]
        nodes[guess] ^= change
        nodes[guess + (1 << level)] ^= change
        for deeper in range(level, lpn.height):
            if deeper > level:
                left = [h(x) for x in nodes]
                nodes = left + [x ^ y for x, y in zip(nodes, left)]
            sums[tree * lpn.height + deeper] = keys[lpn.level(tree, deeper)] ^ total(nodes[: len(nodes) // 2])
        leaves[tree * lpn.leaves : (tree + 1) * lpn.leaves] = [x & ~1 for x in nodes]
    punctured = puncture(lpn, common, at, theirs, sums)
    by = int.from_bytes(at.digest(CHALLENGE, lpn, blocks(sums))[:16], "little")
    told, kept = ask(lpn, by, theirs, punctured)
    return kept == answer(lpn, by, offset, keys, leaves, told), guessed


def check_escapes():
    lpn, rng = Lpn(3, 1, 4), random.Random(14)
    for lies in ([(0, 1)], [(1, 2)], [(2, 3)], [(0, 1), (1, 1)], [(0, 1), (1, 1), (2, 1)], [(0, 3), (2, 2)], [(0, 3), (1, 3), (2, 2)]):
        guesses, trials, passed = sum(level for _, level in lies), 400, 0
        for _ in range(trials):
            passes, guessed = bet(lpn, rng, lies)
            require(passes == guessed, "a lie passes although the guess was wrong, or the other way")
            passed += passes
        rate, want = passed / trials, 2.0**-guesses
        spread = (want * (1 - want) / trials) ** 0.5
        require(abs(rate - want) < 5 * spread, f"{lies}: {rate}, not {want}")
        print(f"{guesses} bits guessed in {len(lies)} trees: {rate:.4f} pass, {want:.4f} should")


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of silent transfers.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--escapes", action="store_true", help="cheat, and count")
    args = parser.parse_args()
    if args.escapes:
        check_escapes()
        return
    folder = pathlib.Path(__file__).resolve().parent.parent
    cases = [case(TOY, 1, 0, 3, 2, 21, 5), case(LASTING, 2, 2, 0x01020304, 2, 129, 300)]
    write_or_check(folder, {"silent.json": {"session": SESSION.hex(), "cases": cases}}, args.check, "vectors/model/silent.py")


if __name__ == "__main__":
    main()
