#!/usr/bin/env python3
"""Golden model of intersections of the keys of two: digests, rows of a store of keys, its encoding, tags, and what is found.

    python3 vectors/model/psi.py            write the vectors
    python3 vectors/model/psi.py --check    compare them with what is committed; exit 1 if they differ
    python3 vectors/model/psi.py --asked    how many keys a store has room for: by a count of equations for several widths, and by rows that are independent

From: Rindal, Schoppmann, VOLE-PSI: Fast OPRF and Circuit-PSI from Vector-OLE, EUROCRYPT 2021; Raghuraman, Rindal, Blazing Fast PSI from Improved OKVS and
Subfield VOLE, CCS 2022 (expansion of stores of weight 3); Gueron, Langley, Lindell, RFC 8452 (2019) (the field).
"""

import argparse
import hashlib
import math
import pathlib
from dataclasses import dataclass

from common import draw, prf_block, require, write_or_check
from ot import dot
from silent import ONE, Hash, blocks, le, numbers, total

SALT, ENCODE = 0x2100, 0x2101
SEEDS, KEYS_OF_A_BIN, SECURITY, MOST_LEFT = 8, 1 << 14, 40, 512
VALUE, TAG = b"psi1", b"psi2"


# ------------------------------------------------------------------------------------------------ stores


def expansions():
    """Of 2^0, 2^1, ... keys, in units of 2^-16, rounded up: the fit of Raghuraman and Rindal for rows of weight 3 and 40 bits."""
    log = math.log2(3)
    c = 0.093 * log**3 - 1.01 * log**2 + 2.925 * log - 0.133
    return [math.ceil((1.223 + (SECURITY + 9.2) / 2 ** (0.555 * k + c)) * 65536) for k in range(16)]


EXPANSIONS = expansions()


def capacity(keys, bins):
    """Keys that a bin does not exceed but with a probability of 2^-40 over all bins (Bernstein)."""
    if bins == 1:
        return keys
    mean = -(-keys // bins)
    exponent = (SECURITY + (bins - 1).bit_length()) * 710
    third = -(-exponent // 3)
    variance = -(-mean * (bins - 1) // bins)
    root = math.isqrt(third * third + (2 * variance * exponent << 10)) + 1
    return mean + -(-(third + root) // (1 << 10))


@dataclass(frozen=True)
class Okvs:
    bins: int
    sparse: int
    dense: int

    @staticmethod
    def of(keys):
        bins = max(1, -(-keys // KEYS_OF_A_BIN))
        most = capacity(max(1, keys), bins)
        log = most.bit_length() - 1
        above, below = EXPANSIONS[log : log + 2]
        expansion = above - ((above - below) * (most - (1 << log)) >> log)
        sparse = -(-most * expansion * 101 // (100 << 16))
        dense = 1
        while sparse**dense <= 1 << SECURITY:
            dense += 1
        return Okvs(bins, sparse, dense)

    @property
    def width(self):
        return self.sparse + self.dense

    @property
    def columns(self):
        return self.bins * self.width

    def row(self, block):
        """The bin, and three different columns of it, each of those that are still free, in order."""
        w = [block >> 32 * k & 0xFFFFFFFF for k in range(4)]
        columns = []
        for k in range(3):
            number = w[k + 1] * (self.sparse - k) >> 32
            for other in sorted(columns):
                number += number >= other
            columns.append(number)
        return w[0] * self.bins >> 32, columns


def digest(salt, key):
    return hashlib.sha256(VALUE + salt + key).digest()


def parts(of):
    return numbers(of)


def powers(factor, count):
    """rho, rho^2, ..."""
    out, power = [], factor
    for _ in range(count):
        out.append(power)
        power = dot(power, factor)
    return out


def product(okvs, row, factor, columns):
    """<row, columns>."""
    bin_, sparse = row
    own = columns[bin_ * okvs.width :][: okvs.width]
    return total(own[at] for at in sparse) ^ total(dot(p, d) for p, d in zip(powers(factor, okvs.dense), own[okvs.sparse :]))


def rows(okvs, seed, digests):
    h = Hash(seed)
    return [okvs.row(h(parts(of)[1])) for of in digests]


# ---------------------------------------------------------------------------------------------- encoding


def inverse(a):
    product_, square = ONE, a
    for _ in range(127):
        square = dot(square, square)
        product_ = dot(product_, square)
    return product_


def peel(keys):
    """Columns that are taken, with their keys, in order; and the keys that are left."""
    own = {}
    for k, columns in keys.items():
        for at in columns:
            own.setdefault(at, set()).add(k)
    listed = sorted(at for at, of in own.items() if len(of) == 1)
    taken = []
    for at in listed:
        if len(own[at]) != 1:
            continue
        (k,) = own[at]
        taken.append((at, k))
        for other in keys[k]:
            own[other].remove(k)
            if len(own[other]) == 1:
                listed.append(other)
    return taken, sorted(keys.keys() - {k for _, k in taken})


def solve(okvs, columns, keys):
    """Solves a bin, whose columns were drawn: `keys` has sparse columns, value and factor of each. None if there is no solution."""
    columns = list(columns)
    taken, left = peel({k: of[0] for k, of in keys.items()})
    if len(left) > MOST_LEFT:
        return None
    sums, equations = [], []
    for k in left:
        sparse, value, factor = keys[k]
        bits, dense = set(sparse), powers(factor, okvs.dense)
        for pivot, other in sums:
            if pivot in bits:
                bits ^= other[0]
                dense = [x ^ y for x, y in zip(dense, other[1])]
                value ^= other[2]
        if bits:
            sums.append((min(bits), (bits, dense, value)))
        else:
            equations.append((dense, value))
    solved = []
    for dense, value in equations:
        for pivot, (other, theirs) in solved:
            factor = dense[pivot]
            dense = [x ^ dot(factor, y) for x, y in zip(dense, other)]
            value ^= dot(factor, theirs)
        pivot = next((at for at, x in enumerate(dense) if x), None)
        if pivot is None:
            return None
        factor = inverse(dense[pivot])
        solved.append((pivot, ([dot(factor, x) for x in dense], dot(factor, value))))
    for pivot, (dense, value) in reversed(solved):
        others = enumerate(zip(dense, columns[okvs.sparse :]))
        columns[okvs.sparse + pivot] = value ^ total(dot(x, d) for at, (x, d) in others if at != pivot)

    def rest(dense, value):
        return value ^ total(dot(x, d) for x, d in zip(dense, columns[okvs.sparse :]))

    for pivot, (bits, dense, value) in reversed(sums):
        columns[pivot] = rest(dense, value) ^ total(columns[at] for at in bits if at != pivot)
    for at, k in reversed(taken):
        sparse, value, factor = keys[k]
        columns[at] = rest(powers(factor, okvs.dense), value) ^ total(columns[other] for other in sparse if other != at)
    return columns


def encode(okvs, digests, stream):
    """The seed, and columns whose product with the row of each key is its value. `stream` has the blocks of the call."""
    require(len(set(digests)) == len(digests), "two keys are equal")
    for seed in stream[:SEEDS]:
        columns, all_rows = list(stream[SEEDS:]), rows(okvs, le(seed), digests)
        for bin_ in range(okvs.bins):
            own = {k: (row[1], *parts(digests[k])) for k, row in enumerate(all_rows) if row[0] == bin_}
            solution = solve(okvs, columns[bin_ * okvs.width :][: okvs.width], own)
            if solution is None:
                break
            columns = columns[: bin_ * okvs.width] + solution + columns[(bin_ + 1) * okvs.width :]
        else:
            for row, of in zip(all_rows, digests):
                value, factor = parts(of)
                require(product(okvs, row, factor, columns) == value, "a key is not encoded")
            return seed, columns
    return None


def tags(okvs, seed, digests, table, offset, w):
    """In the order of the keys."""
    out = []
    for row, of in zip(rows(okvs, seed, digests), digests):
        value, factor = parts(of)
        x = product(okvs, row, factor, table) ^ dot(value, offset) ^ w
        out.append(hashlib.sha256(TAG + le(x) + of).digest()[:16])
    return out


# ------------------------------------------------------------------------------------------------- cases


def case(name, okvs, lane, chunk, first, counts, common):
    """Keys of both, of which the first `common` are the same."""
    name = f"psi/{name}"
    shared = [draw(f"{name}/common/{k}", 32) for k in range(common)]
    sets = [shared + [draw(f"{name}/{end}/{k}", 32) for k in range(common, count)] for end, count in enumerate(counts)]
    offset = numbers(draw(f"{name}/offset", 16))[0] | 1
    key, own = draw(f"{name}/common", 16), draw(f"{name}/own", 16)
    salt = prf_block(key, SALT, lane, first, chunk)
    digests = [[digest(salt, key) for key in keys] for keys in sets]
    b, c = (numbers(draw(f"{name}/{of}", 16 * okvs.columns)) for of in "bc")
    a = [x ^ dot(y, offset) for x, y in zip(b, c)]
    stream = [int.from_bytes(prf_block(own, ENCODE, lane, first + k, chunk), "little") for k in range(SEEDS + okvs.columns)]
    encoded = encode(okvs, digests[0], stream)
    require(encoded is not None, "no seed is good")
    seed, columns = encoded
    sent = [x ^ y for x, y in zip(columns, c)]
    w = numbers(draw(f"{name}/w", 32))
    shifted = [x ^ dot(y, offset) for x, y in zip(b, sent)]
    theirs = sorted(tags(okvs, le(seed), digests[1], shifted, offset, total(w)))
    mine = tags(okvs, le(seed), digests[0], a, 0, total(w))
    found = bytes(tag in theirs for tag in mine)
    require(found == bytes(key in sets[1] for key in sets[0]), "something else is found")
    return {
        "bins": okvs.bins,
        "sparse": okvs.sparse,
        "dense": okvs.dense,
        "lane": lane,
        "chunk": chunk,
        "first": first,
        "offset": le(offset).hex(),
        "common": key.hex(),
        "own": own.hex(),
        "receiver_keys": b"".join(sets[0]).hex(),
        "sender_keys": b"".join(sets[1]).hex(),
        "a": blocks(a).hex(),
        "b": blocks(b).hex(),
        "c": blocks(c).hex(),
        "w": blocks(w).hex(),
        "receiver_digests": b"".join(digests[0]).hex(),
        "sender_digests": b"".join(digests[1]).hex(),
        "seed_number": stream.index(seed),
        "seed": le(seed).hex(),
        "sent": blocks(sent).hex(),
        "tags": b"".join(theirs).hex(),
        "found": sum(bit << k for k, bit in enumerate(found)).to_bytes(-(-len(found) // 8), "little").hex(),
    }


# ------------------------------------------------------------------------------- what a store has room for


def most_keys(columns, width):
    """Keys that fit so many columns of `width` bits, if 2^80 hashes are tried: n' (width - 80 + log2 n') = width * columns."""
    low, high = 1, 80 * columns
    while high - low > 1:
        keys = (low + high) // 2
        fits = keys * (width - 80 + keys.bit_length() - 1) <= width * columns
        low, high = (keys, high) if fits else (low, keys)
    return low


def independent(okvs, count):
    """How many of so many random keys have rows over the sparse columns of one bin that are independent, whatever the width of hashes is."""
    basis, rank = {}, 0
    for block in numbers(draw("asked", 16 * count)):
        row = sum(1 << at for at in okvs.row(block)[1])
        while row and row.bit_length() in basis:
            row ^= basis[row.bit_length()]
        if row:
            basis[row.bit_length()] = row
            rank += 1
    return rank


def check_asked():
    for keys in [1, 1 << 10, 1 << 14, 1_000_000]:
        columns = Okvs.of(keys).columns
        said = ", ".join(f"{most_keys(columns, width) / keys:.2f} n of {width} bits" for width in (128, 256, 512))
        print(f"{keys} keys: {columns / keys:.2f} n columns, room for {said}")
        require(all(most_keys(columns, width) >= columns for width in (128, 256, 512, 1 << 20)), "a store has room for fewer keys than columns")
    for keys, factors in [(1 << 10, (1.25, 3)), (1 << 14, (1.2,))]:
        okvs = Okvs.of(keys)
        for factor in factors:
            rank = independent(okvs, int(factor * keys))
            print(f"{keys} keys: of {factor} n random ones {rank / keys:.3f} n have independent rows in {okvs.sparse} sparse columns")
            require(rank > 1.15 * keys, "few rows are independent")


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of intersections.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--asked", action="store_true", help="how many keys a store has room for")
    args = parser.parse_args()
    if args.asked:
        return check_asked()
    sizes = [0, 1, 2, 3, 4, 7, 100, 1 << 10, 16_383, 16_384, 16_385, 50_000, 1_000_000, 10_000_000]
    stores = [{"keys": keys, **vars(Okvs.of(keys))} for keys in sizes]
    cases = [
        case("a key", Okvs.of(1), 0, 1, 5, (1, 1), 1),
        case("default", Okvs.of(30), 1, 0x01020304, 1 << 33, (30, 40), 11),
        # Stores that are so small that keys are left over, and dense columns are solved for; some seeds are not good.
        case("short", Okvs(1, 22, 2), 2, 9, 0, (20, 10), 4),
        case("tight", Okvs(1, 12, 2), 0, 5, 3, (14, 5), 3),
        case("bins", Okvs(3, 11, 3), 0, 2, 77, (24, 3), 2),
        case("dense", Okvs(1, 3, 9), 0, 3, 0, (9, 9), 9),
        case("disjoint", Okvs.of(12), 0, 4, 0, (12, 9), 0),
    ]
    require(any(of["seed_number"] > 0 for of in cases), "no seed fails")
    folder = pathlib.Path(__file__).resolve().parent.parent
    write_or_check(folder, {"psi.json": {"stores": stores, "cases": cases}}, args.check, "vectors/model/psi.py")


if __name__ == "__main__":
    main()
