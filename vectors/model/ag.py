#!/usr/bin/env python3
"""Golden model of authenticated garbling: the vectors of the definitions in authenticated.py.

    python3 vectors/model/ag.py            write the vectors
    python3 vectors/model/ag.py --check    compare them with what is committed; exit 1 if they differ
    python3 vectors/model/ag.py --escapes  cheat at small parameters, and compare how many lies pass with the bounds: ag_escapes.py
"""

import argparse
import itertools
import pathlib

from authenticated import (
    A,
    B,
    PARTIES,
    Bits,
    Run,
    blocks,
    combined,
    conjunction,
    dealt,
    dealt_triple,
    differences,
    folded,
    layers_of,
    le,
    leaky,
    offset,
    opened,
    pinned,
    rotated,
    shift,
    told,
    used,
    xor,
)
from common import BITS, draw, prf_block, require, write_or_check
from garbling import GARBLE, hashed
from ot import polyval

# Security parameters, and batches: powers of two, by their logarithms, and other sizes.
STATISTICAL, SIZES, ODD_SIZES = (40, 64, 80), range(10, 25), (1025, (1 << 13) - 1, (1 << 16) + 1, 1_000_000, (1 << 20) + 1)


# Where start points stand, and those of leaky ANDs.
LANE, CHUNK, LEAKY = 5, 80_003, 0x1512

# A name of a method of the model for each kind of gate of the vectors.
KINDS = {"xor": "xor", "not": "inverse", "and": "product"}


def circuit():
    """Inputs 0 and 1 of A, 2 and 3 of B; layers; outputs. An AND of a wire with itself, and ANDs of XORs of results, with inversions."""
    first = [["not", 0], ["xor", 0, 2], ["and", 0, 2], ["and", 4, 3], ["and", 5, 1], ["and", 2, 2]]
    second = [["xor", 6, 7], ["not", 8], ["not", 10], ["and", 10, 11], ["and", 12, 9], ["and", 10, 5]]
    third = [["xor", 13, 14], ["and", 16, 15], ["and", 16, 7], ["xor", 18, 0]]
    return 4, [first, second, third], [17, 12, 19, 14]


# -------------------------------------------------------------------------------------------------- vectors


def sources(name):
    """Numbers of 128 bits, by label."""
    return lambda label: int.from_bytes(draw(f"ag/{name}/{label}", 16), "little")


def both_offsets(source):
    return [offset(p, source(f"offset/{p}")) for p in PARTIES]


def start_of(name, use):
    """The key, and the start point that it gives."""
    key = draw(f"ag/{name}/key", 16)
    return key, int.from_bytes(prf_block(key, use, LANE, 0, CHUNK), "little")


def hash_under(start):
    return lambda number, x: hashed(start, number, x)


def right(bits, offsets, values, otherwise):
    require(bits.hold(offsets), f"MACs of {otherwise}")
    require(bits.values() == values, otherwise)


def triple_fields(offsets, triple, otherwise):
    a, b, c = triple
    for bits, values in ((a, a.values()), (b, b.values()), (c, conjunction(a.values(), b.values()))):
        right(bits, offsets, values, otherwise)
    return {name: bits.fields() for name, bits in zip("abc", triple)}


def hexes(columns):
    return [blocks(column).hex() for column in columns]


def pin_fields():
    source = sources("pin")
    delta, count = offset(B, source("offset")), 19
    t, x = [source(f"t/{i}") for i in range(count)], [source(f"x/{i}") & 1 for i in range(count)]
    q = [y ^ bit * delta for y, bit in zip(t, x)]
    k, m = zip(*(pinned(*of) for of in zip(q, t, x)))
    require(Bits([m, []], [[], k]).hold([0, delta]), "pins")
    return {"offset": le(delta).hex(), "q": blocks(q).hex(), "t": blocks(t).hex(), "x": BITS.hex(x), "k": blocks(k).hex(), "m": blocks(m).hex()}


def leaky_fields(count, first):
    source = sources(f"leaky/{count}")
    (key, start), offsets, challenge = start_of(f"leaky/{count}", LEAKY), both_offsets(source), source("challenge")
    a, b, r = (dealt(lambda label, of=of: source(f"{of}/{label}"), offsets, count) for of in "abr")
    of = leaky(offsets, a, b, r, first, hash_under(start))
    triple_fields(offsets, (a, b, of.c), "leaky ANDs")
    require(of.checks[A] == of.checks[B], "checks of leaky ANDs differ")
    return {
        "offsets": [le(x).hex() for x in offsets],
        "key": key.hex(),
        "start": le(start).hex(),
        "first": str(first),
        "candidates": count,
        **{name: bits.fields() for name, bits in zip("abr", (a, b, r))},
        "offers": hexes(of.offers),
        "sums": hexes(of.sums),
        "d": [BITS.hex(bits) for bits in of.d],
        "c": of.c.fields(),
        "checks": hexes(of.checks),
        "challenge": le(challenge).hex(),
        "fold": le(folded(challenge, of.checks[A])).hex(),
    }


def bucket_fields(layers, count):
    source = sources("bucket")
    offsets, digest = both_offsets(source), draw("ag/bucket/digest", 32)
    of_layer = [dealt_triple(lambda label, k=k: source(f"{k}/{label}"), offsets, count) for k in range(layers)]
    shifts = [shift(digest, k, count) for k in range(1, layers)]
    turned = rotated(of_layer, shifts)
    d = differences(turned)
    triple = combined(turned, [bits.values() for bits in d])
    others = [(k, n, shift(digest, k, n)) for k, n in itertools.product((1, 2, 9), (3, 100, 1 << 13, 1_000_003, (1 << 32) - 5))]
    return {
        "offsets": [le(x).hex() for x in offsets],
        "candidates": count,
        "digest": digest.hex(),
        "layers": [triple_fields(offsets, of, "layers") for of in of_layer],
        "shifts": shifts,
        "differences": [bits.fields() for bits in d],
        "d": [[BITS.hex(bits.shares(p)) for p in PARTIES] for bits in d],
        "triples": triple_fields(offsets, triple, "buckets"),
        "other_shifts": [{"layer": k, "candidates": n, "shift": by} for k, n, by in others],
    }


def use_fields(count):
    source = sources("use")
    offsets = both_offsets(source)
    triple = dealt_triple(source, offsets, count)
    mask_a, mask_b, mask = (dealt(lambda label, of=of: source(f"mask/{of}/{label}"), offsets, count) for of in ("a", "b", "result"))
    epsilon, delta = mask_a ^ triple[0], mask_b ^ triple[1]
    sigma = used(offsets, triple, epsilon.values(), delta.values())
    right(sigma, offsets, conjunction(mask_a.values(), mask_b.values()), "ANDs of masks")
    right(sigma ^ mask, offsets, xor(sigma.values(), mask.values()), "sums with masks of results")
    return {
        "offsets": [le(x).hex() for x in offsets],
        "gates": count,
        "triples": triple_fields(offsets, triple, "triples"),
        "masks": [bits.fields() for bits in (mask_a, mask_b, mask)],
        "epsilon": [BITS.hex(epsilon.shares(p)) for p in PARTIES],
        "delta": [BITS.hex(delta.shares(p)) for p in PARTIES],
        "epsilon_macs": epsilon.fields(),
        "delta_macs": delta.fields(),
        "masked": (sigma ^ mask).fields(),
        "inverses": mask_a.plus(offsets, [1] * count).fields(),
    }


def fold_fields():
    """Appendix A of RFC 8452; then numbers of blocks; then an opening by each party."""
    known = ["25629347589242761d31f826ba4b757b", "4f4f95668c83dfb6401762bb2d01a262d1a24ddd2721d006bbe45f20d3c9f362", "f7a3b47b846119fae5b7866cf5e5b77e"]
    key = int.from_bytes(bytes.fromhex(known[0]), "little")
    require(polyval(key, bytes.fromhex(known[1])).hex() == known[2], "POLYVAL of RFC 8452, appendix A")
    cases, source = [dict(zip(("challenge", "blocks", "value"), known))], sources("fold")
    for count in (1, 2, 7, 33):
        numbers, challenge = [source(f"{count}/{i}") for i in range(count)], source(f"{count}/challenge")
        cases.append({"challenge": le(challenge).hex(), "blocks": blocks(numbers).hex(), "value": le(folded(challenge, numbers)).hex()})
    offsets, openings = both_offsets(source), []
    bits = dealt(source, offsets, 21)
    for party in PARTIES:
        challenge = source(f"opening/{party}")
        shares, accepted = opened(offsets, bits, party, challenge)
        require(accepted, "an opening of true bits fails")
        for at in range(len(shares)):
            lie = lambda _, what, values, at=at: values[:at] + [values[at] ^ 1] + values[at + 1 :] if what == "bits" else values
            require(not opened(offsets, bits, party, challenge, sent=lie)[1], "a flipped bit is accepted")
            total, own, expected = told(offsets, bits, party, challenge, sent=lie)
            require(own != expected, "a flipped bit is accepted outside")
        total, own, expected = told(offsets, bits, party, challenge)
        require(own == expected, "true bits are refused outside")
        keys = folded(challenge, bits.k[1 - party])
        outside = {"sum": le(total).hex(), "keys": le(keys).hex(), "expected": le(expected).hex()}
        openings.append({"challenge": le(challenge).hex(), "bits": BITS.hex(shares), "fold": le(own).hex(), "outside": outside})
    return {"folds": cases, "offsets": [le(x).hex() for x in offsets], "opened": bits.fields(), "openings": openings}


def run_of(source, start, first, inputs, offsets):
    _, layers, _ = circuit()
    run = Run(source, offsets, hash_under(start), first, [[[KINDS[kind], *of] for kind, *of in gates] for gates in layers], inputs)
    for wire, values in enumerate(run.values):
        mask, public = run.masks[wire], run.public(wire)
        require(mask.hold(offsets) and xor(mask.values(), public) == values, f"wire {wire}")
        require(run.active[wire] == [w ^ bit * offsets[A] for w, bit in zip(run.zero[wire], public)], f"labels of wire {wire}")
    require(run.accepted, "an opening of true bits fails")
    for name in ("label_folds", "mask_folds"):
        mine, other = getattr(run, name)(source(name))
        require(mine == other, f"{name} differ")
    return run


def plain(values):
    """The outputs of the circuit on bits, one row."""
    wires = list(values)
    _, layers, outputs = circuit()
    for kind, *of in itertools.chain(*layers):
        x, y = wires[of[0]], wires[of[-1]]
        wires.append({"xor": x ^ y, "not": 1 - x, "and": x & y}[kind])
    return [wires[w] for w in outputs]


def garble_fields(rows, first):
    inputs, layers, outputs = circuit()
    source = sources("garble")
    offsets, (key, start) = both_offsets(source), start_of("garble", GARBLE)
    # For all values of the inputs, of which the vectors have a few rows.
    every = list(itertools.product((0, 1), repeat=inputs))
    whole = run_of(sources("garble/all"), start, first, [list(column) for column in zip(*every)], offsets)
    results = [xor(whole.open(whole.masks[w], f"output/{w}"), whole.public(w)) for w in outputs]
    require(whole.accepted and [list(row) for row in zip(*results)] == [plain(values) for values in every], "outputs")
    run = run_of(source, start, first, [[source(f"value/{w}/{row}") & 1 for row in range(rows)] for w in range(inputs)], offsets)
    checks = {}
    for name in ("label", "mask"):
        challenge = source(f"{name}/challenge")
        checks[f"{name}_check"] = {"challenge": le(challenge).hex(), "fold": le(getattr(run, f"{name}_folds")(challenge)[0]).hex()}
    openings = []
    for party in PARTIES:
        challenge = source(f"outputs/{party}")
        answer = folded(challenge, [x for w in outputs for x in run.masks[w].m[party]])
        bits = [BITS.hex(run.masks[w].shares(party)) for w in outputs]
        openings.append({"challenge": le(challenge).hex(), "bits": bits, "fold": le(answer).hex()})
    products = []
    for product in run.products:
        zero, one, z = zip(*product.tables)
        fields = {"operands": product.operands, "result": product.result, "masked": product.sharing.fields()}
        products.append(fields | {"tables": hexes((zero, one)), "z": BITS.hex(z), "public": BITS.hex(run.public(product.result))})
    return {
        "offsets": [le(x).hex() for x in offsets],
        "key": key.hex(),
        "start": le(start).hex(),
        "first": str(first),
        "rows": rows,
        "inputs": inputs,
        "layers": layers,
        "outputs": outputs,
        "values": [BITS.hex(column) for column in run.values],
        "public": [BITS.hex(run.public(w)) for w in range(len(run.values))],
        "masks": [bits.fields() for bits in run.masks],
        "zero": hexes(run.zero),
        "active": hexes(run.active),
        "products": products,
        **checks,
        "openings": openings,
    }


def sizes_fields():
    counts = [1 << n for n in SIZES] + list(ODD_SIZES)
    return [{"s": s, "candidates": counts, "layers": [layers_of(n, s) for n in counts]} for s in STATISTICAL]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    parser.add_argument("--escapes", action="store_true", help="cheat at small parameters, and count")
    arguments = parser.parse_args()
    if arguments.escapes:
        import ag_escapes

        ag_escapes.main()
        return
    content = {
        "lane": LANE,
        "chunk": CHUNK,
        "pin": pin_fields(),
        "leaky": [leaky_fields(128, (1 << 40) + 5), leaky_fields(13, (1 << 63) - 13)],
        "bucket": bucket_fields(3, 128),
        "use": use_fields(37),
        "fold": fold_fields(),
        "garble": garble_fields(3, (1 << 33) + 5),
        "sizes": sizes_fields(),
    }
    write_or_check(pathlib.Path(__file__).resolve().parent.parent, {"ag.json": content}, arguments.check, "vectors/model/ag.py")


if __name__ == "__main__":
    main()
