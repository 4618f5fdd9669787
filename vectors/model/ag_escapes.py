"""What a cheater reaches against authenticated garbling: measured and counted at small parameters.

    python3 vectors/model/ag.py --escapes

Marks are candidates of which A sent a wrong offer G: the check of leaky ANDs passes if A guessed B's share of a, and then A knows it. A bucket all of whose
candidates are marked gives A B's share of a mask. Folds run over GF(2^8) in the place of GF(2^128), MACs and labels too, whose offsets have six unknown
bits. Then come three conditions, each with the attack that succeeds for certain without it, and how often the other party aborts for both values of its input.
The hash is SHA-256 here: escapes do not depend on which one it is.
"""

import hashlib
import itertools
import random

from authenticated import A, B, PARTIES, Run, as_it_is, combined, conjunction, dealt, differences
from authenticated import folded, leaky, le, offset, opened, rotated, shift, xor
from binary_field import Field
from common import require
from dzkp_escapes import dependent, within
from ot import dot

BYTE = Field(8)
# Of the eight bits of an offset two are known.
UNKNOWN = 6
# The first and the last of sixteen blocks: their weights x^16 and x are equal in the whole subfield GF(2^4).
BLOCKS, PATTERNS = 16, (({0}, 1), ({7}, 1), ({0, 15}, 16))


def oracle(start, bits=128):
    def hash_of(number, x):
        return int.from_bytes(hashlib.sha256(le(start) + number.to_bytes(9, "little") + le(x)).digest(), "little") & (1 << bits) - 1

    return hash_of


def numbers(rng, bits=128):
    return lambda _label: rng.getrandbits(bits)


def both_offsets(rng, bits=128):
    return [offset(p, rng.getrandbits(bits)) for p in PARTIES]


def flipped(bits, places):
    return [bit ^ (at in places) for at, bit in enumerate(bits)]


# ----------------------------------------------------------------------------------------- marks in buckets


class Marked:
    """A layer of candidates at some of which A guesses B's share of a; `passed` if the check does."""

    def __init__(self, rng, offsets, count, marks, a=None):
        self.marks, self.guesses = marks, {i: rng.getrandbits(1) for i in marks}
        a, b, r = a or dealt(numbers(rng), offsets, count), *(dealt(numbers(rng), offsets, count) for _ in range(2))
        # Bit 1 is left alone, so that d stays as it was; the check of a candidate changes by the error where B's share is 1.
        errors = [(rng.getrandbits(126) | 1) << 2 if i in marks else 0 for i in range(count)]
        lie = lambda party, what, values: xor(values, errors) if (party, what) == (A, "offers") else values
        of = leaky(offsets, a, b, r, rng.getrandbits(40), oracle(rng.getrandbits(128)), lie)
        claimed = [x ^ self.guesses.get(i, 0) * errors[i] for i, x in enumerate(of.checks[A])]
        self.layer, self.passed = (a, b, of.c), claimed == of.checks[B]
        right = all(a.shares(B)[i] == guess for i, guess in self.guesses.items())
        require(self.passed == right, "the check passes where guesses are right")


def known_buckets(offsets, layers, shifts):
    """Buckets of which A knows B's share of a: those whose candidates are all marked; that the knowledge is right."""
    count = len(layers[0].layer[0])
    turned = rotated([marked.layer for marked in layers], shifts)
    triple = combined(turned, [bits.values() for bits in differences(turned)])
    require(triple[2].values() == conjunction(triple[0].values(), triple[1].values()), "marks that pass leave triples right")
    found = []
    for i in range(count):
        at = [(i + by) % count for by in (0, *shifts)]
        if all(place in marked.marks for place, marked in zip(at, layers)):
            guess = sum(marked.guesses[place] for place, marked in zip(at, layers)) & 1
            require(guess == triple[0].shares(B)[i], "A knows B's share of a bucket")
            found.append(i)
    return found


def marks(rng):
    """All shifts, and the chance 2^-marks that the check passes; then whole runs."""
    for count, layers in itertools.product((16, 64), (2, 3)):
        bound, rates = 2.0**-layers * count ** (1 - layers), []
        for each in (1, 2, 3, 4):
            places = [set(rng.sample(range(count), each)) for _ in range(layers)]
            shifts = itertools.product(range(count), repeat=layers - 1)
            hit = sum(any(all((i + by) % count in of for by, of in zip(given, places[1:])) for i in places[0]) for given in shifts)
            rates.append(hit / count ** (layers - 1) * 2.0 ** -(each * layers))
        print(f"{count} candidates, {layers} layers, 1 to 4 marks in each: {', '.join(f'{rate:.2e}' for rate in rates)} pass, {bound:.2e} at most")
        require(rates[0] == bound and max(rates) <= bound, "marks pass more often than the bound says")
    count, layers, trials, passed = 16, 2, 4000, 0
    for _ in range(trials):
        offsets = both_offsets(rng)
        of = [Marked(rng, offsets, count, {rng.randrange(count)}) for _ in range(layers)]
        if all(marked.passed for marked in of):
            passed += bool(known_buckets(offsets, of, [rng.randrange(count) for _ in range(layers - 1)]))
    bound = 2.0**-layers * count ** (1 - layers)
    print(f"{count} candidates, {layers} layers, a mark in each, whole runs: {passed / trials:.4f} pass, {bound:.4f} expected")
    within(passed / trials, bound, trials, "marks in buckets")


# ------------------------------------------------------------------------------------ folds over GF(2^8)


def byte_fold(challenge, of):
    state = 0
    for x in of:
        state = BYTE.mul(state ^ x, challenge)
    return state


def counted(what, accepts):
    """`accepts(offset, guess)` gives for each set of false places and each challenge whether the check passes: over all offsets and challenges."""
    totals = {}
    for unknown in range(1 << UNKNOWN):
        for places, passed in accepts(unknown << 2).items():
            totals[places] = totals.get(places, 0) + passed
    for places, zeros in PATTERNS:
        passed, cases = totals[frozenset(places)], BYTE.size << UNKNOWN
        expected = (zeros << UNKNOWN) + BYTE.size - zeros
        bound = BLOCKS / BYTE.size + 2.0**-UNKNOWN
        print(f"GF(2^8), {what}, false at {sorted(places)} of {BLOCKS}: {passed / cases:.4f} pass, {expected / cases:.4f} expected, {bound:.4f} at most")
        require(passed == expected and passed / cases <= bound, f"{what}: not as many as the formula says")


def openings_forged(rng, cheater):
    """Bits are flipped, and the fold is corrected by a guess of the offset."""
    guess = offset(1 - cheater, rng.getrandbits(8))

    def accepts(unknown):
        offsets = both_offsets(rng, 8)
        offsets[1 - cheater] = offset(1 - cheater, unknown)
        bits, result = dealt(numbers(rng, 8), offsets, BLOCKS), {}
        for places, _ in PATTERNS:
            error = [(at in places) * guess for at in range(BLOCKS)]
            passed = 0
            for challenge in range(BYTE.size):
                lies = {"bits": lambda x: flipped(x, places), "fold": lambda x: x ^ byte_fold(challenge, error)}
                lie = lambda _, what, values: lies[what](values)
                passed += opened(offsets, bits, cheater, challenge, byte_fold, lie)[1]
            result[frozenset(places)] = passed
        return result

    counted(f"bits that {'AB'[cheater]} opens", accepts)


def small_run(rng, offsets, sent=as_it_is):
    """An AND on so many rows that a fold has."""
    inputs = [[rng.getrandbits(1) for _ in range(BLOCKS)] for _ in range(2)]
    return Run(numbers(rng, 8), offsets, oracle(rng.getrandbits(128), 8), 5, [[["product", 0, 1]]], inputs, fold=byte_fold, sent=sent)


def false_public_values(rng):
    """B tells other values than its labels have."""
    guess = offset(A, rng.getrandbits(8))

    def accepts(unknown):
        offsets, result = [offset(A, unknown), offset(B, rng.getrandbits(8))], {}
        for places, _ in PATTERNS:
            run = small_run(rng, offsets, lambda _, what, values: flipped(values, places) if what == "public" else values)
            error = [(at in places) * guess for at in range(BLOCKS)]
            folds = ((*run.label_folds(challenge), byte_fold(challenge, error)) for challenge in range(BYTE.size))
            result[frozenset(places)] = sum(wanted == sent ^ corrected for wanted, sent, corrected in folds)
        return result

    counted("values that B tells", accepts)


def false_tables(rng):
    """A sends another z, which turns the result in any case."""
    guess = offset(B, rng.getrandbits(8))

    def accepts(unknown):
        offsets, result = [offset(A, rng.getrandbits(8)), offset(B, unknown)], {}
        for places, _ in PATTERNS:
            row = itertools.count()
            lie = lambda _, what, table: (*table[:2], table[2] ^ (next(row) in places)) if what == "table" else table
            run = small_run(rng, offsets, lie)
            error = [(at in places) * guess for at in range(BLOCKS)]
            folds = ((*run.mask_folds(challenge), byte_fold(challenge, error)) for challenge in range(BYTE.size))
            result[frozenset(places)] = sum(wanted == sent ^ corrected for sent, wanted, corrected in folds)
        return result

    counted("tables of A", accepts)


def folds(rng):
    for cheater in PARTIES:
        openings_forged(rng, cheater)
    false_public_values(rng)
    false_tables(rng)


# ------------------------------------------------------------------------------------------ the conditions


def operand_reused(rng):
    """Layer 0 on the mask of the operand itself: a guess that passes is B's share of the mask, and with the public value B's input. With a fresh factor in
    layer 0 the opened difference hides it behind the other layer's."""
    count, trials, right = 4, 1000, {}
    for name, fresh in (("the mask itself", False), ("a fresh factor", True)):
        learnt = survived = 0
        for _ in range(trials):
            offsets, value = both_offsets(rng), rng.getrandbits(1)
            mask = dealt(numbers(rng), offsets, count)
            layers = [Marked(rng, offsets, count, {0}, None if fresh else mask), Marked(rng, offsets, count, set())]
            if not layers[0].passed:
                continue
            survived += 1
            turned = rotated([marked.layer for marked in layers], [rng.randrange(count)])
            triple = combined(turned, [bits.values() for bits in differences(turned)])
            told = (mask ^ triple[0]).shares(B)[0]
            # With a fresh factor: told = share of the mask, of a_0, which A knows, and of a_1, which it does not.
            share = layers[0].guesses[0] ^ told if fresh else layers[0].guesses[0]
            public = value ^ mask.values()[0]
            learnt += public ^ mask.shares(A)[0] ^ share == value
        right[fresh] = learnt / survived
        print(f"layer 0 on {name}: {survived} of {trials} guesses pass, A then knows B's input in {right[fresh]:.3f} of them")
    require(right[False] == 1, "a mask in layer 0 leaks")
    within(right[True], 0.5, survived, "a fresh factor hides the mask")


def shifts_chosen(rng):
    """A party that chooses the shifts when the check has passed, or tries transcripts that a hash makes shifts of, brings its marks into one bucket."""
    count, layers, chosen, tried, uniform, trials = 16, 3, 0, [], 0, 200
    for trial in range(trials):
        offsets = both_offsets(rng)
        of = []
        while len(of) < layers:
            marked = Marked(rng, offsets, count, {rng.randrange(count)})
            of += [marked] * marked.passed
        first, *others = (min(marked.marks) for marked in of)
        wanted = [(place - first) % count for place in others]
        chosen += known_buckets(offsets, of, wanted) == [first]
        uniform += bool(known_buckets(offsets, of, [rng.randrange(count) for _ in range(layers - 1)]))
        if trial < 10:
            digests = (hashlib.sha256(le(trial) + le(nonce)).digest() for nonce in itertools.count())
            tried.append(1 + next(n for n, digest in enumerate(digests) if [shift(digest, k, count) for k in (1, 2)] == wanted))
    print(f"{count} candidates, {layers} layers, marks that passed: chosen shifts bring together {chosen} of {trials}, uniform ones {uniform}")
    print(f"shifts by a hash of the transcript: brought together in {len(tried)} of {len(tried)}, after {sum(tried) // len(tried)} tries")
    require(chosen == trials, "shifts that are chosen bring marks together")
    within(uniform / trials, count ** (1 - layers), trials, "uniform shifts")


def challenge_known(rng):
    """Over GF(2^128), a challenge before the bits: of more than 128 weights some add up to 0."""
    count = 129
    for cheater in PARTIES:
        offsets, challenge = both_offsets(rng), rng.getrandbits(128)
        bits, weights = dealt(numbers(rng), offsets, count), [dot(1, challenge)]
        while len(weights) < count:
            weights.insert(0, dot(weights[0], challenge))
        pattern = dependent(weights)
        places = {at for at in range(count) if pattern >> at & 1}
        lie = lambda _, what, values: flipped(values, places) if what == "bits" else values
        require(places and opened(offsets, bits, cheater, challenge, sent=lie)[1], "a known challenge is forged")
        require(not opened(offsets, bits, cheater, rng.getrandbits(128), sent=lie)[1], "a challenge that was not known is not")
        print(f"GF(2^128), {'AB'[cheater]} knows the challenge before it opens: {len(places)} false bits pass for certain")


# -------------------------------------------------------------------------------------- selective failures


CANDIDATES, LAYERS = 4, 2


class Cheat:
    """Changes one entry of one message of a kind, the `number`th that the party sends."""

    def __init__(self, rng, party, kind, number, change):
        self.rng, self.party, self.kind, self.number, self.change = rng, party, kind, number, change

    def __call__(self, party, what, values):
        if (party, what) != (self.party, self.kind):
            return values
        self.number -= 1
        if self.number != -1:
            return values
        at = self.rng.randrange(len(values)) if what != "table" else 0
        return [*values[:at], values[at] ^ self.change, *values[at + 1 :]]


def aborts(rng, value, sent, source):
    """A whole run of an AND whose first operand is `value` in all rows: whether a check fails."""
    offsets = both_offsets(rng)
    layers, checks = [], [[], []]
    for k in range(LAYERS):
        a, b, r = (dealt(numbers(rng), offsets, CANDIDATES) for _ in range(3))
        of = leaky(offsets, a, b, r, k << 40, oracle(rng.getrandbits(128)), sent)
        layers.append((a, b, of.c))
        for p in PARTIES:
            checks[p] += of.checks[p]
    challenge = rng.getrandbits(128)
    if folded(challenge, checks[A]) != folded(challenge, checks[B]):
        return True
    turned = rotated(layers, [rng.randrange(CANDIDATES) for _ in range(LAYERS - 1)])
    d = []
    for bits in differences(turned):
        told = [opened(offsets, bits, p, rng.getrandbits(128), sent=sent) for p in PARTIES]
        if not all(accepted for _, accepted in told):
            return True
        d.append(xor(*(shares for shares, _ in told)))
    triple = combined(turned, d)
    inputs = [[value] * CANDIDATES, [rng.getrandbits(1) for _ in range(CANDIDATES)]]
    run = Run(source, offsets, oracle(rng.getrandbits(128)), 0, [[["product", 0, 1]]], inputs, lambda _: triple, sent=sent)
    if not run.accepted:
        return True
    for check in (run.label_folds, run.mask_folds):
        mine, other = check(rng.getrandbits(128))
        if mine != other:
            return True
    result = xor(run.open(run.masks[2], "output"), run.public(2))
    require(not run.accepted or result == run.values[2], "a wrong result is opened")
    return not run.accepted


def rates(rng, party, kind, number, change, runs, source):
    """By the value of the other party's input."""
    result = []
    for value in (0, 1):
        cheats = (Cheat(rng, party, kind, number(), change()) for _ in range(runs))
        result.append(sum(aborts(rng, value, cheat, source) for cheat in cheats) / runs)
    return result


def equal(zero, one, runs):
    """Four deviations of the difference of two rates."""
    mean = (zero + one) / 2
    return abs(zero - one) <= 4 * (2 * mean * (1 - mean) / runs) ** 0.5


def selective_failures(rng):
    runs = 1000
    require(not any(aborts(rng, value, as_it_is, numbers(rng)) for value in (0, 1) for _ in range(50)), "an honest run aborts")
    block, bit, any_layer = lambda: rng.getrandbits(127) << 1 | 1, lambda: 1, lambda: rng.randrange(LAYERS)
    cheats = [
        ("a wrong G of A", A, "offers", any_layer, block, 0.5),
        ("a wrong G of B", B, "offers", any_layer, block, 0.5),
        ("a wrong d of A in a leaky AND", A, "d", any_layer, bit, 1),
        ("a wrong d of B in a leaky AND", B, "d", any_layer, bit, 1),
        ("a wrong d of A in a bucket", A, "bits", lambda: 0, bit, 1),
        ("a wrong bit of A at an AND gate", A, "bits", lambda: 1, bit, 1),
        ("a wrong G_0 of A", A, "table", lambda: rng.randrange(CANDIDATES), block, 0.5),
        ("a wrong public value of B", B, "public", lambda: 0, bit, 1),
    ]
    for name, party, kind, number, change, expected in cheats:
        zero, one = rates(rng, party, kind, number, change, runs, numbers(rng))
        print(f"{name}: {zero:.3f} abort where the input is 0, {one:.3f} where it is 1, {expected} expected")
        for rate in (zero, one):
            within(rate, expected, runs, name)
        require(equal(zero, one, runs), f"{name}: aborts depend on the input")
    unmasked = lambda label: 0 if label.startswith("mask/") and "/x/" in label else rng.getrandbits(128)
    zero, one = rates(rng, A, "table", lambda: 0, block, 50, unmasked)
    print(f"a wrong G_0 of A, if inputs had no masks: {zero:.3f} and {one:.3f}")
    require(not equal(zero, one, 50), "inputs without masks are found by aborts")


def main():
    rng = random.Random(1)
    for part in (marks, folds, operand_reused, shifts_chosen, challenge_known, selective_failures):
        part(rng)
