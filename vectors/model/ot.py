#!/usr/bin/env python3
"""Golden model of oblivious transfer: base transfers, trees of keys, their stretching to many transfers, and the check of it.

    python3 vectors/model/ot.py            write the vectors
    python3 vectors/model/ot.py --check    compare them with what is committed; exit 1 if they differ
    python3 vectors/model/ot.py --escapes  cheat in the check of small transfers, and compare how many lies pass with how many should

From: Masny, Rindal, Endemic Oblivious Transfer, CCS 2019 (base transfers); Goldreich, Goldwasser, Micali, How to Construct Random
Functions, 1986 (trees); Roy, SoftSpokenOT: Communication-Computation Tradeoffs in OT Extension, CRYPTO 2022 (check of the trees,
transfers over small fields and their check); Gueron, Langley, Lindell, AES-GCM-SIV, RFC 8452 (2019), section 3 (POLYVAL).
"""

import argparse
import hashlib
import pathlib
import random

import ristretto
from aes128 import Aes128
from common import BITS, Place
from common import draw, prf_block, prf_stream, require, write_or_check
from keys import PARTY, peer

SESSION = bytes([0x5E]) * 32
SENDER, RECEIVER = peer(PARTY, 0), peer(PARTY, 1)
NODE, PUNCTURE, LEAF, KEYS = 0x2000, 0x2001, 0x2002, 0x2003
# What a hash is for.
POINT, KEY, BASE_SENDER, BASE_RECEIVER, LEAVES, TREES, STRING, CHALLENGE, TURNED, TURN, CLAIM = range(1, 12)


def xor(*strings):
    total = bytes(len(strings[0]))
    for string in strings:
        total = bytes(a ^ b for a, b in zip(total, string, strict=True))
    return total


# ------------------------------------------------------------------------------------------------ set-up


ENDS = (SESSION, SENDER, RECEIVER)


def prefix(what, ends=ENDS):
    return b"veilworks oblivious transfer 1" + bytes([what]) + b"".join(ends)


def sealed(what, message, ends=ENDS):
    return message + hashlib.sha256(prefix(what, ends) + message).digest()


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


def grow(k, roots, keys, ends=ENDS):
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
    digest = hashlib.sha256(prefix(LEAVES, ends) + bytes([k]) + values).digest()
    return leaves, sealed(TREES, message + checks + digest, ends)


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


def turn(ends, pairs, choices, old):
    """Turns 128 transfers around: the owner of both keys of each chooses. `old` are the choices of the other end, which it does not tell. The
    message, and both keys of each new transfer; the receiver's label of each is computed apart, by its own rule."""

    def string(i, j):
        return hashlib.sha256(prefix(STRING, ends) + i.to_bytes(2, "little") + bytes([j]) + pairs[i][j]).digest()

    def key(r, label):
        return hashlib.sha256(prefix(TURNED, ends) + r.to_bytes(2, "little") + label.to_bytes(16, "little")).digest()[:16]

    strings = [[string(i, j) for j in (0, 1)] for i in range(128)]
    x = sum(choice << r for r, choice in enumerate(choices)).to_bytes(16, "little") + xor(*strings[0])[16:]
    told = [xor(x, *two) for two in strings]
    corrections = told[0][:16] + b"".join(told[1:])
    challenge = hashlib.sha256(prefix(CHALLENGE, ends) + corrections).digest()[:16]
    folds = [fold(challenge, text) for text in [*(two[1] for two in strings), x]]
    # The other end has one string of each, and lacks the one that its old choice is not.
    columns = []
    for i, (two, choice) in enumerate(zip(strings, old)):
        columns.append(two[1] if choice else xor(two[0], told[i]))
        want = folds[i] if choice else xor(folds[i], folds[128])
        require(fold(challenge, columns[i]) == want, "a turn fails its check")
    numbers = [int.from_bytes(column[:16], "little") for column in columns]
    offset = sum(1 - choice << i for i, choice in enumerate(old))
    new = []
    for r, choice in enumerate(choices):
        zero = sum((n >> r & 1) << i for i, n in enumerate(numbers))
        new.append([key(r, zero), key(r, zero ^ offset)])
        own = sum((two[1][r // 8] >> r % 8 & 1) << i for i, two in enumerate(strings))
        require(key(r, own) == new[r][choice], "a turned key is wrong")
    return sealed(TURN, corrections + b"".join(folds), ends), new


def claim(ends, by, key):
    """What an end says that has kept transfers under a key."""
    return hashlib.sha256(prefix(CLAIM, ends) + by + key).digest()


def again(k, pairs, chosen):
    """A session leaves transfers, and the next one begins with them: from both keys of each base transfer, and the sender's choices."""
    kept = draw("ot/kept/choices", 16)
    bits = [kept[i // 8] >> i % 8 & 1 for i in range(128)]
    turned, left = turn(ENDS, pairs, bits, chosen)
    session = bytes([0x5F]) * 32
    ends, back = (session, SENDER, RECEIVER), (session, RECEIVER, SENDER)
    sender, receiver, key = draw("ot/again/sender", 16), draw("ot/again/receiver", 16 * (128 // k)), draw("ot/again/key", 16)
    offset = int.from_bytes(sender, "little") | 1
    choices = [1 - bit for bit in path_bits(k, offset)]
    first, keys = turn(back, left, choices, bits)
    leaves, message = grow(k, [receiver[16 * t : 16 * t + 16] for t in range(128 // k)], keys, ends)
    for tree, nodes in enumerate(descend(k, offset, [pair[c] for pair, c in zip(keys, choices)], message)):
        path = offset >> (k * tree) & (1 << k) - 1
        nodes[path] = leaves[tree][path]
        require(nodes == leaves[tree], "the sender's leaves are wrong")
    return {
        "kept_choices": kept.hex(),
        "turned": turned.hex(),
        "session": session.hex(),
        "key": key.hex(),
        "claims": [claim(ends, by, key).hex() for by in (SENDER, RECEIVER)],
        "sender_random": sender.hex(),
        "receiver_random": receiver.hex(),
        "first": first.hex(),
        "trees": message.hex(),
        "offset": offset.to_bytes(16, "little").hex(),
        "leaves": [[leaf.hex() for leaf in tree] for tree in leaves],
    }


def both(k, pairs, chosen):
    """Transfers of the other direction in the same session: the owner of both keys of each base transfer turns them by an offset of its own, whose
    bit 0 is 1 and bit 1 is 0, and the other end makes trees."""
    mask, value = 3, 1
    drawn, grown = draw("ot/both/offset", 16), draw("ot/both/roots", 16 * (128 // k))
    offset = int.from_bytes(drawn, "little") & ~mask | value
    choices = [1 - bit for bit in path_bits(k, offset)]
    turned, keys = turn(ENDS, pairs, choices, chosen)
    leaves, message = grow(k, [grown[16 * t : 16 * t + 16] for t in range(128 // k)], keys, (SESSION, RECEIVER, SENDER))
    for tree, nodes in enumerate(descend(k, offset, [pair[c] for pair, c in zip(keys, choices)], message)):
        path = offset >> (k * tree) & (1 << k) - 1
        require(nodes[path] is None, "an end has a leaf that it must not have")
        nodes[path] = leaves[tree][path]
        require(nodes == leaves[tree], "leaves of the other direction are wrong")
    return {
        "pins": [f"{pin:x}" for pin in (mask, value)],
        "drawn": drawn.hex(),
        "roots": grown.hex(),
        "turned": turned.hex(),
        "trees": message.hex(),
        "offset": offset.to_bytes(16, "little").hex(),
        "leaves": [[leaf.hex() for leaf in tree] for tree in leaves],
    }


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
        "again": again(k, keys, choices),
        "both": both(k, keys, choices),
    }


def tree_vectors(k):
    """Trees of other sizes, under keys that are given; the message by its digest."""
    roots = [draw(f"ot/{k}/seed/{t}", 16) for t in range(128 // k)]
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


# --------------------------------------------------------------------------------------------- transfers


def dot(a, b):
    """a b x^-128 modulo x^128 + x^127 + x^126 + x^121 + 1; bit i of a number is the coefficient of x^i."""
    product = 0
    for i in range(128):
        if b >> i & 1:
            product ^= a << i
    field = 1 << 128 | 1 << 127 | 1 << 126 | 1 << 121 | 1
    for _ in range(128):
        # The polynomial's constant is 1: a multiple of it makes the sum divisible by x.
        product = (product ^ field if product & 1 else product) >> 1
    return product


def polyval(key, data):
    state = 0
    for at in range(0, len(data), 16):
        state = dot(state ^ int.from_bytes(data[at : at + 16], "little"), key)
    return state.to_bytes(16, "little")


def fold(challenge, string):
    """What a column, or the string of choices, becomes: all blocks but the last under the challenge, and the last."""
    return xor(polyval(int.from_bytes(challenge, "little"), string[:-16]), string[-16:])


class Transfers:
    """A chunk of transfers: `items` items of choices in `place.rows` rows, over trees of k bits whose leaves are given."""

    def __init__(self, k, leaves, place, items):
        self.k, self.leaves, self.place, self.items = k, leaves, place, items
        self.width = -(-place.rows // 8)
        self.length = items * self.width
        self.blocks = -(-self.length // 16) + 1
        # Below the last block.
        self.end = 16 * (self.blocks - 1)

    def stretched(self, tree, leaf):
        where = (self.place.lane, self.place.first, self.place.chunk)
        return prf_stream(self.leaves[tree][leaf], LEAF, *where, 16 * self.blocks)

    def cut(self, string):
        """Zeros between the choices and the last block, of which nothing is sent."""
        return string[: self.length].ljust(self.end, b"\0") + string[self.end :]

    def receive(self, items):
        """Corrections by tree, and columns, the last of which is the string of choices."""
        x, columns, corrections = b"".join(items).ljust(self.end, b"\0"), [], []
        for tree in range(128 // self.k):
            strings = [self.stretched(tree, leaf) for leaf in range(1 << self.k)]
            u = xor(*strings)
            if tree == 0:
                x += u[self.end :]
            for p in range(self.k):
                columns.append(self.cut(xor(*(s for leaf, s in enumerate(strings) if leaf >> p & 1))))
            corrections.append(xor(x, u))
        return corrections, [*columns, x]

    def send(self, offset, corrections):
        """Columns, by the sum over all leaves x but the lacking one of (x + path) L_x, bit by bit."""
        columns = []
        for tree in range(128 // self.k):
            path = offset >> (self.k * tree) & (1 << self.k) - 1
            known = {leaf: self.stretched(tree, leaf) for leaf in range(1 << self.k) if leaf != path}
            told = corrections[tree]
            for p in range(self.k):
                parts = [s for leaf, s in known.items() if (leaf ^ path) >> p & 1]
                columns.append(self.cut(xor(*parts, told) if path >> p & 1 else xor(*parts)))
        return columns

    def labels(self, columns):
        """Of each item the label of each row: bit c is that row's bit of column c."""
        numbers = [int.from_bytes(column, "little") for column in columns[:128]]
        places = [[8 * self.width * p + row for row in range(self.place.rows)] for p in range(self.items)]
        return [[sum((n >> at & 1) << c for c, n in enumerate(numbers)) for at in item] for item in places]


def label_hash(start, tweak, x):
    """H(x) = AES(sigma(x)) xor sigma(x) under the key start xor tweak 2^64, with sigma(hi || lo) = (hi xor lo) || hi."""
    hi, lo = x >> 64, x & (1 << 64) - 1
    x = (hi ^ lo) << 64 | hi
    cipher = Aes128((start ^ tweak << 64).to_bytes(16, "little"))
    return int.from_bytes(cipher.encrypt(x.to_bytes(16, "little")), "little") ^ x


def transfer_keys(start, place, first, labels):
    point = int.from_bytes(prf_block(start, KEYS, place.lane, 0, place.chunk), "little")
    numbers = enumerate(labels)
    return [[label_hash(point, (first + p) << 16 | row, x) for row, x in enumerate(item)] for p, item in numbers]


def joined(labels):
    return b"".join(x.to_bytes(16, "little") for item in labels for x in item).hex()


def transfer_vectors(k, lane, chunk, first, chunk_rows, rows, items):
    """Transfers of random choices, checked, and keys of them. Leaf x of tree t is drawn as ot/leaf/k/t/x."""
    leaves = [[draw(f"ot/leaf/{k}/{t}/{x}", 16) for x in range(1 << k)] for t in range(128 // k)]
    place = Place(BITS, lane, chunk, first, chunk_rows, rows)
    run = Transfers(k, leaves, place, items)
    name = f"ot/transfers/{k}/{rows}"
    offset = int.from_bytes(draw(f"{name}/offset", 16), "little") | 1
    choices = [BITS.values(f"{name}/choices/{p}", rows) for p in range(items)]
    challenge, start = draw(f"{name}/challenge", 16), draw(f"{name}/start", 16)
    corrections, columns = run.receive([BITS.encode(item) for item in choices])
    theirs = run.send(offset, corrections)
    folds, folded = [[fold(challenge, c) for c in side] for side in (columns, theirs)]
    for c, (t, q) in enumerate(zip(folds, folded)):
        require(q == (xor(t, folds[128]) if offset >> c & 1 else t), "the check fails")
    received, sent = run.labels(columns), run.labels(theirs)
    for item, t, q in zip(choices, received, sent):
        require(all(b == a ^ x * offset for x, a, b in zip(item, t, q)), "labels are wrong")
    number = 2**40 + 5
    other = [[q ^ offset for q in item] for item in sent]
    keys = {side: transfer_keys(start, place, number, of) for side, of in (("own", received), ("zero", sent), ("one", other))}
    return {
        "k": k,
        "items": items,
        **place.fields(),
        "offset": offset.to_bytes(16, "little").hex(),
        "choices": "".join(BITS.hex(item) for item in choices),
        "corrections": b"".join(d[: run.length] for d in corrections).hex(),
        "last": b"".join(d[run.end :] for d in corrections[1:]).hex(),
        "challenge": challenge.hex(),
        "receiver_folds": b"".join(folds).hex(),
        "sender_folds": b"".join(folded).hex(),
        "receiver_labels": joined(received),
        "sender_labels": joined(sent),
        "start": start.hex(),
        "first_key": str(number),
        "keys": {side: joined(of) for side, of in keys.items()},
    }


CASES = [
    # k, lane, chunk, first, chunk_rows, rows, items
    (1, 0, 0, 0, 512, 13, 3),
    (2, 1, 7, 2**33, 512, 129, 1),
    (4, 2, 3, 5, 512, 21, 5),
    (8, 0x0102, 0x03040506, 1000, 1024, 8, 2),
]


# ---------------------------------------------------------------------------------------------- cheating


def escapes(k, guesses, trials):
    """How often a receiver passes that sends another x in some trees, guesses their bits of the offset, and mends its folds."""
    rng, passed = random.Random(k * 100 + guesses), 0
    leaves = [[draw(f"ot/escape/{k}/{t}/{x}", 16) for x in range(1 << k)] for t in range(128 // k)]
    run = Transfers(k, leaves, Place(BITS, 0, 0, 0, 128, 8), 1)
    corrections, columns = run.receive([b"\x5a"])
    # The first tree's bit 0 is known.
    lied = range(1, 1 + guesses)
    for tree in lied:
        corrections[tree] = bytes([corrections[tree][0] ^ 1]) + corrections[tree][1:]
    challenge = draw(f"ot/escape/{k}", 16)
    difference = fold(challenge, b"\1".ljust(run.end, b"\0") + bytes(16))
    told = [fold(challenge, c) for c in columns]
    for _ in range(trials):
        offset, guess = rng.getrandbits(128) | 1, rng.getrandbits(128)
        # Columns of the sender under this offset, by what they are: t + offset (x + lie).
        accepted = True
        for c in range(128):
            lie = c // k in lied
            mine = xor(told[c], difference) if lie and guess >> c & 1 else told[c]
            true = told[c]
            if offset >> c & 1:
                true = xor(true, told[128], difference) if lie else xor(true, told[128])
            want = xor(mine, told[128]) if offset >> c & 1 else mine
            accepted &= true == want
        passed += accepted
    return passed


def check_escapes():
    for k in (1, 2):
        for guesses in (1, 2, 3):
            trials = 1000
            rate, want = escapes(k, guesses, trials) / trials, 2.0 ** -(k * guesses)
            spread = (want * (1 - want) / trials) ** 0.5
            require(abs(rate - want) < 5 * spread, f"{k} bits, {guesses} trees: {rate}, not {want}")
            print(f"trees of {k} bits, {guesses} wrong: {rate:.4f} pass, {want:.4f} should")


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of oblivious transfer.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--escapes", action="store_true", help="cheat, and count")
    args = parser.parse_args()
    if args.escapes:
        check_escapes()
        return
    folder = pathlib.Path(__file__).resolve().parent.parent
    ends = {"session": SESSION.hex(), "sender": SENDER.hex(), "receiver": RECEIVER.hex()}
    set_up = ends | {"set_up": base_vectors(), "trees": [tree_vectors(k) for k in (1, 2, 8)]}
    transfers = {"transfers": [transfer_vectors(*case) for case in CASES]}
    files = {"ot_set_up.json": set_up, "ot.json": transfers}
    write_or_check(folder, files, args.check, "vectors/model/ot.py")


if __name__ == "__main__":
    main()
