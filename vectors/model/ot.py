#!/usr/bin/env python3
"""Golden model of oblivious transfer: base transfers, trees of keys, their stretching to many transfers, and the check of it.

    python3 vectors/model/ot.py            write the vectors
    python3 vectors/model/ot.py --check    compare them with what is committed; exit 1 if they differ

From: Masny, Rindal, Endemic Oblivious Transfer, CCS 2019 (base transfers); Goldreich, Goldwasser, Micali, How to Construct Random
Functions, 1986 (trees); Roy, SoftSpokenOT: Communication-Computation Tradeoffs in OT Extension, CRYPTO 2022 (check of the trees,
transfers over small fields and their check); Gueron, Langley, Lindell, AES-GCM-SIV, RFC 8452 (2019), section 3 (POLYVAL).
"""

import argparse
import hashlib
import pathlib

import ristretto
from common import draw, prf_block, prf_stream, require, write_or_check
from keys import PARTY, peer

SESSION = bytes([0x5E]) * 32
SENDER, RECEIVER = peer(PARTY, 0), peer(PARTY, 1)
NODE, PUNCTURE, LEAF = 0x2000, 0x2001, 0x2002
# What a hash is for.
POINT, KEY, BASE_SENDER, BASE_RECEIVER, LEAVES, TREES = range(1, 7)


def xor(*strings):
    total = bytes(len(strings[0]))
    for string in strings:
        total = bytes(a ^ b for a, b in zip(total, string, strict=True))
    return total


# ------------------------------------------------------------------------------------------------ set-up


def prefix(what):
    return b"veilworks oblivious transfer 1" + bytes([what]) + SESSION + SENDER + RECEIVER


def sealed(what, message):
    return message + hashlib.sha256(prefix(what) + message).digest()


def scalar(data):
    return int.from_bytes(data, "little") % ristretto.ORDER


def hash_to_point(i, j, point):
    place = i.to_bytes(2, "little") + bytes([j])
    return ristretto.from_uniform(hashlib.sha512(prefix(POINT) + place + point).digest())


def base_key(i, j, a, r, agreed):
    place = i.to_bytes(2, "little") + bytes([j])
    return hashlib.sha256(prefix(KEY) + place + a + r[0] + r[1] + agreed.encode()).digest()[:16]


class BaseReceiver:
    """The receiver of base transfers: the sender of those that are wanted in the end."""

    def __init__(self, choices, random):
        self.choices, self.b, self.r = choices, [], []
        for i, c in enumerate(choices):
            other = ristretto.from_uniform(random[128 * i : 128 * i + 64]).encode()
            self.b.append(scalar(random[128 * i + 64 : 128 * i + 128]))
            chosen = (self.b[i] * ristretto.BASE - hash_to_point(i, 1 - c, other)).encode()
            self.r.append([other, chosen] if c else [chosen, other])
        self.message = sealed(BASE_RECEIVER, b"".join(point for r in self.r for point in r))

    def keys(self, point):
        a = ristretto.decode(point)
        places = enumerate(self.choices)
        return [base_key(i, c, point, self.r[i], self.b[i] * a) for i, c in places]


def base_sender(random, receiver):
    """A's message, and both keys of each transfer."""
    secret = scalar(random)
    point = (secret * ristretto.BASE).encode()
    keys = []
    for i, r in enumerate(receiver.r):
        points = [ristretto.decode(r[j]) + hash_to_point(i, 1 - j, r[1 - j]) for j in (0, 1)]
        keys.append([base_key(i, j, point, r, secret * points[j]) for j in (0, 1)])
    return sealed(BASE_SENDER, point), keys


def path_bits(k, offset):
    """Of each base transfer the bit of the offset: those of a tree from its most significant one on."""
    return [offset >> (k * tree + k - 1 - level) & 1 for tree in range(128 // k) for level in range(k)]


def grow(k, roots, keys):
    """All leaves, and the message with the sums of levels and what checks them."""
    leaves, message, checks, values = [], b"", b"", b""
    for tree, root in enumerate(roots):
        nodes = [root]
        for level in range(k):
            nodes = [prf_block(s, NODE, tree, side, level) for s in nodes for side in (0, 1)]
            for side in (0, 1):
                message += xor(keys[k * tree + level][side], *nodes[side::2])
        leaves.append(nodes)
        of_tree = [prf_stream(s, PUNCTURE, 0, 0, 0, 32) for s in nodes]
        checks, values = checks + xor(*of_tree), values + b"".join(of_tree)
    digest = hashlib.sha256(prefix(LEAVES) + bytes([k]) + values).digest()
    return leaves, sealed(TREES, message + checks + digest)


def descend(k, offset, keys, message):
    """What the sender makes of the message, by the paths themselves: of each tree all leaves but one, which is None."""
    trees = []
    for tree in range(128 // k):
        path = offset >> (k * tree) & (1 << k) - 1
        nodes = [None]
        for level in range(k):
            step = path >> (k - 1 - level) & 1
            nodes = [s and prf_block(s, NODE, tree, side, level) for s in nodes for side in (0, 1)]
            off = 2 * (path >> (k - level)) + 1 - step
            at = 16 * (2 * (k * tree + level) + 1 - step)
            known = [s for place, s in enumerate(nodes) if place % 2 == 1 - step and place != off]
            nodes[off] = xor(message[at : at + 16], keys[k * tree + level], *known)
        trees.append(nodes)
    return trees


def base_vectors():
    """The set-up for trees of four bits, in full."""
    k = 4
    sender, receiver = draw("ot/sender", 16 + 128 * 128), draw("ot/receiver", 64 + 16 * (128 // k))
    offset = int.from_bytes(sender[:16], "little") | 1
    choices = [1 - bit for bit in path_bits(k, offset)]
    base = BaseReceiver(choices, sender[16:])
    point, keys = base_sender(receiver[:64], base)
    chosen = base.keys(point[:32])
    require(chosen == [pair[c] for pair, c in zip(keys, choices)], "base transfers are wrong")
    roots = [receiver[64 + 16 * t : 80 + 16 * t] for t in range(128 // k)]
    leaves, message = grow(k, roots, keys)
    for tree, nodes in enumerate(descend(k, offset, chosen, message)):
        path = offset >> (k * tree) & (1 << k) - 1
        require(nodes[path] is None, "the sender has a leaf that it must not have")
        nodes[path] = leaves[tree][path]
        require(nodes == leaves[tree], "the sender's leaves are wrong")
    return {
        "k": k,
        "sender_random": sender.hex(),
        "receiver_random": receiver.hex(),
        "offset": offset.to_bytes(16, "little").hex(),
        "points": base.message.hex(),
        "point": point.hex(),
        "pairs": [[key.hex() for key in pair] for pair in keys],
        "trees": message.hex(),
        "leaves": [[leaf.hex() for leaf in tree] for tree in leaves],
    }


def tree_vectors(k):
    """Trees of other sizes, under keys that are given; the message by its digest."""
    roots = [draw(f"ot/{k}/root/{t}", 16) for t in range(128 // k)]
    keys = [[draw(f"ot/{k}/key/{i}/{j}", 16) for j in (0, 1)] for i in range(128)]
    leaves, message = grow(k, roots, keys)
    joined = b"".join(leaf for tree in leaves for leaf in tree)
    return {
        "k": k,
        "roots": [root.hex() for root in roots],
        "pairs": [[key.hex() for key in pair] for pair in keys],
        "trees_sha256": hashlib.sha256(message).hexdigest(),
        "leaves_sha256": hashlib.sha256(joined).hexdigest(),
    }


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of oblivious transfer.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    check = parser.parse_args().check
    folder = pathlib.Path(__file__).resolve().parent.parent
    ends = {"session": SESSION.hex(), "sender": SENDER.hex(), "receiver": RECEIVER.hex()}
    set_up = ends | {"set_up": base_vectors(), "trees": [tree_vectors(k) for k in (1, 2, 8)]}
    write_or_check(folder, {"ot_set_up.json": set_up}, check, "vectors/model/ot.py")


if __name__ == "__main__":
    main()
