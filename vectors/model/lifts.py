#!/usr/bin/env python3
"""Golden model of lifts, by which shared bits become integers, among three and four parties: whole transcripts, and what they show.

Among three parties a lift is three elements, one from each party; among four it is six joint messages; both take two rounds. A sum of
lifts over rows sends all elements in its first round, and one of each kind in its second.

    python3 vectors/model/lifts.py            write the vectors
    python3 vectors/model/lifts.py --check    compare them with what is committed; exit 1 if they differ

Each time it runs, lifts over Z_4 are computed from all shares and all masks: that they are right, and that what a party receives is
uniform, whatever the bit is, given all that this party has.
"""

import argparse
import itertools
import pathlib
from collections import Counter

import rep3
import rep4
from common import BITS, Z32, Z64, Z128, Place, Ring
from common import draw, require, sharing_fields, tag, write_or_check

# Numbers of messages: of the first round, and the two of the second, among three; among four joint message k has its own.
PARTS3 = (6, 7, 8)
PART4 = 24
# Joint messages of four parties that share s, the XOR of components 0 and 1, and t, that of 2 and 3; then the four of -2st.
FIRST4, SECOND4 = (0, 2), (1, 3, 4, 5)


# ------------------------------------------------------------------------------------------------ three parties


def first3(ring, r, b, drawn):
    """What P_(r+1) knows is shared by it and P_r: component r, which it sends, of s = b_r xor b_(r+1), whose component r + 1 is drawn."""
    s = [x ^ y for x, y in zip(b[r], b[(r + 1) % 3])]
    return ring.sub(s, drawn)


def second3(ring, r, b, halves, rho, other):
    """Components r, r + 1 and r + 2 of s + t - 2st, of t = b_(r+2): both holders of t multiply by 1 - 2t, which is 1 or -1."""
    t = b[(r + 2) % 3]
    turned = [ring.sub(half, ring.scale(2, ring.mul(t, half))) for half in halves]
    own, before = ring.add(turned[0], rho), ring.add(turned[1], other)
    return own, before, ring.sub(ring.sub(t, rho), other)


def lift3(place, keys, item, r, b, sums=None):
    """The three messages of a lift, as (round, from, to, elements), and its components. With `sums`, the sum over the rows."""
    ring = place.ring
    halves = [None, place.stream(keys[(r + 1) % 3], tag("LIFT3", 0), item)]
    halves[0] = first3(ring, r, b, halves[1])
    key, columns = keys[(r + 2) % 3], [b[c] for c in range(3)]
    if sums is None:
        rho, other = (place.stream(key, tag("LIFT3", k), item) for k in (1, 2))
        parts = second3(ring, r, columns, halves, rho, other)
    else:
        zero = [0] * place.rows
        rho, other = (sums.stream(key, tag("LIFT3", k), item) for k in (3, 4))
        own, before, t = ([sum(c) & ring.mask] for c in second3(ring, r, columns, halves, zero, zero))
        parts = ring.add(own, rho), ring.add(before, other), ring.sub(ring.sub(t, rho), other)
    components = [None] * 3
    for k, part in enumerate(parts):
        components[(r + k) % 3] = part
    q, p, o = (r + 1) % 3, r, (r + 2) % 3
    return [(0, q, p, halves[0]), (1, p, q, parts[0]), (1, o, q, parts[1])], components


# ------------------------------------------------------------------------------------------------- four parties


def four(ring, b, rho):
    """Of every joint message what is sent, and the components: `rho` are its masks, each under the key of all parties but its receiver."""
    half, sent = [None] * 4, [None] * 6
    for k, (c, d) in zip(FIRST4, ((2, 3), (0, 1))):
        (_, receiver, outsider) = rep4.JOINT[k]
        require({receiver, outsider} == {c, d}, "the pair that knows an XOR shares it between the two components of it")
        known = [x ^ y for x, y in zip(b[c], b[d])]
        half[receiver], half[outsider] = rho[k], ring.sub(known, rho[k])
        sent[k] = half[outsider]
    result = list(half)
    for k in SECOND4:
        pair, receiver, outsider = rep4.JOINT[k]
        require(not {receiver, outsider} & set(pair), "a term of components that its pair lacks")
        require({receiver // 2, outsider // 2} == {0, 1}, "a term is of a component of s and one of t")
        sent[k] = ring.sub(ring.scale(-2, ring.mul(half[receiver], half[outsider])), rho[k])
        result[receiver] = ring.add(result[receiver], rho[k])
        result[outsider] = ring.add(result[outsider], sent[k])
    return sent, result


def lift4(place, keys, item, b):
    rho = [place.stream(keys[receiver], tag("LIFT4", k), item) for k, (_, receiver, _) in enumerate(rep4.JOINT)]
    return four(place.ring, b, rho)


# ------------------------------------------------------------------------------------------------- all of Z_4

Z4 = Ring("z4", 2)
BIT = (0, 1)


def uniform(seen, messages, what):
    """Every tuple of as many elements as there are messages was seen equally often."""
    wanted = Z4.mask + 1
    require(len(seen) == wanted**messages and len(set(seen.values())) == 1, f"{what} depends on what is shared")


def all_of_three():
    """What each party receives, given its components and all masks that it has: uniform, for either bit."""
    elements = range(Z4.mask + 1)
    for r, party, value in itertools.product(range(3), range(3), BIT):
        views = {}
        for b0, b1, drawn, rho, other in itertools.product(BIT, BIT, elements, elements, elements):
            b = [[b0], [b1], [b0 ^ b1 ^ value]]
            halves = first3(Z4, r, b, [drawn]), [drawn]
            parts = second3(Z4, r, b, halves, [rho], [other])
            require(sum(p[0] for p in parts) & Z4.mask == value, "a lift among three parties")
            own = [b[party][0], b[party - 1][0]]
            # drawn is under key r + 1, rho and the other under key r + 2; a party has its own key and the one before it.
            keys = {party, (party - 1) % 3}
            own += [drawn] * ((r + 1) % 3 in keys) + [rho, other] * ((r + 2) % 3 in keys)
            got = {r: (halves[0][0],), (r + 1) % 3: (parts[0][0], parts[1][0])}.get(party, ())
            views.setdefault(tuple(own), Counter())[got] += 1
        messages = {r: 1, (r + 1) % 3: 2}.get(party, 0)
        for seen in views.values():
            uniform(seen, messages, f"what party {party} receives, rotation {r}")


def all_of_four():
    elements = range(Z4.mask + 1)
    views = {}
    for value, b0, b1, b2 in itertools.product(BIT, repeat=4):
        b = [[b0], [b1], [b2], [b0 ^ b1 ^ b2 ^ value]]
        for rho in itertools.product(elements, repeat=6):
            sent, result = four(Z4, b, [[x] for x in rho])
            require(sum(c[0] for c in result) & Z4.mask == value, "a lift among four parties")
            for party in range(4):
                mine = tuple(b[c][0] for c in range(4) if c != party)
                mine += tuple(x for x, (_, receiver, _) in zip(rho, rep4.JOINT) if receiver != party)
                got = tuple(m[0] for m, (_, receiver, _) in zip(sent, rep4.JOINT) if receiver == party)
                views.setdefault((party, value, mine), Counter())[got] += 1
    for (party, _, _), seen in views.items():
        messages = sum(receiver == party for _, receiver, _ in rep4.JOINT)
        uniform(seen, messages, f"what party {party} of four receives")


# ------------------------------------------------------------------------------------------------------- cases


class Run:
    """A chunk of a run that lifts the lowest bits of integers."""

    def __init__(self, parties, ring, items, lane, chunk, chunk_rows, rows):
        self.parties, self.ring, self.rows = parties, ring, rows
        self.where = (lane, chunk, chunk_rows, rows)
        deal = (rep3 if parties == 3 else rep4).deal
        self.x = [deal(ring, f"lifts/{parties}/{ring.name}/{rows}/{k}", rows) for k in range(items)]
        self.keys = [draw(f"lifts/{parties}/key{c}", 16) for c in range(parties)]
        self.place = Place(ring, lane, chunk, 0, chunk_rows, rows)

    def bits(self, item):
        return [[u & 1 for u in column] for column in self.x[item]]

    def lifted(self):
        """Messages and results of all items, which the rotation of their number orders among three parties."""
        items = range(len(self.x))
        return lifts(self.parties, self.place, self.keys, [self.bits(k) for k in items], 0, (0, 1))

    def case(self):
        messages, results = self.lifted()
        for item, result in enumerate(results):
            want = [sum(column) & 1 for column in zip(*self.bits(item))]
            require(self.ring.add(*result) == want, "a lift is not the bit")
        lane, chunk, chunk_rows, rows = self.where
        place = {"lane": lane, "chunk": chunk, "chunk_rows": chunk_rows, "rows": rows}
        x = [sharing_fields(self.ring, u) for u in self.x]
        shared = [sharing_fields(self.ring, u) for u in results]
        return {"ring": self.ring.name} | place | {"x": x, "messages": messages, "results": shared}

    def sum_case(self):
        """Among three parties: the sum over rows of each item, in as many elements for the first round, and two for the second."""
        lane, chunk, chunk_rows, rows = self.where
        sums = Place(self.ring, lane, chunk, 0, chunk_rows, rows, sum_rows=True)
        cases = []
        for item in range(len(self.x)):
            messages, result = lift3(self.place, self.keys, item, item % 3, self.bits(item), sums)
            want = [sum(sum(column) & 1 for column in zip(*self.bits(item))) & self.ring.mask]
            require(self.ring.add(*result) == want, "a sum of lifts is not that of the bits")
            counts = [len(elements) for _, _, _, elements in messages]
            require(counts == [rows, 1, 1], "a sum of lifts sends two elements in its second round")
            fields = [
                {"round": number, "from": sender, "to": to, "bytes": self.ring.hex(elements)}
                for number, sender, to, elements in messages
            ]
            cases.append({"rotation": item % 3, "messages": fields, "sum": sharing_fields(self.ring, result)})
        place = {"lane": lane, "chunk": chunk, "chunk_rows": chunk_rows, "rows": rows}
        x = [sharing_fields(self.ring, u) for u in self.x]
        return {"ring": self.ring.name} | place | {"x": x, "items": cases}


def lifts(parties, place, keys, bits, first, layers):
    """Messages and components of lifts of one layer, of which the first has number `first` among all lifts: rounds are `layers`."""
    ring, results = place.ring, [None] * len(bits)
    # Lifts of one rotation lie side by side, among four parties too, where roles are the same in all.
    order = sorted(range(len(bits)), key=lambda k: ((first + k) % 3, k))
    sent = {}
    for position, k in enumerate(order):
        if parties == 3:
            messages, results[k] = lift3(place, keys, first + position, (first + k) % 3, bits[k])
            for number, (turn, sender, to, elements) in enumerate(messages):
                name = (turn, sender, to, PARTS3[number])
                sent[name] = sent.get(name, b"") + ring.encode(elements)
        else:
            joint, results[k] = lift4(place, keys, first + position, bits[k])
            for number, elements in enumerate(joint):
                name = (0 if number in FIRST4 else 1, number)
                sent[name] = sent.get(name, b"") + ring.encode(elements)
    fields = []
    for name, data in sorted(sent.items()):
        layer = layers[name[0]]
        if parties == 3:
            _, sender, to, part = name
            fields.append({"layer": layer, "from": sender, "to": to, "part": part, "bytes": data.hex()})
            continue
        number = name[1]
        pair, receiver, _ = rep4.JOINT[number]
        sender, voucher = reversed(pair) if place.chunk % 2 else pair
        use, key = tag("CODE4", number), rep4.pair_key((voucher, receiver))
        code = rep4.code(key, place.lane, use, layer, place.chunk, [data])
        to = {"layer": layer, "to": receiver}
        fields.append(to | {"from": sender, "part": PART4 + number, "bytes": data.hex()})
        fields.append(to | {"from": voucher, "part": 3 * number + 2, "bytes": code.hex()})
    return fields, results


FRAMES = [(0, 0, 1, 1), (2, 1, 9, 9), (1, 6, 100, 67)]


def vectors(parties):
    cases = [Run(parties, ring, items, *frame).case() for ring in (Z32, Z64, Z128) for items in (1, 4) for frame in FRAMES]
    keys = [draw(f"lifts/{parties}/key{c}", 16).hex() for c in range(parties)]
    fields = {"keys": keys}
    if parties == 4:
        pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
        fields["pairs"] = {f"{a}{b}": rep4.pair_key((a, b)).hex() for a, b in pairs}
        return fields | {"cases": cases}
    sums = [Run(parties, ring, 3, *frame).sum_case() for ring in (Z32, Z64) for frame in FRAMES]
    return fields | {"cases": cases, "sums": sums}


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of lifts of bits to integers.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    check = parser.parse_args().check
    all_of_three()
    all_of_four()
    folder = pathlib.Path(__file__).resolve().parent.parent
    files = {f"lifts{parties}.json": vectors(parties) for parties in (3, 4)}
    write_or_check(folder, files, check, "vectors/model/lifts.py")


if __name__ == "__main__":
    main()
