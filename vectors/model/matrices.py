#!/usr/bin/env python3
"""Golden model of products of matrices of shares, among three and four parties: whole transcripts, and what they show.

Each element of a product is a sum of products of elements, has one mask, and is sent once, whatever the number of terms. A matrix has d columns of n rows (X) and is
multiplied by one of d rows (X W), or, transposed, by one of n rows (X^T W).

    python3 vectors/model/matrices.py            write the vectors
    python3 vectors/model/matrices.py --check    compare them with what is committed; exit 1 if they differ

Each time it runs, products over Z_2 are computed from all shares and all masks (among four parties those of two elements from some shares), and products over Z_4 from some
shares and all masks: that they are right, and that what a party receives is uniform, whatever the matrices are, given all that this party has. The same program finds the leaks of products that look alike: without masks, and
with one mask for two elements.
"""

import argparse
import itertools
import pathlib
from collections import Counter

from common import Z32, Z64, Z128, Place, Ring
from common import draw, require, sharing_fields, tag, write_or_check
from rep3 import product_tag
from rep4 import JOINT, code, joint_tag, pair_key

# A matrix is a list of columns, a column a list of elements. A shared one is a list of components, each of them a matrix.


def transposed(matrix):
    return [list(row) for row in zip(*matrix)]


def times(ring, left, right):
    """The product, as it is defined: column j of it has sums over k of column k times element k of column j."""
    rows = range(len(left[0]))
    return [[sum(of[row] * b for of, b in zip(left, column)) & ring.mask for row in rows] for column in right]


def plus(ring, *matrices):
    return [ring.add(*columns) for columns in zip(*matrices)]


def minus(ring, a, b):
    return [ring.sub(x, y) for x, y in zip(a, b)]


# -------------------------------------------------------------------------------------------- protocols


def three(ring, left, right, rho):
    """What each party computes and sends: component i of the product is that of party i. rho[i] is drawn under the key of parties i and i + 1."""
    parts = []
    for i in range(3):
        term = plus(ring, times(ring, left[i], plus(ring, right[i], right[i - 1])), times(ring, left[i - 1], right[i]))
        parts.append(minus(ring, plus(ring, term, rho[i]), rho[i - 1]))
    return parts


def pair_terms(k):
    """The components whose products the pair of joint message k adds up."""
    (s, _), r, o = JOINT[k]
    if k < 4:
        x, y = (s + 2) % 4, (s + 3) % 4
        return [(x, x), (y, x), (x, y)]
    return [(r, o), (o, r)]


def four(ring, left, right, rho):
    """The six joint messages, and the components of the product. rho[k] is drawn under the key that the receiver of message k lacks."""
    sent, parts = [], [None] * 4
    for k, (_, r, o) in enumerate(JOINT):
        m = minus(ring, plus(ring, *(times(ring, left[a], right[b]) for a, b in pair_terms(k))), rho[k])
        sent.append(m)
        for c, matrix in ((r, rho[k]), (o, m)):
            parts[c] = matrix if parts[c] is None else plus(ring, parts[c], matrix)
    return sent, parts


# ---------------------------------------------------------------------------------------------- what is seen


class Seen:
    """What a party receives of a product among so many parties."""

    def __init__(self, ring, count, shape, masked=True, one_mask=False):
        self.ring, self.count, self.masked, self.one_mask = ring, count, masked, one_mask
        self.rows, self.inner, self.columns = shape

    def lacks(self, party, mask):
        return party not in (mask, (mask + 1) % 3) if self.count == 3 else JOINT[mask][1] == party

    def filled(self, elements, rows, columns):
        it = iter(elements)
        return [[next(it) for _ in range(rows)] for _ in range(columns)]

    def messages(self, party, value, own, masks):
        """What it receives, its own components being `own`, all elements of both matrices `value`, and the masks these."""
        ring, inner, columns, rows = self.ring, self.inner, self.columns, self.rows
        held = [(party - 1) % 3, party] if self.count == 3 else [c for c in range(4) if c != party]
        of = [None] * self.count
        for c, elements in zip(held, own):
            of[c] = elements
        (lacks,) = (c for c in range(self.count) if of[c] is None)
        of[lacks] = [(v - sum(rest)) & ring.mask for v, *rest in zip(value, *own)]
        left = [self.filled(u[: inner * rows], rows, inner) for u in of]
        right = [self.filled(u[inner * rows :], inner, columns) for u in of]
        if self.one_mask:
            masks = [[rho[0]] * len(rho) for rho in masks]
        rho = [self.filled(rho if self.masked else [0] * len(rho), rows, columns) for rho in masks]
        if self.count == 3:
            parts = three(ring, left, right, rho)
            got = [parts[party - 1]]
        else:
            sent, parts = four(ring, left, right, rho)
            got = [m for m, (_, r, _) in zip(sent, JOINT) if r == party]
        want = times(ring, plus(ring, *left), plus(ring, *right))
        require(plus(ring, *parts) == want, "a product of matrices among three or four parties")
        return tuple(element for matrix in got for column in matrix for element in column)

    def views(self, party, own, known, value):
        """How often it receives what, over all masks that it lacks."""
        elements = self.rows * self.columns
        missing = [mask for mask in range(len(known)) if self.lacks(party, mask)]
        found = Counter()
        for drawn in itertools.product(range(self.ring.mask + 1), repeat=elements * len(missing)):
            masks = list(known)
            for at, mask in enumerate(missing):
                masks[mask] = list(drawn[at * elements : (at + 1) * elements])
            found[self.messages(party, value, own, masks)] += 1
        return found

    def shows(self, party, every_own):
        """Whether what it receives is not uniform, and whether it depends on the matrices: for some of its components."""
        ring, elements = self.ring, self.rows * self.columns
        size = self.inner * (self.rows + self.columns)
        number = 3 if self.count == 3 else 6
        uneven, depends = False, False
        for own in self.every_own(size) if every_own else self.some_own(size):
            known = [ring.values(f"matrices/seen/mask{k}", elements) for k in range(number)]
            all_views = [self.views(party, own, known, value) for value in itertools.product(range(ring.mask + 1), repeat=size)]
            for found in all_views:
                received = len(next(iter(found)))
                uneven |= len(found) != (ring.mask + 1) ** received or len(set(found.values())) != 1
                depends |= found != all_views[0]
        return uneven, depends

    def every_own(self, size):
        """All components that a party may have."""
        each = list(itertools.product(range(self.ring.mask + 1), repeat=size))
        return itertools.product(each, repeat=self.count - 1)

    def some_own(self, size):
        """Two of them, drawn."""
        name = f"matrices/seen/{self.count}/{self.rows}/{self.inner}"
        return [[self.ring.values(f"{name}/{at}/{c}", size) for c in range(self.count - 1)] for at in range(2)]


class Plain2(Ring):
    """Integers modulo 2, which fill no bytes."""

    def padded(self, rows):
        return rows


def what_is_seen():
    z2, z4 = Plain2("z2", 1), Ring("z4", 2)
    # One term, two terms in one element, and two elements with a common factor.
    for shape, count in itertools.product(((1, 1, 1), (1, 2, 1), (2, 1, 1)), (3, 4)):
        for party in range(count):
            of = f"what party {party} of {count} receives"
            # Four parties have 2^12 components of two terms, and there are 4^4 masks of two messages and elements.
            every = count == 3 or shape == (1, 1, 1)
            require(Seen(z2, count, shape).shows(party, every) == (False, False), f"{of} depends on what is shared")
            if count == 3 or party < 2:
                require(Seen(z4, count, shape).shows(party, False) == (False, False), f"{of} modulo 4 depends on what is shared")
            require(Seen(z2, count, shape, masked=False).shows(party, False) == (True, True), f"{of} has no masks, which is not found")
            if shape == (2, 1, 1):
                require(Seen(z2, count, shape, one_mask=True).shows(party, False) == (True, True), f"{of} has one mask twice, which is not found")


# ------------------------------------------------------------------------------------------------------- cases


class Case:
    """A product of shared matrices, `rows` by `left` times `right` columns. Of a public right matrix all components but one are zero."""

    def __init__(self, parties, ring, shape, is_transposed, public, rotation, lane, chunk):
        self.parties, self.ring, self.shape, self.transposed = parties, ring, shape, is_transposed
        self.public, self.rotation, self.lane, self.chunk = public, rotation, lane, chunk
        rows, left, right = shape
        name = f"matrices{parties}/{ring.name}/{rows}/{left}/{right}/{is_transposed}/{public}"
        self.x = self.shared(f"{name}/x", rows, left, False)
        self.w = self.shared(f"{name}/w", rows if is_transposed else left, right, public)

    def shared(self, name, rows, columns, public):
        ring, count = self.ring, self.parties
        value = [ring.values(f"{name}/{j}", rows) for j in range(columns)]
        if public:
            zero = [[0] * rows for _ in range(columns)]
            return [value] + [zero] * (count - 1)
        others = [[ring.values(f"{name}/{j}/u{c}", rows) for j in range(columns)] for c in range(count - 1)]
        return [*others, minus(ring, value, plus(ring, *others))]

    def masks(self, key, use):
        """A mask for each element: of a column of rows as many counters as it has blocks, of elements that all rows share one each."""
        rows, left, right = self.shape
        place = Place(self.ring, self.lane, self.chunk, 0, rows, rows, sum_rows=self.transposed)
        if self.transposed:
            return [[place.stream(key, use, j * left + i)[0] for i in range(left)] for j in range(right)]
        return [place.stream(key, use, j) for j in range(right)]

    def pieces(self, matrix):
        """The messages of a matrix: one for each column of rows, or one for all that the rows share."""
        columns = [self.ring.encode(column) for column in matrix]
        return [b"".join(columns)] if self.transposed else columns

    def messages3(self, left, keys):
        use = product_tag(self.ring, False)
        parts = three(self.ring, left, self.w, [self.masks(key, use) for key in keys])
        sent = []
        for i, part in enumerate(parts):
            sent += [(i, (i + 1) % 3, number, data) for number, data in enumerate(self.pieces(part))]
        return sent, parts

    def messages4(self, left, keys):
        rho = [self.masks(keys[r], joint_tag(k, False)) for k, (_, r, _) in enumerate(JOINT)]
        joint, parts = four(self.ring, left, self.w, rho)
        sent = []
        for k, ((first, second), receiver, _) in enumerate(JOINT):
            sender, backup = (first, second) if self.rotation % 2 == 0 else (second, first)
            pieces = self.pieces(joint[k])
            sent += [(sender, receiver, 6 * number + k, data) for number, data in enumerate(pieces)]
            hashed = code(pair_key((backup, receiver)), self.lane, tag("CODE4", k), 0, self.chunk, pieces)
            sent.append((backup, receiver, 6 * len(pieces) + k, hashed))
        return sent, parts

    def fields(self, keys):
        ring, shape = self.ring, dict(zip(("rows", "left", "right"), self.shape))
        left = [transposed(u) for u in self.x] if self.transposed else self.x
        sent, parts = (self.messages3 if self.parties == 3 else self.messages4)(left, keys)
        want = times(ring, plus(ring, *left), plus(ring, *self.w))
        require(plus(ring, *parts) == want, "the components of a product do not add up to it")
        columns = lambda of: [sharing_fields(ring, list(u)) for u in zip(*of)]
        place = {"transposed": self.transposed, "public": self.public, "rotation": self.rotation, "lane": self.lane, "chunk": self.chunk}
        messages = [{"from": a, "to": b, "part": part, "bytes": data.hex()} for a, b, part, data in sorted(sent)]
        return {"ring": ring.name} | shape | place | {"x": columns(self.x), "w": columns(self.w), "messages": messages, "product": columns(parts)}


SHAPES = [((1, 1, 1), 0, 1), ((5, 3, 2), 2, 1), ((2, 4, 3), 1, 6)]


def vectors(parties):
    keys = [draw(f"matrices{parties}/key{c}", 16) for c in range(parties)]
    cases = []
    for ring in (Z32, Z64, Z128):
        for number, (shape, lane, chunk) in enumerate(SHAPES):
            for is_transposed in (False, True):
                cases.append(Case(parties, ring, shape, is_transposed, False, number, lane, chunk).fields(keys))
        cases.append(Case(parties, ring, (3, 2, 2), False, True, 1, 0, 1).fields(keys))
    fields = {"keys": [key.hex() for key in keys]}
    if parties == 4:
        fields["pairs"] = {f"{a}{b}": pair_key((a, b)).hex() for a in range(4) for b in range(a + 1, 4)}
    return fields | {"cases": cases}


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of products of matrices.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    check = parser.parse_args().check
    what_is_seen()
    folder = pathlib.Path(__file__).resolve().parent.parent
    write_or_check(folder, {f"matrices{parties}.json": vectors(parties) for parties in (3, 4)}, check, "vectors/model/matrices.py")


if __name__ == "__main__":
    main()
