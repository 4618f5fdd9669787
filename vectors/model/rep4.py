#!/usr/bin/env python3
"""Golden model of four-party replicated secret sharing with checked joint messages: whole transcripts from fixed keys.

Plain Python integers, as the model of three parties; no code is shared with the Rust crates.

    python3 vectors/model/rep4.py            write the vectors
    python3 vectors/model/rep4.py --check    compare them with what is committed; exit 1 if they differ

From: Dalskov, Escudero, Keller, Fantastic Four: Honest-Majority Four-Party Secure Computation With Malicious
Security, USENIX Security 2021. What every field means is said in vectors/README.md.
"""

import argparse
import pathlib

from common import BITS, RAGGED, Z64, Z128, Place
from common import draw, prf_block, require, sharing_fields, tag, write_or_check

PARTIES = range(4)

# The six joint messages of a product: the pair that computes the term, the receiver, the outsider. In even chunks the first of
# the pair sends and the second vouches, in odd ones the other way round.
JOINT = [((0, 1), 3, 2), ((1, 2), 0, 3), ((2, 3), 1, 0), ((3, 0), 2, 1), ((0, 2), 3, 1), ((1, 3), 2, 0)]


# ----------------------------------------------------------------------------------------------- sharing
# A sharing is [u_0, u_1, u_2, u_3], v = u_0 + u_1 + u_2 + u_3; party i holds all but u_i. Key K_i is held by all but party i.


def deal(ring, label, rows):
    value, *u = (ring.values(f"{label}/{part}", rows) for part in ("value", "u0", "u1", "u2"))
    return [*u, ring.sub(value, ring.add(*u))]


def term(ring, k, u, w):
    """What the pair of joint message k computes of u * w: products of components that both of them hold."""
    (s, b), r, o = JOINT[k]
    if k < 4:  # t_p = u_(p+2) w_(p+2) + u_(p+3) w_(p+2) + u_(p+2) w_(p+3)
        x, y = (s + 2) % 4, (s + 3) % 4
        terms = [(x, x), (y, x), (x, y)]
    else:  # the two components that neither of an opposite pair is without
        terms = [(r, o), (o, r)]
    require(all(s not in pair and b not in pair for pair in terms), "a term of components that the pair lacks")
    return ring.add(*(ring.mul(u[i], w[j]) for i, j in terms))


def summed(place, column):
    return [sum(column) & place.ring.mask] if place.sum_rows else column


def joint_tag(k, sum_rows):
    return tag("SUM4" if sum_rows else "JOINT4", k)


def product(place, keys, item, pairs):
    """Of every joint message the mask and what is sent; the components of the result."""
    ring = place.ring
    zero = [0] * (1 if place.sum_rows else ring.padded(place.rows))
    masks, sent, u = [], [], [zero] * 4
    for k, (_, r, o) in enumerate(JOINT):
        t = summed(place, ring.add(*(term(ring, k, a, b) for a, b in pairs)))
        rho = place.stream(keys[r], joint_tag(k, place.sum_rows), item)
        m = ring.sub(t, rho)
        u[r], u[o] = ring.add(u[r], rho), ring.add(u[o], m)
        masks.append(rho)
        sent.append(m)
    clear = summed(place, ring.add(*(ring.mul(ring.add(*a), ring.add(*b)) for a, b in pairs)))
    require(ring.add(*u) == clear, "the components of a product do not add up to it")
    return masks, sent, u, clear


# --------------------------------------------------------------------------------------------------- codes

POLYVAL = 1 << 128 | 1 << 127 | 1 << 126 | 1 << 121 | 1


def field_product(a, b):
    """a * b in GF(2^128) of RFC 8452."""
    whole = 0
    for bit in range(128):
        if b >> bit & 1:
            whole ^= a << bit
    for bit in range(254, 127, -1):
        if whole >> bit & 1:
            whole ^= POLYVAL << (bit - 128)
    return whole


# x^-128, by which POLYVAL divides each product; section 3 of RFC 8452 gives it.
INVERSE = 1 << 127 | 1 << 124 | 1 << 121 | 1 << 114 | 1


def polyval(key, blocks):
    state, h = 0, int.from_bytes(key, "little")
    for block in blocks:
        state = field_product(field_product(state ^ int.from_bytes(block, "little"), h), INVERSE)
    return state.to_bytes(16, "little")


def code(key, lane, use, counter, chunk, sources):
    """The code of a message: its hash and that of its length, masked by a block that is drawn once."""
    blocks, length = [], 0
    for source in sources:
        padded = source + bytes(-len(source) % 16)
        blocks += [padded[at : at + 16] for at in range(0, len(padded), 16)]
        length += len(source)
    blocks.append(length.to_bytes(16, "little"))
    hashed = polyval(prf_block(key, tag("MAC_KEY"), 0, 0, 0), blocks)
    mask = prf_block(key, use, lane, counter, chunk)
    return bytes(x ^ y for x, y in zip(hashed, mask))


def check_polyval():
    """RFC 8452, appendix A."""
    h, x1, x2, want = (
        bytes.fromhex(digits)
        for digits in (
            "25629347589242761d31f826ba4b757b",
            "4f4f95668c83dfb6401762bb2d01a262",
            "d1a24ddd2721d006bbe45f20d3c9f362",
            "f7a3b47b846119fae5b7866cf5e5b77e",
        )
    )
    require(polyval(h, [x1, x2]) == want, "POLYVAL differs from RFC 8452")


# --------------------------------------------------------------------------------------------------- cases


def pair_key(parties):
    a, b = sorted(parties)
    return draw(f"rep4/pair{a}{b}", 16)


def command_case(name, place, keys, layer, operands, items):
    """One product command: its items in schedule order, the six joint messages and their codes."""
    ring = place.ring
    case = {"name": name, **place.fields(), "sum_rows": place.sum_rows, "layer": layer}
    case["operands"] = [sharing_fields(ring, u) for u in operands]
    results, messages, case["items"] = [], [b""] * 6, []
    for item, pairs in enumerate(items):
        taken = [(operands[left], operands[right]) for left, right in pairs]
        masks, sent, u, clear = product(place, keys, item, taken)
        results.append([c if place.sum_rows else ring.cut(c, place.rows) for c in u])
        messages = [whole + ring.encode(m) for whole, m in zip(messages, sent)]
        case["items"].append(
            {
                "pairs": pairs,
                "counter": place.counter(item),
                "masks": [ring.hex(rho) for rho in masks],
                "sent": [ring.hex(m) for m in sent],
                "components": [ring.hex(c) for c in results[-1]],
                "value": ring.hex(clear),
            }
        )
    case["joint"] = []
    for k, ((first, second), receiver, outsider) in enumerate(JOINT):
        sender, backup = (first, second) if place.chunk % 2 == 0 else (second, first)
        # Row products come before sums; a command of this file has either.
        sources = [b"", messages[k]] if place.sum_rows else [messages[k], b""]
        key = pair_key((backup, receiver))
        case["joint"].append(
            {
                "tag": joint_tag(k, place.sum_rows),
                "sender": sender,
                "backup": backup,
                "receiver": receiver,
                "outsider": outsider,
                "message": messages[k].hex(),
                "code": code(key, place.lane, tag("CODE4", k), layer, place.chunk, sources).hex(),
            }
        )
    # P_i lacks u_i: the one before it sends it, the one after it vouches.
    case["opening"] = [b"".join(ring.encode(u[i]) for u in results).hex() for i in PARTIES]
    case["opened"] = [ring.hex(ring.add(*u)) for u in results]
    return case, results


def linear_case(ring, rows):
    """The gates without messages; public constants act on component 0."""
    label = f"rep4/{ring.name}/linear"
    count = ring.padded(rows)
    u, w = (deal(ring, f"{label}/{n}", rows) for n in ("u", "w"))
    constant = int.from_bytes(draw(f"{label}/constant", 16), "little") & ring.mask if ring.bits > 1 else 1
    filled, zero = [constant] * rows + [0] * (count - rows), [0] * count
    gates = {
        "add": [ring.add(a, b) for a, b in zip(u, w)],
        "sub": [ring.sub(a, b) for a, b in zip(u, w)],
        "add_constant": [ring.add(u[0], filled), *u[1:]],
        "scale_constant": [ring.scale(constant, c) for c in u],
        "constant_sharing": [filled, zero, zero, zero],
    }
    case = {"rows": rows, "u": sharing_fields(ring, u), "w": sharing_fields(ring, w)}
    case["constant"] = constant.to_bytes(-(-ring.bits // 8), "little").hex()
    return case | {gate: sharing_fields(ring, result) for gate, result in gates.items()}


def input_cases(ring, keys, seeds):
    """Inputs of parties and of an outside owner, and random values."""
    cases = {"party_input": [], "owner_input": [], "random": []}
    for rows in (1, 3, 35):
        place = Place(ring, 1, 4, 20, 40, rows)
        columns = [ring.values(f"rep4/{ring.name}/input{rows}/{c}", rows) for c in range(2)]
        for d in PARTIES:
            sharings = []
            for item, value in enumerate(columns):
                u = [[0] * ring.padded(rows)] * 4
                for known in ((d + 1) % 4, (d + 3) % 4):
                    u[known] = place.share(place.stream(keys[known], tag("INPUT4", d), item))
                u[(d + 2) % 4] = ring.sub(value, ring.add(*u))
                sharings.append(u)
            message = b"".join(ring.encode(u[(d + 2) % 4]) for u in sharings).hex()
            fields = {"party": d, "tag": tag("INPUT4", d), "to": [(d + 1) % 4, (d + 3) % 4], "message": message}
            columns_of = {"columns": [sharing_fields(ring, u) for u in sharings]}
            cases["party_input"].append({**place.fields(), **fields, **columns_of})
        sharings = []
        for item, value in enumerate(columns):
            u = [place.share(place.stream(seed, tag("SHARE4"), item)) for seed in seeds]
            sharings.append([*u, ring.sub(value, ring.add(*u))])
        message = b"".join(ring.encode(u[3]) for u in sharings).hex()
        fields = {"tag": tag("SHARE4"), "to": [0, 1, 2], "message": message}
        columns_of = {"columns": [sharing_fields(ring, u) for u in sharings]}
        cases["owner_input"].append({**place.fields(), **fields, **columns_of})
        u = [place.share(place.stream(keys[i], tag("RAND4"), 0)) for i in PARTIES]
        cases["random"].append({**place.fields(), "tag": tag("RAND4"), **sharing_fields(ring, u)})
    return cases


def ring_vectors(ring):
    """Every case over one ring."""
    keys = [draw(f"rep4/{ring.name}/K{i}", 16) for i in PARTIES]
    seeds = [draw(f"rep4/{ring.name}/seed{i}", 16) for i in range(3)]

    def operands(name, rows, count):
        return [deal(ring, f"rep4/{ring.name}/{name}/{n}", rows) for n in range(count)]

    cases, several, one = [], [[[0, 1]], [[1, 2]], [[2, 0]]], [[[0, 1]]]
    for rows in [1, 3, 9] if ring.bits == 128 else RAGGED:
        place = Place(ring, 0, rows % 2, 0, rows, rows)
        items = several if ring.bits == 1 or rows < 16 else one
        taken = operands(f"p{rows}", rows, max(2, len(items)))
        cases.append(command_case(f"products-{rows}", place, keys, 0, taken, items)[0])
    planned, rows, chained = (200, 129, 128) if ring.bits == 1 else (40, 27, 16)
    place = Place(ring, 3, 0x01020304, 0x1_0000_0005, planned, rows)
    cases.append(command_case("last-chunk", place, keys, 5, operands("last", rows, 3), several)[0])
    dot = [[[0, 1], [2, 3], [4, 5]], [[0, 5]]]
    cases.append(command_case("dot", Place(ring, 1, 3, 40, 64, 37), keys, 1, operands("dot", 37, 6), dot)[0])
    inputs, place = operands("chain", chained, 2), Place(ring, 0, 1, 7, chained, chained)
    case, results = command_case("chain-0", place, keys, 0, inputs, [[[0, 1]], [[1, 1]]])
    cases.append(case)
    place = Place(ring, 0, 1, place.counter(2), chained, chained)
    cases.append(command_case("chain-1", place, keys, 1, results, one)[0])
    if ring.bits > 1:
        rows_sum = [[[0, 1]], [[0, 1], [2, 3]]]
        for rows in (1, 3, 33):
            place = Place(ring, 0, 5, 11, 40, rows, sum_rows=True)
            cases.append(command_case(f"row-sum-{rows}", place, keys, 2, operands(f"s{rows}", rows, 4), rows_sum)[0])
    pairs = {f"{a}{b}": pair_key((a, b)).hex() for a in PARTIES for b in range(a + 1, 4)}
    return {
        "ring": ring.name,
        "bits": ring.bits,
        "keys": [k.hex() for k in keys],
        "pairs": pairs,
        "seeds": [s.hex() for s in seeds],
        "linear": [linear_case(ring, rows) for rows in (1, 9, 64)],
        "commands": cases,
        **input_cases(ring, keys, seeds),
    }


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of four-party replicated sharing.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    check = parser.parse_args().check
    check_polyval()
    folder = pathlib.Path(__file__).resolve().parent.parent
    files = {f"rep4_{ring.name}.json": ring_vectors(ring) for ring in (BITS, Z64, Z128)}
    write_or_check(folder, files, check, "vectors/model/rep4.py")


if __name__ == "__main__":
    main()
