#!/usr/bin/env python3
"""Golden model of what opens masked values: probabilistic truncation of four parties, and words of bits as integers, of three and of four.

What is opened, and what comes out, follows from the keys and the inputs alone: no products are computed here.

    python3 vectors/model/masked.py            write the vectors
    python3 vectors/model/masked.py --check    compare them with what is committed; exit 1 if they differ

From: Dalskov, Escudero, Keller, Fantastic Four, USENIX Security 2021 (truncation); Escudero, Ghosh, Keller, Rachuri,
Scholl, Improved Primitives for MPC over Mixed Arithmetic-Binary Circuits, CRYPTO 2020 (random values and their bits).
"""

import argparse
import hashlib
import pathlib

import rep4
from common import Z64, Z128, Place
from common import draw, pieces, require, sharing_fields, tag, write_or_check

SESSION = bytes([0x5E]) * 32
# Labels of digests, by component.
LABEL = 0x9000
# Numbers of messages, three for each component.
NUMBER = 0x100


class Run:
    """One chunk of a run on one shared input."""

    def __init__(self, parties, ring, what, bits, lane, chunk, chunk_rows, rows):
        self.parties, self.ring, self.bits, self.rows = parties, ring, bits, rows
        self.lane, self.chunk, self.chunk_rows = lane, chunk, chunk_rows
        name = f"masked/{parties}/{ring.name}/{what}/{bits}/{rows}"
        drawn = [value & (1 << bits) - 1 for value in ring.values(f"{name}/value", rows)]
        ends = [0, (1 << bits) - 1, 1 << bits - 1]
        self.value = (ends + drawn)[:rows] if rows > len(ends) else drawn
        others = [ring.values(f"{name}/u{c}", rows) for c in range(parties - 1)]
        self.x = [*others, ring.sub(self.value, ring.add(*others))]
        place = Place(ring, lane, chunk, 0, chunk_rows, rows)
        use = tag("RAND3" if parties == 3 else "RAND4")
        self.mask = [place.stream(draw(f"masked/{parties}/key{c}", 16), use, 0) for c in range(parties)]

    def missing(self, party):
        return (party + 1) % 3 if self.parties == 3 else party

    def messages(self, components):
        """Who lacks a component gets it from the party before, and its digest from the one after."""
        messages = []
        for to in range(self.parties):
            c = self.missing(to)
            data = self.ring.encode(components[c])
            where = [(LABEL + c, 2), (0, 2), (self.lane, 2), (self.chunk, 4), (self.rows, 4)]
            where = b"".join(value.to_bytes(size, "little") for value, size in where)
            digest = hashlib.sha256(SESSION + where + pieces(data)).digest()
            for sender, k, sent in ((-1, 0, data), (1, 1, digest)):
                sender = (to + sender) % self.parties
                messages.append({"from": sender, "to": to, "part": NUMBER + 3 * c + k, "bytes": sent.hex()})
        return messages

    def fields(self):
        place = {"lane": self.lane, "chunk": self.chunk, "chunk_rows": self.chunk_rows, "rows": self.rows}
        x = {"x": sharing_fields(self.ring, self.x)}
        return {"ring": self.ring.name, "bits": self.bits} | place | x

    def truncation(self, by):
        """x and the mask, both moved up so that x has one bit less than the ring, are opened; R is what its low bits say."""
        ring, up = self.ring, self.ring.bits - 1 - self.bits
        parts = [ring.scale(1 << up, ring.add(x, r)) for x, r in zip(self.x, self.mask)]
        opened = ring.add(*parts)
        low = (1 << by) - 1
        result = [x + (low - (c >> up & low)) >> by for x, c in zip(self.value, opened)]
        require(all(0 <= y - (x >> by) <= 1 for x, y in zip(self.value, result)), "neither the floor nor one more")
        return self.fields() | {"by": by, "messages": self.messages(parts), "result": ring.hex(result)}

    def word(self):
        """The low bits of x, and the mask, are added and opened; the mask is subtracted."""
        ring = self.ring
        opened = ring.add(self.value, *self.mask)
        zero = [0] * self.rows
        parts = [ring.sub(opened if c == 0 else zero, mask) for c, mask in enumerate(self.mask)]
        require(ring.add(*parts) == self.value, "the word is not what its bits say")
        return self.fields() | {"opened": ring.hex(opened), "result": sharing_fields(ring, parts)}


FRAMES = [(0, 0, 1, 1), (2, 1, 9, 9), (1, 6, 100, 67)]


def vectors(parties):
    truncations, words = [], []
    for ring in (Z64, Z128):
        for bits, by in ((2, 1), (40, 13), (ring.bits - 1, ring.bits - 2)) if parties == 4 else ():
            for frame in FRAMES:
                truncations.append(Run(parties, ring, "truncation", bits, *frame).truncation(by))
        for bits in (1, 40, ring.bits):
            for frame in FRAMES:
                words.append(Run(parties, ring, "word", bits, *frame).word())
    keys = [draw(f"masked/{parties}/key{c}", 16).hex() for c in range(parties)]
    fields = {"keys": keys}
    if parties == 4:
        pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
        fields["pairs"] = {f"{a}{b}": rep4.pair_key((a, b)).hex() for a, b in pairs}
    return fields | ({"truncations": truncations} if truncations else {}) | {"words": words}


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of openings of masked values.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    check = parser.parse_args().check
    folder = pathlib.Path(__file__).resolve().parent.parent
    files = {f"masked{parties}.json": vectors(parties) for parties in (3, 4)}
    write_or_check(folder, files, check, "vectors/model/masked.py")


if __name__ == "__main__":
    main()
