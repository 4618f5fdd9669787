#!/usr/bin/env python3
"""Golden model of truncations among three parties, by which shared integers lose their lowest bits: whole transcripts, and what they show.

One party learns the sum c of an integer x and of what the two others draw, r. The result is floor(c / 2^by) - floor(r / 2^by) + 2^(k-by) u v, with the bits u = not
top(c) and v = top(r): floor(x / 2^by), or one more where the lowest bits of c are less than those of r. Exactly rounded, these bits are shared as well, and compared.

    python3 vectors/model/truncations.py            write the vectors
    python3 vectors/model/truncations.py --check    compare them with what is committed; exit 1 if they differ

Each time it runs, truncations over Z_8 are computed from all shares and all masks: that they are right, and that what a party receives is
uniform, whatever the integer is, given all that this party has.
"""

import argparse
import itertools
import pathlib
from collections import Counter

from common import BITS, Z32, Z64, Z128, Place, Ring
from common import draw, require, sharing_fields, tag, write_or_check

# Numbers of messages: the masked integer, the product that is hidden, a component of the result, bits, and the answer.
TOLD, HIDDEN, RESULT, BITS_TOLD, ANSWER = range(0x200, 0x205)
# What is drawn, by the number of its tag.
MASK, BIT, OWN_HIDE, OTHER_HIDE, COMPONENT, DIGITS = range(6)


def truncate(ring, z, x, by, drawn):
    """Of rotation z: the messages by number, but for digits, the components, the sum, and in which rows the result is one more than the floor."""
    r, s, rho, other, y = (drawn[k] for k in range(5))
    top, up = ring.bits - 1, ring.bits - by
    a = (z + 1) % 3
    told = ring.add(x[a], r)
    v = [value >> top for value in r]
    s = [value & 1 for value in s]
    hidden = ring.add([p & q for p, q in zip(s, v)], rho)
    c = ring.add(told, x[z], x[(z + 2) % 3])
    d = [p ^ 1 ^ value >> top for p, value in zip(s, c)]
    turned = [value * (1 - 2 * bit) & ring.mask for value, bit in zip(rho, d)]
    high = [value >> by for value in c]
    rest = ring.sub(ring.sub(high, ring.scale(1 << up, ring.add(turned, other))), y)
    back = [value * (1 - 2 * bit) & ring.mask for value, bit in zip(hidden, d)]
    answer = ring.add(back, [p & q for p, q in zip(d, v)], other)
    components = [None] * 3
    components[z], components[(z + 2) % 3] = y, rest
    components[a] = ring.sub(ring.scale(1 << up, answer), [value >> by for value in r])
    low = (1 << by) - 1
    more = [(p & low) < (q & low) for p, q in zip(c, r)]
    return {TOLD: told, HIDDEN: hidden, RESULT: rest, BITS_TOLD: d, ANSWER: answer}, components, c, more


def route(z):
    """Sender, receiver and round of each message."""
    a, b = (z + 1) % 3, (z + 2) % 3
    return {TOLD: (a, z, 0), HIDDEN: (a, b, 0), RESULT: (z, b, 1), BITS_TOLD: (z, b, 1), ANSWER: (b, a, 2)}


# ------------------------------------------------------------------------------------------------- all of Z_8

Z8 = Ring("z8", 3)


def all_of_three():
    """What each party receives, given its components and all masks that it has: uniform, for every integer below 2^(k-1)."""
    elements = range(Z8.mask + 1)
    for by, value in itertools.product((1, 2), range(1 << Z8.bits - 1)):
        views = [{}, {}, {}]
        z, a, b = range(3)
        # One bit of s counts; y is the same for all, and the rest of the sharing follows from it.
        for x0, x1, r, s, rho, other in itertools.product((0, 3), (1, 6), elements, (0, 1), elements, elements):
            x = [x0, x1, (value - x0 - x1) & Z8.mask]
            for y in (0, 5):
                drawn = [[r], [s], [rho], [other], [y]]
                messages, components, c, more = truncate(Z8, z, [[u] for u in x], by, drawn)
                require(sum(u[0] for u in components) & Z8.mask == (value >> by) + more[0], "a truncation among three parties")
                # r is under key a; s, rho and y are under key z; other is under key b: a party has its own key and the one before it.
                keys = {z: (s, rho, y, other), a: (r, s, rho, y), b: (r, other)}
                got = {z: (TOLD,), a: (ANSWER,), b: (HIDDEN, BITS_TOLD)}
                for party in range(3):
                    own = (x[party], x[party - 1], *keys[party])
                    seen = tuple(messages[k][0] for k in got[party])
                    views[party].setdefault(own, Counter())[seen] += 1
        for party, messages in ((z, Z8.mask + 1), (a, Z8.mask + 1), (b, 2 * (Z8.mask + 1))):
            for seen in views[party].values():
                require(len(seen) == messages and len(set(seen.values())) == 1, f"what party {party} receives depends on what is shared")
    # Component z + 2 of the result is masked by y, which party b lacks and which is used for nothing else.


# ------------------------------------------------------------------------------------------------------- cases


class Run:
    """A chunk of a run that truncates integers of so many bits."""

    def __init__(self, ring, bits, by, items, digits, lane, chunk, chunk_rows, rows):
        self.ring, self.bits, self.by, self.digits, self.rows = ring, bits, by, digits, rows
        self.where = (lane, chunk, chunk_rows, rows)
        self.x = []
        for k in range(items):
            name = f"truncations/{ring.name}/{bits}/{by}/{rows}/{k}"
            ends = [0, (1 << bits) - 1, 1 << bits - 1]
            drawn = [value & (1 << bits) - 1 for value in ring.values(name, rows)]
            value = (ends + drawn)[:rows] if rows > len(ends) else drawn
            others = [ring.values(f"{name}/u{c}", rows) for c in range(2)]
            self.x.append([*others, ring.sub(value, ring.add(*others))])
        self.keys = [draw(f"truncations/key{c}", 16) for c in range(3)]
        self.place = Place(ring, lane, chunk, 0, chunk_rows, rows)
        self.of_bits = Place(BITS, lane, chunk, 0, chunk_rows, rows)

    def case(self):
        ring, items = self.ring, range(len(self.x))
        # Those of one rotation lie side by side.
        order = sorted(items, key=lambda k: (k % 3, k))
        sent, results, floors = {}, [None] * len(self.x), [None] * len(self.x)
        for position, k in enumerate(order):
            z, x = k % 3, self.x[k]
            under = {MASK: (z + 1) % 3, BIT: z, OWN_HIDE: z, OTHER_HIDE: (z + 2) % 3, COMPONENT: z}
            drawn = [self.place.stream(self.keys[c], tag("TRUNCATE3", use), position) for use, c in under.items()]
            messages, results[k], c, more = truncate(ring, z, x, self.by, drawn)
            value = ring.add(*x)
            require(all(v < 1 << ring.bits - 1 for v in value), "an integer that is too long")
            floors[k] = [v >> self.by for v in value]
            require(ring.add(*results[k]) == [f + m for f, m in zip(floors[k], more)], "neither the floor nor one more")
            for number, (sender, to, turn) in route(z).items():
                columns = sent.setdefault((turn, sender, to, number), ([], []))
                if number != BITS_TOLD:
                    columns[0].append(ring.encode(messages[number]))
                    continue
                columns[0].append(BITS.encode(messages[number] + [0] * (-self.rows % 8)))
                for bit in range(self.by if self.digits else 0):
                    own = self.of_bits.stream(self.keys[z], tag("TRUNCATE3", DIGITS), position * self.by + bit)
                    other = [v >> bit & 1 ^ m for v, m in zip(c, own)]
                    columns[1].append(BITS.encode(other + [0] * (-self.rows % 8)))
        fields = []
        for (turn, sender, to, number), (first, then) in sorted(sent.items()):
            data = b"".join(first + then).hex()
            fields.append({"layer": turn, "from": sender, "to": to, "part": number, "bytes": data})
        lane, chunk, chunk_rows, rows = self.where
        place = {"lane": lane, "chunk": chunk, "chunk_rows": chunk_rows, "rows": rows}
        x = [sharing_fields(ring, u) for u in self.x]
        result = {"floors": [ring.hex(f) for f in floors]} if self.digits else {"results": [sharing_fields(ring, u) for u in results]}
        return {"ring": ring.name, "bits": self.bits, "by": self.by} | place | {"x": x, "messages": fields} | result


FRAMES = [(0, 0, 1, 1), (2, 1, 9, 9), (1, 6, 100, 19)]


def vectors():
    cases, exact = [], []
    for ring in (Z32, Z64, Z128):
        for bits, by in ((7, 2), (20, 13), (ring.bits - 1, ring.bits - 6)):
            for number, frame in enumerate(FRAMES):
                items = (1, 4, 3)[number]
                cases.append(Run(ring, bits, by, items, False, *frame).case())
                if ring != Z128 and by < 20:
                    exact.append(Run(ring, bits, by, items, True, *frame).case())
    keys = [draw(f"truncations/key{c}", 16).hex() for c in range(3)]
    return {"keys": keys, "cases": cases, "exact": exact}


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of truncations of integers among three parties.")
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    check = parser.parse_args().check
    all_of_three()
    folder = pathlib.Path(__file__).resolve().parent.parent
    write_or_check(folder, {"truncations3.json": vectors()}, check, "vectors/model/truncations.py")


if __name__ == "__main__":
    main()
