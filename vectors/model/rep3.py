#!/usr/bin/env python3
"""Golden model of three-party replicated secret sharing: whole transcripts from fixed keys.

Plain Python integers and an AES written from FIPS 197; no code is shared with the Rust crates, so that the
two can be held against each other byte by byte.

    python3 vectors/model/rep3.py            write the vectors
    python3 vectors/model/rep3.py --check    compare them with what is committed; exit 1 if they differ

From: Araki, Furukawa, Lindell, Nof, Ohara, High-Throughput Semi-Honest Secure Three-Party Computation with an
Honest Majority, CCS 2016, in CNF form; the (x, a) format of bits is theirs, that of rings follows their
section on rings. What every field means is said in vectors/README.md.
"""

import argparse
import pathlib

import keys
from common import BITS, FAMILIES, RAGGED, Z64, Z128, Place
from common import draw, prf_block, require, sharing_fields, tag, write_or_check

PARTIES = range(3)


def zero_sharing(place, kappa, use, item):
    """alpha_i = rho_i - rho_(i-1), rho_i drawn under kappa_i; the three add up to zero."""
    rho = [place.stream(kappa[i], use, item) for i in PARTIES]
    return [place.ring.sub(rho[i], rho[i - 1]) for i in PARTIES]


# --------------------------------------------------------------------------------------------- protocol
# A sharing is [u_0, u_1, u_2], v = u_0 + u_1 + u_2; party i holds u_i (own) and u_(i-1) (previous).


def deal(ring, label, rows):
    """A sharing of a drawn value, zero in the elements that fill the last byte."""
    value, *u = (ring.values(f"{label}/{part}", rows) for part in ("value", "u0", "u1"))
    return [*u, ring.sub(value, ring.add(*u))]


def local_product(ring, i, u, w):
    """What party i computes of u * w before it masks."""
    if ring.bits == 1:  # x_i y_i + a_i b_i with x_i = u_(i-1) + u_i, a_i = u_i
        x, y = ring.add(u[i - 1], u[i]), ring.add(w[i - 1], w[i])
        return ring.add(ring.mul(x, y), ring.mul(u[i], w[i]))
    return ring.add(ring.mul(u[i], ring.add(w[i], w[i - 1])), ring.mul(u[i - 1], w[i]))


def product_tag(ring, sum_rows):
    return tag("AND3" if ring.bits == 1 else "SUM3" if sum_rows else "MUL3")


def product(place, kappa, item, pairs):
    """Sum over the pairs of their products: local terms first, one mask, one message."""
    ring, sum_rows = place.ring, place.sum_rows
    alpha = zero_sharing(place, kappa, product_tag(ring, sum_rows), item)
    parts = []
    for i in PARTIES:
        term = ring.add(*(local_product(ring, i, u, w) for u, w in pairs))
        if sum_rows:
            term = [sum(term) & ring.mask]
        parts.append(ring.add(term, alpha[i]))
    clear = ring.add(*(ring.mul(ring.add(*u), ring.add(*w)) for u, w in pairs))
    if sum_rows:
        clear = [sum(clear) & ring.mask]
    require(ring.add(*alpha) == [0] * len(alpha[0]), "a zero sharing does not add up to zero")
    # Elements that fill the last byte are zero in the operands, so this compares them as well.
    require(ring.add(*parts) == clear, "the parts of a product do not add up to it")
    return alpha, parts, clear


def open_to_all(ring, columns):
    """P_i sends u_(i-1) of every column to P_(i+1), who adds what it holds; returns messages and values."""
    messages = [b"".join(ring.encode(u[i - 1]) for u in columns).hex() for i in PARTIES]
    return messages, [ring.hex(ring.add(*u)) for u in columns]


def wolfe(ring, u):
    """The (x_i, a_i) of each party."""
    if ring.bits == 1:
        x, a = [ring.add(u[i - 1], u[i]) for i in PARTIES], list(u)
    else:
        x = [ring.sub(u[i - 1], u[i]) for i in PARTIES]
        a = [ring.sub(ring.scale(-2, u[i - 1]), u[i]) for i in PARTIES]
    value, zero = ring.add(*u), [0] * len(u[0])
    require(ring.add(*x) == zero, "the x_i do not add up to zero")
    require(all(a[i] == ring.sub(x[i - 1], value) for i in PARTIES), "a_i is not x_(i-1) - v")
    return x, a


# ------------------------------------------------------------------------------------------------- cases


def command_case(name, place, kappa, operands, items):
    """One product command: its items in schedule order, the three messages, the opening of the results."""
    ring = place.ring
    case = {"name": name, "tag": product_tag(ring, place.sum_rows), **place.fields(), "sum_rows": place.sum_rows}
    case["operands"] = [sharing_fields(ring, u) for u in operands]
    results, messages, case["items"] = [], [], []
    for item, pairs in enumerate(items):
        alpha, parts, clear = product(place, kappa, item, [(operands[l], operands[r]) for l, r in pairs])
        results.append([place.share(part) for part in parts])
        messages.append(parts)
        case["items"].append(
            {
                "pairs": pairs,
                "counter": place.counter(item),
                "alpha": [ring.hex(a) for a in alpha],
                "parts": [ring.hex(p) for p in parts],
                "components": [ring.hex(u) for u in results[-1]],
                "value": ring.hex(clear),
            }
        )
    case["messages"] = [b"".join(ring.encode(parts[i]) for parts in messages).hex() for i in PARTIES]
    case["opening"], case["opened"] = open_to_all(ring, results)
    return case, results


def linear_case(ring, rows):
    """The gates without messages. Elements that fill the last byte are zero, also after NOT."""
    label = f"{ring.name}/linear"
    count = ring.padded(rows)
    inside = [1] * rows + [0] * (count - rows)
    u, w = (deal(ring, f"{label}/{n}", rows) for n in ("u", "w"))
    zero = [0] * count
    gates = {"add": [ring.add(a, b) for a, b in zip(u, w)], "sub": [ring.sub(a, b) for a, b in zip(u, w)]}
    if ring.bits == 1:
        gates["not"] = [ring.add(c, inside) for c in u]
        gates["one"] = [inside] * 3
    else:
        constant = int.from_bytes(draw(f"{label}/constant", ring.bits // 8), "little")
        filled = ring.scale(constant, inside)
        gates["add_constant"] = [ring.add(u[0], filled), u[1], u[2]]
        gates["scale_constant"] = [ring.scale(constant, c) for c in u]
        gates["constant_sharing"] = [filled, zero, zero]
    case = {"rows": rows, "u": sharing_fields(ring, u), "w": sharing_fields(ring, w)}
    if ring.bits > 1:
        case["constant"] = constant.to_bytes(ring.bits // 8, "little").hex()
    return case | {gate: sharing_fields(ring, result) for gate, result in gates.items()}


def ring_vectors(ring):
    """Every case over one ring."""
    kappa = [draw(f"{ring.name}/kappa{i}", 16) for i in PARTIES]

    def operands(name, rows, count):
        return [deal(ring, f"{ring.name}/{name}/{n}", rows) for n in range(count)]

    cases, several, one = [], [[[0, 1]], [[1, 2]], [[2, 0]]], [[[0, 1]]]
    # A Z_2^128 element fills a block, so long rows say nothing new; in Z_2^64 one product of them is enough.
    for rows in [1, 3, 9] if ring.bits == 128 else RAGGED:
        place = Place(ring, 0, 0, 0, rows, rows)
        items = several if ring.bits == 1 or rows < 16 else one
        taken = operands(f"p{rows}", rows, max(2, len(items)))
        cases.append(command_case(f"products-{rows}", place, kappa, taken, items)[0])
    # A last chunk with fewer rows than planned: the counters are those of a full one. Large lane, chunk, counter.
    planned, rows, chained = (200, 129, 128) if ring.bits == 1 else (40, 27, 16)
    place = Place(ring, 3, 0x01020304, 0x1_0000_0005, planned, rows)
    cases.append(command_case("last-chunk", place, kappa, operands("last", rows, 3), several)[0])
    dot = [[[0, 1], [2, 3], [4, 5]], [[0, 5]]]
    cases.append(command_case("dot", Place(ring, 1, 2, 40, 64, 37), kappa, operands("dot", 37, 6), dot)[0])
    # Two layers: the results of the first are the operands of the second.
    inputs, place = operands("chain", chained, 2), Place(ring, 0, 1, 7, chained, chained)
    case, results = command_case("chain-0", place, kappa, inputs, [[[0, 1]], [[1, 1]]])
    cases.append(case)
    place = Place(ring, 0, 1, place.counter(2), chained, chained)
    cases.append(command_case("chain-1", place, kappa, results, one)[0])
    if ring.bits > 1:
        rows_sum = [[[0, 1]], [[0, 1], [2, 3]]]
        for rows in (1, 3, 33):
            place = Place(ring, 0, 5, 11, 40, rows, sum_rows=True)
            taken = operands(f"s{rows}", rows, 4)
            cases.append(command_case(f"row-sum-{rows}", place, kappa, taken, rows_sum)[0])
    return {
        "ring": ring.name,
        "bits": ring.bits,
        "keys": [k.hex() for k in kappa],
        "linear": [linear_case(ring, rows) for rows in (1, 9, 64)],
        "commands": cases,
    }


def prf_vectors():
    key = draw("prf/key", 16)
    places = [(0, 0, 0, 0), (0x0100, 0, 0, 0), (0x0302, 0, 1, 0), (0x0200, 7, 2**40, 3)]
    places.append((2**16 - 1, 2**16 - 1, 2**64 - 1, 2**32 - 1))
    blocks = [
        {"tag": use, "lane": lane, "counter": str(ctr), "chunk": j, "block": prf_block(key, use, lane, ctr, j).hex()}
        for use, lane, ctr, j in places
    ]
    streams = []
    for ring in (BITS, Z64, Z128):
        for rows in RAGGED:
            place = Place(ring, 2, 9, 100, 256, rows)
            for item in (0, 1, 3):
                # The byte string that elements are cut from, and its rows: of bits, only those below `rows` count.
                data = ring.hex(place.stream(key, tag("RAND3"), item))
                streams.append({"ring": ring.name, "tag": tag("RAND3"), **place.fields(), "item": item, "stream": data})
    return {"key": key.hex(), "families": FAMILIES, "blocks": blocks, "streams": streams}


def share_vectors():
    """Inputs, random values and the (x, a) format."""
    kappa = [draw(f"share/kappa{i}", 16) for i in PARTIES]
    seeds = [draw(f"share/seed{i}", 16) for i in (0, 1)]
    out = {"keys": [k.hex() for k in kappa], "seeds": [s.hex() for s in seeds]}
    out |= {"party_input": [], "owner_input": [], "random": [], "formats": []}
    for ring, rows in ((r, n) for r in (BITS, Z64, Z128) for n in (1, 3, 35)):
        place = Place(ring, 1, 4, 20, 40, rows)
        columns = [ring.values(f"share/{ring.name}/{rows}/{c}", rows) for c in range(2)]
        base = {"ring": ring.name, **place.fields()}
        for i in PARTIES:
            sharings, zero = [], [0] * ring.padded(rows)
            for item, value in enumerate(columns):
                u = [zero] * 3
                u[i] = place.share(place.stream(kappa[i], tag("INPUT3", i), item))
                u[i - 1] = ring.sub(value, u[i])
                sharings.append(u)
            message = b"".join(ring.encode(u[i - 1]) for u in sharings).hex()
            fields = {"party": i, "tag": tag("INPUT3", i), "to": (i - 1) % 3, "message": message}
            out["party_input"].append(base | fields | {"columns": [sharing_fields(ring, u) for u in sharings]})
        sharings = []
        for item, value in enumerate(columns):
            u = [place.share(place.stream(seeds[s], tag("SHARE3"), item)) for s in (0, 1)]
            sharings.append([*u, ring.sub(value, ring.add(*u))])
        message = b"".join(ring.encode(u[2]) for u in sharings).hex()
        fields = {"tag": tag("SHARE3"), "to": [2, 0], "message": message}
        out["owner_input"].append(base | fields | {"columns": [sharing_fields(ring, u) for u in sharings]})
        u = [place.share(place.stream(kappa[i], tag("RAND3"), 0)) for i in PARTIES]
        out["random"].append(base | {"tag": tag("RAND3"), **sharing_fields(ring, u)})
        dealt = deal(ring, f"share/{ring.name}/{rows}/format", rows)
        x, a = wolfe(ring, dealt)
        opening, opened = open_to_all(ring, [dealt])
        formats = {"x": [ring.hex(c) for c in x], "a": [ring.hex(c) for c in a]}
        fields = {"ring": ring.name, "rows": rows, **sharing_fields(ring, dealt), **formats}
        out["formats"].append(fields | {"opening": opening, "opened": opened[0]})
    return out


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of three-party replicated sharing.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    check = parser.parse_args().check
    folder = pathlib.Path(__file__).resolve().parent.parent
    files = {
        "prf.json": prf_vectors(),
        "keys.json": keys.vectors(draw),
        "rep3_bits.json": ring_vectors(BITS),
        "rep3_z64.json": ring_vectors(Z64),
        "rep3_z128.json": ring_vectors(Z128),
        "share.json": share_vectors(),
    }
    write_or_check(folder, files, check, "vectors/model/rep3.py")


if __name__ == "__main__":
    main()
