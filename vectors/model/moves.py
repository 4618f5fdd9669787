#!/usr/bin/env python3
"""Golden model of permutations of rows: how parties with a common key draw one, and how rows move by one that no party knows.

A permutation pi sends the row at position j to position pi(j). Among three parties a move takes two rounds and four elements for
each row, and with an opening of what moved six; among four parties it takes four rounds and twelve elements.

    python3 vectors/model/moves.py            write the vectors
    python3 vectors/model/moves.py --check    compare them with what is committed; exit 1 if they differ

Each time it runs, moves of two and three rows are computed for all permutations and all masks that a party lacks: that what it receives,
and what is opened, do not depend on the rows. The same program finds the leaks of three protocols that look alike.
"""

import argparse
import functools
import itertools
import operator
import pathlib
import random
from collections import Counter

from common import BITS, Z32, Z64, Place, Ring
from common import draw, prf_block, require, sharing_fields, tag, write_or_check
from rep4 import code

# Rows above which a permutation is drawn by buckets, and rows of a bucket, on average: what a processor's first cache has room for.
BUCKETED, BUCKET = 1 << 18, 1 << 11


# ---------------------------------------------------------------------------------------------------- draws


class Words(Ring):
    """Words of so many bits, whose sum and difference are XOR."""

    def __init__(self, bits):
        super().__init__("words", bits)

    def add(self, *columns):
        return [functools.reduce(operator.xor, row) for row in zip(*columns)]

    def sub(self, a, b):
        return self.add(a, b)


def fisher_yates(rows, block):
    """Shuffles the list in place: position j is swapped with one of those from j on, by block j as a fraction of 2^128."""
    for j in range(len(rows) - 1):
        other = j + (block(j) * (len(rows) - j) >> 128)
        rows[j], rows[other] = rows[other], rows[j]


def permutation(key, use, lane, chunk, first, rows, bucketed=BUCKETED, bucket=BUCKET):
    """A permutation, whose entry j is pi(j), of `rows` blocks from counter `first` on; of twice as many if it is drawn by buckets.

    In buckets: each row goes to a bucket by a block of its own; the buckets, one behind the other, are shuffled by further blocks.
    """
    block = lambda counter: int.from_bytes(prf_block(key, use, lane, first + counter, chunk), "little")
    if rows <= bucketed:
        order = list(range(rows))
        fisher_yates(order, block)
        return order
    bits = ((rows - 1) // bucket).bit_length()
    buckets = [[] for _ in range(1 << bits)]
    for j in range(rows):
        buckets[block(j) >> (128 - bits)].append(j)
    order = []
    for of_bucket in buckets:
        start = rows + len(order)
        fisher_yates(of_bucket, lambda j, start=start: block(start + j))
        order += of_bucket
    return order


def moved(pi, rows):
    out = [None] * len(rows)
    for row, to in zip(rows, pi):
        out[to] = row
    return out


def inverse(pi):
    return moved(pi, range(len(pi)))


def after(second, first):
    """The permutation that does `first`, then `second`."""
    return [second[to] for to in first]


# ---------------------------------------------------------------------------------------------- three parties
# Component c and key c belong to P_c and P_(c+1); so does permutation c.

# What masks are for: z and b are drawn under the key of E and F, y and a under that of E and G, t under that of F and G.
MASKS = "zyabt"


class Roles:
    """Who does what in a move of rotation s: three parties, and the components of each two of them."""

    def __init__(self, rotation, back):
        s, one, two = ((rotation + k) % 3 for k in range(3))
        if back:
            self.e, self.f, self.g = two, one, s
            self.ef, self.eg, self.fg = one, two, s
        else:
            self.e, self.f, self.g = s, one, two
            self.ef, self.eg, self.fg = s, two, one
        for pair, component in ((self.e, self.f), self.ef), ((self.e, self.g), self.eg), ((self.f, self.g), self.fg):
            require({component, (component + 1) % 3} == set(pair), "a component of two parties that do not have it")

    def key(self, mask):
        """The component whose key draws a mask."""
        return {"z": self.ef, "b": self.ef, "y": self.eg, "a": self.eg, "t": self.fg}[mask]


def factors(pi, back):
    return [inverse(p) for p in pi] if back else pi


def total(pi, rotation):
    """The permutation of a move, each of whose factors one party lacks."""
    roles = Roles(rotation, False)
    return after(pi[roles.fg], after(pi[roles.eg], pi[roles.ef]))


def begin3(ring, roles, pi, u, masks):
    """What E sends to F, and F to G."""
    own = ring.add(u[roles.eg], u[roles.ef], masks["z"])
    x = ring.add(moved(pi[roles.eg], moved(pi[roles.ef], own)), masks["y"])
    return x, moved(pi[roles.ef], ring.sub(u[roles.fg], masks["z"]))


def move3(ring, rotation, pi, u, masks, back=False):
    """Messages as (round, from, to, elements), and the components of the rows that moved: back, if the inverse is meant."""
    roles, pi = Roles(rotation, back), factors(pi, back)
    x, y = begin3(ring, roles, pi, u, masks)
    ends = ring.sub(moved(pi[roles.fg], x), masks["b"])
    other = ring.sub(moved(pi[roles.fg], ring.sub(moved(pi[roles.eg], y), masks["y"])), masks["a"])
    result = [None] * 3
    result[roles.eg], result[roles.ef], result[roles.fg] = masks["a"], masks["b"], ring.add(ends, other)
    e, f, g = roles.e, roles.f, roles.g
    return [(0, e, f, x), (0, f, g, y), (1, f, g, ends), (1, g, f, other)], result


def open3(ring, rotation, pi, u, masks):
    """Messages, and the rows that moved, in the clear."""
    roles = Roles(rotation, False)
    x, y = begin3(ring, roles, pi, u, masks)
    ends = ring.add(moved(pi[roles.fg], x), masks["t"])
    other = moved(pi[roles.fg], ring.sub(moved(pi[roles.eg], y), masks["y"]))
    other = ring.sub(other, masks["t"])
    e, f, g = roles.e, roles.f, roles.g
    sent = [(0, e, f, x), (0, f, g, y)]
    sent += [(1, f, to, ends) for to in (e, g)] + [(1, g, to, other) for to in (e, f)]
    return sent, ring.add(ends, other)


def masks3(place, keys, rotation, item, back=False):
    roles = Roles(rotation, back)
    return {m: place.stream(keys[roles.key(m)], tag("MOVE3", k), item) for k, m in enumerate(MASKS)}


# ----------------------------------------------------------------------------------------------- four parties
# Party i holds all components but i, all keys but i, and all permutations but i.


def step4(ring, g, pi, u, drawn):
    """The components after step g, whose permutation P_g lacks: `drawn` are three masks, and the fourth makes their sum zero."""
    r = [None] * 4
    for c, mask in zip((c for c in range(4) if c != g), drawn):
        r[c] = mask
    r[g] = ring.sub([0] * len(u[0]), ring.add(*(r[c] for c in range(4) if c != g)))
    return [ring.add(moved(pi, u[c]), r[c]) for c in range(4)]


def move4(place, keys, pi, u, item, back=False):
    """The components after each of four steps: of each, P_g is sent the components that it has."""
    steps = []
    for g in (3, 2, 1, 0) if back else range(4):
        drawn = [place.stream(keys[g], tag("MOVE4", c), item) for c in range(4) if c != g]
        u = step4(place.ring, g, inverse(pi[g]) if back else pi[g], u, drawn)
        steps.append((g, u))
    return steps


# -------------------------------------------------------------------------------------------- what a party sees


def all_permutations(n):
    return [list(p) for p in itertools.permutations(range(n))]


def views3(ring, rows, party, rotation, steps, held, protocol):
    """How often each view of a party occurs: over the permutation and the masks that it lacks, and with what it has itself held fixed.

    `steps` are ("open", rows), ("there", rows) and ("back", rows); what goes back is in the order that was opened.
    """
    lacks = (party + 1) % 3
    unknown = []
    for number, (kind, _) in enumerate(steps):
        roles = Roles(rotation, kind == "back")
        used = "zyt" if kind == "open" else "zyab"
        unknown += [(number, m) for m in used if roles.key(m) not in (party, (party - 1) % 3)]
    columns = list(itertools.product(range(ring.mask + 1), repeat=rows))
    seen = Counter()
    for factor in all_permutations(rows):
        pi = list(held["pi"])
        pi[lacks] = factor
        for drawn in itertools.product(columns, repeat=len(unknown)):
            masks = [dict(m) for m in held["masks"]]
            for (number, m), column in zip(unknown, drawn):
                masks[number][m] = list(column)
            seen[tuple(protocol(ring, rotation, pi, steps, masks, held["u"], party, lacks))] += 1
    return seen


def sent_to(party, messages):
    return tuple(tuple(elements) for _, _, to, elements in messages if to == party)


def honest3(ring, rotation, pi, steps, masks, u, party, lacks):
    """What a party receives in these steps, one after the other."""
    order, view = None, []
    for number, (kind, rows) in enumerate(steps):
        clear = [rows[j] for j in order] if kind == "back" else rows
        shares = [list(c) for c in u[number]]
        known = [shares[c] for c in range(3) if c != lacks]
        shares[lacks] = ring.sub(clear, ring.add(*known))
        if kind == "open":
            messages, opened = open3(ring, rotation, pi, shares, masks[number])
            require(opened == moved(total(pi, rotation), clear), "what is opened is not what moved")
            order = opened
        else:
            messages, _ = move3(ring, rotation, pi, shares, masks[number], kind == "back")
        view.append(sent_to(party, messages))
    return view


def equal_views(ring, rows, first, second, numbers, protocol=honest3):
    """Whether a party's view of two lists of steps, of the same kinds, is the same: for each party and each rotation."""
    column = lambda: [numbers.randrange(ring.mask + 1) for _ in range(rows)]
    for party, rotation in itertools.product(range(3), range(3)):
        held = {
            "pi": [numbers.sample(range(rows), rows) for _ in range(3)],
            "masks": [{m: column() for m in MASKS} for _ in first],
            "u": [[column() for _ in range(3)] for _ in first],
        }
        seen = [views3(ring, rows, party, rotation, steps, held, protocol) for steps in (first, second)]
        if seen[0] != seen[1]:
            return False
    return True


def without_t(ring, rotation, pi, steps, masks, u, party, lacks):
    return honest3(ring, rotation, pi, steps, [m | {"t": [0] * len(m["t"])} for m in masks], u, party, lacks)


def same_y(ring, rotation, pi, steps, masks, u, party, lacks):
    return honest3(ring, rotation, pi, steps, [m | {"y": masks[0]["y"], "z": masks[0]["z"]} for m in masks], u, party, lacks)


def all_of_three():
    z4, numbers = Ring("z4", 2), random.Random(1)
    # An opening with a column beside it, and one by which two columns go back.
    for kinds in (("open", "there"), ("open", "back", "back")):
        one = list(zip(kinds, ([0, 1], [1, 1], [1, 0])))
        two = list(zip(kinds, ([1, 0], [0, 1], [0, 0])))
        require(equal_views(BITS, 2, one, two, numbers), "a view of three parties depends on the rows")
    one, two = [("open", [0, 1, 2])], [("open", [2, 0, 1])]
    require(equal_views(z4, 3, one, two, numbers), "a view of an opening depends on its rows")
    # Three protocols that look alike, and leak.
    one, two = [("open", [0, 1])] * 2, [("open", [0, 1]), ("open", [1, 0])]
    require(not equal_views(BITS, 2, one, two, numbers), "two openings by one permutation show how they are related")
    one, two = [("open", [0, 1, 2])], [("open", [1, 2, 0])]
    require(not equal_views(z4, 3, one, two, numbers, without_t), "an opening without t shows the last factor")
    one, two = [("there", [0, 1])] * 2, [("there", [0, 1]), ("there", [0, 0])]
    require(not equal_views(BITS, 2, one, two, numbers, same_y), "two moves with the same masks show where rows are alike")


def all_of_four():
    """What P_g is sent in its step is uniform, whatever the permutation and its components are."""
    for g in range(4):
        reference = None
        mine = [c for c in range(4) if c != g]
        for own in itertools.product(range(2), repeat=2):
            for pi in all_permutations(2):
                u = [list(own) if c == g else [c & 1, 1] for c in range(4)]
                seen = Counter()
                for bits in itertools.product(range(2), repeat=6):
                    out = step4(BITS, g, pi, u, [list(bits[k : k + 2]) for k in (0, 2, 4)])
                    seen[tuple(tuple(out[c]) for c in mine)] += 1
                require(reference in (None, seen) and set(seen.values()) == {1}, f"what P_{g} is sent depends on the rows")
                reference = seen


def all_draws():
    """Fisher and Yates' shuffle gives every permutation as often as another, in buckets too, if blocks are uniform."""
    for rows in range(5):
        seen = Counter()
        fractions = [[(2 * k + 1 << 128) // (2 * (rows - j)) for k in range(rows - j)] for j in range(max(rows - 1, 0))]
        for blocks in itertools.product(*fractions):
            order = list(range(rows))
            fisher_yates(order, lambda j, blocks=blocks: blocks[j])
            seen[tuple(order)] += 1
        require(len(seen) == len(all_permutations(rows)) and set(seen.values()) == {1}, f"a shuffle of {rows} rows is biased")
    seen = Counter()
    for sides in itertools.product(range(2), repeat=4):
        halves = [[j for j in range(4) if sides[j] == side] for side in range(2)]
        ways = [all_permutations(len(half)) for half in halves]
        for first, second in itertools.product(*ways):
            order = [halves[0][j] for j in first] + [halves[1][j] for j in second]
            seen[tuple(order)] += 24 // (len(ways[0]) * len(ways[1]))
    require(len(seen) == 24 and len(set(seen.values())) == 1, "a shuffle by buckets is biased")


# ------------------------------------------------------------------------------------------------------- cases


def draws():
    key = draw("moves/permutation", 16)
    cases = []
    for rows, bucketed, bucket in ((0, 8, 2), (1, 8, 2), (2, 8, 2), (8, 8, 2), (9, 8, 2), (100, 8, 4), (300, 512, 4), (257, 16, 64)):
        first, lane, chunk, use = 5 + rows, 2, 7, tag("PERM3")
        entries = permutation(key, use, lane, chunk, first, rows, bucketed, bucket)
        require(sorted(entries) == list(range(rows)), "not a permutation")
        where = {"tag": use, "lane": lane, "chunk": chunk, "first": first, "rows": rows}
        cases.append(where | {"bucketed": bucketed, "bucket": bucket, "entries": entries})
    return {"key": key.hex(), "bucketed": BUCKETED, "bucket": BUCKET, "cases": cases}


# Rows and rotations, and what moves: words of a byte, which are shared bit by bit, and integers.
FRAMES = [(1, 0), (5, 1), (130, 2)]
MOVED = [("words1", Words(8)), ("z32", Z32), ("z64", Z64)]


def of_parties(parties):
    keys = [draw(f"moves/{parties}/key{c}", 16) for c in range(parties)]
    pairs = [[draw(f"moves/pair{min(a, b)}{max(a, b)}", 16) for b in range(4)] for a in range(4)]
    cases = []
    for (name, ring), (rows, rotation) in itertools.product(MOVED, FRAMES):
        use = "PERM3" if parties == 3 else "PERM4"
        pi = [permutation(key, tag(use, c), 0, 1, 0, rows) for c, key in enumerate(keys)]
        value, *u = (ring.values(f"moves/{parties}/{name}/{rows}/{k}", rows) for k in range(parties))
        u = [*u, ring.sub(value, ring.add(*u))]
        place = Place(ring, 0, 1, 0, rows, rows)
        case = {"form": name, "rows": rows, "rotation": rotation, "permutations": pi, "x": sharing_fields(ring, u)}
        if parties == 3:
            whole = total(pi, rotation)
            there, result = move3(ring, rotation, pi, u, masks3(place, keys, rotation, 0))
            back, again = move3(ring, rotation, pi, result, masks3(place, keys, rotation, 0, back=True), back=True)
            opening, opened = open3(ring, rotation, pi, u, masks3(place, keys, rotation, 0))
            require(opened == moved(whole, value), "an opening of rows that moved")
            fields = lambda sent: [{"round": r, "from": f, "to": t, "bytes": ring.hex(e)} for r, f, t, e in sent]
            case |= {"there": fields(there), "back": fields(back)}
            case |= {"opening": fields(opening), "opened": ring.hex(opened)}
        else:
            whole = list(range(rows))
            for g in range(4):
                whole = after(pi[g], whole)
            there = move4(place, keys, pi, u, 0)
            back = move4(place, keys, pi, there[-1][1], 0, back=True)
            result, again = there[-1][1], back[-1][1]
            case |= {"there": sent4(ring, pairs, rotation, there), "back": sent4(ring, pairs, rotation, back)}
        require(ring.add(*result) == moved(whole, value), "rows that moved")
        require(ring.add(*again) == value, "rows that went back")
        case |= {"moved": sharing_fields(ring, result), "again": sharing_fields(ring, again)}
        cases.append(case)
    fields = {"keys": [key.hex() for key in keys], "cases": cases}
    both = itertools.combinations(range(4), 2)
    return fields if parties == 3 else {"pairs": {f"{a}{b}": pairs[a][b].hex() for a, b in both}} | fields


def sent4(ring, pairs, rotation, steps):
    """What P_g is sent in each step: of each component that it has the elements from one of two others, and a code from the other."""
    sent = []
    for number, (g, u) in enumerate(steps):
        for c in (c for c in range(4) if c != g):
            givers = [party for party in range(4) if party not in (g, c)]
            sender, voucher = givers if (rotation + g + c) % 2 == 0 else givers[::-1]
            elements = ring.encode(u[c])
            vouched = code(pairs[voucher][g], 0, tag("CODE4", c), number, 1, [elements])
            sent.append({"round": number, "from": sender, "to": g, "part": c, "bytes": elements.hex()})
            sent.append({"round": number, "from": voucher, "to": g, "part": 4 + c, "bytes": vouched.hex()})
    return sent


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of permutations of rows.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    check = parser.parse_args().check
    all_draws()
    all_of_three()
    all_of_four()
    folder = pathlib.Path(__file__).resolve().parent.parent
    files = {"permutations.json": draws(), "moves3.json": of_parties(3), "moves4.json": of_parties(4)}
    write_or_check(folder, files, check, "vectors/model/moves.py")


if __name__ == "__main__":
    main()
