"""What a cheater reaches against the proof of dzkp.py, and what a verifier sees: measured and enumerated over small fields.

    python3 vectors/model/dzkp.py --escapes

Forgers follow the best strategies known; each rate stands beside the formula of docs/protocol-rep3.md. Then come the proof's conditions, each with the attack
that succeeds for certain without it, and the views of both verifiers over GF(4), for all draws that they lack.
"""

import random
import sys
from collections import Counter
from itertools import product as cartesian

from binary_field import Field
from dzkp import Shape, Verifier, accepts, prove, statement, words_of
from common import require

BYTE, SHORT, LONG = Field(8), Field(16), Field(64)


def batch(rng, shape, rows, wrong=()):
    """(a, c, e), (b, d, f) of products of `rows` rows in one column; those of `wrong` rows do not hold."""
    bits = [[rng.getrandbits(1) for _ in range(5)] for _ in range(rows)]
    bits = [[a, b, c, d, a & b ^ c & d ^ f ^ (row in wrong), f] for row, (a, b, c, d, f) in enumerate(bits)]
    a, b, c, d, e, f = (words_of([row[k] for row in bits], shape.field.bits) for k in range(6))
    return [a, c, e], [b, d, f]


def drawn(shape, rng, fixed=None):
    """What keys give: uniform, but for what is `fixed`, by (what, level)."""

    def randomness(what, level, element):
        if fixed and (what, level) in fixed:
            return fixed[what, level]
        if what == "KEYS":
            return [rng.randrange(shape.field.size) for _ in range(element)]
        return rng.randrange(shape.factor(level) if what == "CHAL" else 0, shape.field.size)

    return randomness


# ------------------------------------------------------------------------------------------------- forgers


def best_forgery(shape, rng, tries=1, zeros_of=None):
    """Adds a polynomial that makes the claims right and has as many zeros as can be among possible challenges: of level 1 the values at the places of claims are
    given, so that L - 1 zeros are free, and more come by search; of later levels the sum is given, and all zeros are free. `zeros_of` gets what was added."""
    field = shape.field

    def forge(level, values, wanted):
        size = shape.factor(level)
        challenges = range(size, min(field.size, 1 << 30))
        if level == 1:
            missing = [w ^ v for w, v in zip(wanted, values)]
            if not any(missing):
                return values
            best = None
            for _ in range(tries):
                points = list(range(size)) + rng.sample(challenges, size - 1)
                added = [field.dot(field.coefficients(points, x), missing + [0] * (size - 1)) for x in range(2 * size - 1)]
                count = zeros(field, added, size) if tries > 1 else size - 1
                best = max(best or (-1, None), (count, added))
            added = best[1]
        else:
            of_sum = lambda values: sum_of(values[: shape.summed(level)])
            missing = wanted ^ of_sum(values)
            if not missing:
                return values
            while True:
                at = rng.sample(challenges, 2 * size - 2)
                added = [field.product(x ^ z for z in at) for x in range(2 * size - 1)]
                if of_sum(added):
                    break
            scale = field.mul(missing, field.inverse(of_sum(added)))
            added = [field.mul(scale, x) for x in added]
        if zeros_of is not None:
            zeros_of[level] = added
        return [v ^ x for v, x in zip(values, added)]

    return forge


def sum_of(values):
    result = 0
    for v in values:
        result ^= v
    return result


def zeros(field, values, first):
    """Possible challenges at which the polynomial with these values at 0, 1, ... is 0."""
    return len(challenges_of(field, values, first))


def challenges_of(field, values, first):
    """Newton's form of the polynomial, evaluated everywhere."""
    differences = list(values)
    for step in range(1, len(values)):
        for at in range(len(values) - 1, step - 1, -1):
            rise = differences[at] ^ differences[at - 1]
            differences[at] = field.mul(rise, field.inverse(at ^ at - step))
    found = []
    for x in range(first, field.size):
        result = 0
        for place in range(len(values) - 1, -1, -1):
            result = field.mul(result, x ^ place) ^ differences[place]
        if not result:
            found.append(x)
    return found


def caught(shape, first):
    """What is left of a forger who has `first` zeros at level 1."""
    size = shape.field.size
    result = (1 - 1 / size) * (1 - first / (size - shape.factor(1)))
    for level in range(2, shape.last + 1):
        places = shape.factor(level)
        result *= 1 - (2 * places - 2) / (size - places)
    return result


def within(rate, expected, trials, what):
    if abs(rate - expected) > 4 * (expected * (1 - expected) / trials) ** 0.5:
        sys.exit(f"{what}: not as many as the formula says")


def escapes(rng):
    for pieces, second, later, rows, wrong, trials in ((8, 4, 4, 60, {0, 1, 2, 5}, 1500), (32, 4, 8, 256, {9}, 150)):
        shape = Shape(-(-rows // 8), None, BYTE, pieces, second, later)
        passed = sum(
            prove(shape, *batch(rng, shape, rows, wrong), drawn(shape, rng), best_forgery(shape, rng)).accepted for _ in range(trials)
        )
        expected, bound = 1 - caught(shape, pieces - 1), 1 - caught(shape, 2 * pieces - 2)
        print(f"GF(2^8), {pieces} pieces, errors in one: {passed / trials:.4f} pass, {expected:.4f} expected, {bound:.4f} at most")
        within(passed / trials, expected, trials, "errors in one piece")
    shape = Shape(8, None, BYTE, 8, 4, 4)
    passed, trials, expected = 0, 150, 0.0
    for _ in range(trials):
        added = {}
        proof = prove(shape, *batch(rng, shape, 64, set(range(0, 64, 8))), drawn(shape, rng), best_forgery(shape, rng, 12, added))
        passed += proof.accepted
        expected += 1 - caught(shape, zeros(BYTE, added[1], 8)) if 1 in added else 1
    bound = 1 - caught(shape, 14)
    print(f"GF(2^8), 8 pieces, errors in all, best of 12: {passed / trials:.4f} pass, {expected / trials:.4f} expected, {bound:.4f} at most")
    within(passed / trials, expected / trials, trials, "errors in all pieces")


def zeros_counted(rng):
    """Over GF(2^16) with the sizes of the protocol: all challenges of a level, of which a forger has as many as the formula says; and with such a one the proof
    passes, with another one it does not."""
    shape = Shape(40, None, SHORT)
    added = {}
    right, left = batch(rng, shape, 600, {3, 77})
    keys = [rng.randrange(1, SHORT.size) for _ in range(shape.per_piece)]
    fixed = {("KEYS", 0): keys}
    prove(shape, right, left, drawn(shape, rng, fixed), best_forgery(shape, rng, 1, added))
    counts = {level: zeros(SHORT, values, shape.factor(level)) for level, values in added.items()}
    wrong_pieces = len({row // 16 // shape.per_piece for row in (3, 77)})
    print(f"GF(2^16), 32 pieces, errors in {wrong_pieces}: challenges that pass, by level: {counts}; at most 62, then 6, then 14")
    require(31 <= counts[1] <= 30 + wrong_pieces and counts[2] == 6, "zeros of the best forger")
    require(all(count == 14 for level, count in counts.items() if level > 2), "zeros of the best forger")
    hit = challenges_of(SHORT, added[1], 32)

    def same(level, values, wanted):
        return [v ^ x for v, x in zip(values, added[1])] if level == 1 else values

    for x in hit[:4]:
        require(prove(shape, right, left, drawn(shape, rng, fixed | {("CHAL", 1): x}), same).accepted, "a zero passes")
    for _ in range(4):
        x = rng.choice([x for x in range(32, SHORT.size) if x not in hit])
        proof = prove(shape, right, left, drawn(shape, rng, fixed | {("CHAL", 1): x}), same)
        require(not proof.accepted, "another challenge does not")
    shape = Shape(2)
    require(not any(prove(shape, *batch(rng, shape, 100, wrong), drawn(shape, rng), best_forgery(shape, rng)).accepted
                    for wrong in ({5}, {5, 6}, {5, 69})), "a forged proof over GF(2^64) passes")  # fmt: skip


# ------------------------------------------------------------------------------------------ the conditions


def cancelling(rng):
    """Pairs of equal errors: how often the weights hide them, and how often other weights would."""
    for error in range(1, BYTE.size):
        hidden = sum(BYTE.mul(key, error) == 0 for key in range(BYTE.size))
        require(hidden == 1, "each error in a word is hidden by the key 0 alone")
    words, trials = 3, 4000
    for name, places in (("in a word", (0, 5)), ("in two words", (1, 9)), ("in two pieces", (1, 25))):
        hidden = Counter()
        for _ in range(trials):
            keys = [rng.randrange(BYTE.size) for _ in range(words)]
            claims, plain, by_word = [Counter() for _ in range(3)]
            for place in places:
                piece, position = divmod(place, 8 * words)
                weight = BYTE.mul(keys[position // 8], 1 << position % 8)
                claims[piece] ^= weight
                plain[piece] ^= 1
                by_word[piece] ^= keys[position // 8]
            hidden["as specified"] += not any(claims.values())
            hidden["one claim for all pieces"] += not sum_of(claims.values())
            hidden["no weights"] += not any(plain.values())
            hidden["one weight for a word"] += not any(by_word.values())
        rates = {what: round(count / trials, 4) for what, count in sorted(hidden.items())}
        print(f"GF(2^8), two equal errors {name}: hidden {rates}")
        require(hidden["as specified"] / trials < 1 / 256 + 4 * (1 / 256 / trials) ** 0.5, "weights hide errors too often")
    require(rates["one claim for all pieces"] == 1, "equal errors in two pieces cancel in one claim")


def dependent(vectors):
    """A set of vectors over GF(2) that add up to 0, as a mask; None if there is none."""
    rows = {}
    for n, vector in enumerate(vectors):
        of = 1 << n
        while vector and vector.bit_length() in rows:
            other, others = rows[vector.bit_length()]
            vector, of = vector ^ other, of ^ others
        if not vector:
            return of
        rows[vector.bit_length()] = vector, of
    return None


def weights_known(rng):
    """Who knows the weights before the bits are fixed finds wrong bits that weigh nothing, and proves them honestly: 65 in two words do."""
    shape = Shape(64)
    keys = [rng.randrange(LONG.size) for _ in range(2)]
    weights = [LONG.mul(keys[p // 64], 1 << p % 64) for p in range(65)]
    pattern = dependent(weights)
    wrong = {p for p in range(65) if pattern >> p & 1}
    right, left = batch(rng, shape, 65, wrong)
    require(prove(shape, right, left, drawn(shape, rng, {("KEYS", 0): keys})).accepted, "known weights are forged")
    require(not prove(shape, right, left, drawn(shape, rng)).accepted, "weights that were not known are not")
    print(f"GF(2^64), weights known before the products are sent: {len(wrong)} wrong bits pass for certain")


def inputs_late(rng):
    """The same without knowing weights when products are sent, if P_(i+1) tells the seed while P_(i-1) still waits for an input of P_i: P_i computes its products
    with one value of the input, hears the seed, and then supplies another value, so that the products that are wrong now weigh nothing."""
    # One piece of four words; the others are zero. A product changes with the input in the rows where P_i's components of the other factor differ: half of all.
    shape, rows = Shape(128), 256
    bit = lambda: [rng.getrandbits(1) for _ in range(rows)]
    u, w, rho = ([bit() for _ in range(3)] for _ in range(3))
    sent = [(u[0][k] ^ u[2][k]) & (w[0][k] ^ w[2][k]) ^ u[0][k] & w[0][k] ^ rho[0][k] ^ rho[2][k] for k in range(rows)]
    keys = [rng.randrange(LONG.size) for _ in range(4)]
    open_to_change = [k for k in range(rows) if u[0][k] ^ u[2][k]]
    pattern = dependent([LONG.mul(keys[k // 64], 1 << k % 64) for k in open_to_change]) or 0
    changed = {k for n, k in enumerate(open_to_change) if pattern >> n & 1}
    require(changed, "of more than 64 rows some set weighs nothing")
    w[2] = [bit ^ (k in changed) for k, bit in enumerate(w[2])]
    gates = [[([c[k] for c in u], [c[k] for c in w], [c[k] for c in rho], [sent[k], 0, 0]) for k in range(rows)]]
    right, left = statement(0, gates)
    value = lambda k: (u[0][k] ^ u[2][k]) & (w[0][k] ^ w[2][k]) ^ u[0][k] & w[0][k] ^ rho[0][k] ^ rho[2][k]
    require({k for k in range(rows) if value(k) != sent[k]} == changed, "exactly the products of changed inputs are wrong")
    require(prove(shape, right, left, drawn(shape, rng, {("KEYS", 0): keys})).accepted, "inputs that come late are forged")
    require(not prove(shape, right, left, drawn(shape, rng)).accepted, "a seed that was not known is not forged")
    print(f"GF(2^64), an input that P_(i-1) gets after the seed was told: {len(changed)} wrong bits pass for certain")


def challenge_known(rng):
    shape = Shape(1)
    known = rng.randrange(32, LONG.size)

    def forge(level, values, wanted):
        if level > 1:
            return values
        missing = [w ^ v for w, v in zip(wanted, values)]
        points = list(range(32)) + [known] + [33 + 7 * n for n in range(30)]
        return [v ^ LONG.dot(LONG.coefficients(points, x), missing + [0] * 31) for x, v in enumerate(values)]

    proof = prove(shape, *batch(rng, shape, 40, {3}), drawn(shape, rng, {("CHAL", 1): known}), forge)
    require(proof.accepted, "a known challenge is forged")
    print("GF(2^64), a challenge known before its share: passes for certain")


# -------------------------------------------------------------------------------------------------- views


def toy():
    """Two bits a word, two pieces, folds by two: seven shared values."""
    return Shape(2, None, Field(2), 2, 2, 2)


def other_shares(shape, transcript):
    """How P_(i-1)'s share of the last product depends on each value that it draws."""
    count = [len(shape.places(level)) for level in range(1, shape.last + 1)]
    factors = []
    for at in range(sum(count)):
        verifier = Verifier(shape, [0] * shape.per_piece, [[0] * shape.words] * 3, False)
        units = iter(int(n == at) for n in range(sum(count)))
        for level, values in enumerate(count, 1):
            verifier.level(level, [next(units) for _ in range(values)], transcript.challenges[level - 1])
        factors.append(verifier.claim)
    return factors


def view_of_next(shape, right, left, known, told=None):
    """Of P_(i+1), for all draws and masks that it lacks: how often it receives which shares, and with them which findings."""
    field, shares, all_of_it = shape.field, Counter(), Counter()
    for mask in range(field.size):
        fixed = {("QMASK", 0): mask} | {("SHARE", level): 0 for level in range(1, shape.last + 1)}
        proof = prove(shape, right, left, drawn(shape, None, known | fixed), told=told)
        values = [value for share in proof.sent for value in share]
        factors = other_shares(shape, proof)
        tables = [[field.mul(factor, draw) for draw in range(field.size)] for factor in factors]
        for draws in cartesian(range(field.size), repeat=len(values)):
            claim = proof.left[1]
            for table, draw in zip(tables, draws):
                claim ^= table[draw]
            sent = tuple(value ^ draw for value, draw in zip(values, draws))
            shares[sent] += 1
            all_of_it[sent, proof.left[0], claim] += 1
    return shares, all_of_it


def view_of_previous(shape, right, left, known):
    """Of P_(i-1), whose shares are its own draws: the findings of the other one, for all masks that it lacks."""
    masks = range(shape.field.size)
    return Counter(prove(shape, right, left, drawn(shape, None, known | {("PMASK", 0): mask})).right for mask in masks)


def known_of(shape, rng):
    known = {("KEYS", 0): [rng.randrange(1, 4) for _ in range(shape.per_piece)]}
    known |= {("CHAL", level): rng.randrange(2, 4) for level in range(1, shape.last + 1)}
    known |= {("SHARE", level): rng.randrange(4) for level in range(1, shape.last + 1)}
    return known | {("PMASK", 0): rng.randrange(4), ("QMASK", 0): rng.randrange(4)}


def completed(shape, gates):
    """(a, c, e), (b, d, f) of gates (a, b, c, d, f)."""
    gates = [(a, b, c, d, a & b ^ c & d ^ f, f) for a, b, c, d, f in gates]
    a, b, c, d, e, f = (words_of([gate[k] for gate in gates], 2) for k in range(6))
    return [a, c, e], [b, d, f]


def views(rng):
    shape = toy()
    shared = sum(len(shape.places(level)) for level in range(1, shape.last + 1))
    bits = lambda count: [rng.getrandbits(1) for _ in range(count)]
    for _ in range(4):
        known, seen = known_of(shape, rng), None
        mine = [bits(3) for _ in range(3)]
        for _ in range(3):
            hidden = [bits(2) for _ in range(3)]
            gates = [(a, b, c, d, a & b ^ c & d ^ e) for (a, c, e), (b, d) in zip(mine, hidden)]
            _, view = view_of_next(shape, *completed(shape, gates), known)
            require(seen is None or view == seen, "the view of P_(i+1) depends on what it lacks")
            seen = view
        require(len(seen) == 4 ** (shared + 1) and set(seen.values()) == {1}, "it is uniform but for the last equation")
    for _ in range(8):
        known, seen = known_of(shape, rng), None
        mine = [bits(3) for _ in range(3)]
        for hidden in cartesian(range(2), repeat=6):
            gates = [(a, b, c, d, f) for (b, d, f), a, c in zip(mine, hidden[:3], hidden[3:])]
            view = view_of_previous(shape, *completed(shape, gates), known)
            require(seen is None or view == seen, "the view of P_(i-1) depends on what it lacks")
            seen = view
    print(f"GF(4), all {4 ** (shared + 1)} draws that a verifier lacks: both views are the same whatever it does not know")
    told_of = {
        "seed": lambda what, level, value: [key ^ 1 if key != 1 else 2 for key in value] if what == "KEYS" else value,
        "challenge": lambda what, level, value: 5 - value if (what, level) == ("CHAL", 1) else value,
    }
    for name, told in told_of.items():
        differ = 0
        for _ in range(3):
            known = known_of(shape, rng) | {("CHAL", level): 3 for level in range(1, shape.last + 1)}
            views_told, first = [], None
            for b, d in ((0, 0), (1, 0), (0, 1)):
                mine = [(1, 0, 0), (1, 1, 0), (0, 1, 0)]
                gates = [(a, b, c, d, a & b ^ c & d ^ e) for a, c, e in mine]
                shares, view = view_of_next(shape, *completed(shape, gates), known, told)
                require(first is None or shares == first, "shares alone depend on nothing")
                first = shares
                views_told.append(view)
            differ += any(view != views_told[0] for view in views_told)
        require(differ, f"without an echo another {name} tells something")
        print(f"GF(4), P_(i+1) tells the prover another {name}: with findings its view depends on what it lacks in {differ} of 3 cases, before them in none")


def wrong_findings(rng):
    """A verifier that reports other findings: accepted for one of all masks that it lacks, whatever the values are."""
    shape = Shape(4, None, BYTE, 4, 4, 4)
    for _ in range(3):
        right, left = batch(rng, shape, 30)
        keys = [rng.randrange(256) for _ in range(shape.per_piece)]
        fixed = {("KEYS", 0): keys, ("PMASK", 0): 9} | {("CHAL", level): 77 for level in range(1, shape.last + 1)}
        fixed |= {("SHARE", level): 5 for level in range(1, shape.last + 1)}
        accepted = 0
        for mask in range(256):
            proof = prove(shape, right, left, drawn(shape, rng, fixed | {("QMASK", 0): mask}))
            require(proof.accepted, "a right proof passes")
            lie = proof.right[0] ^ 1, proof.right[1] ^ 7
            accepted += accepts(BYTE, lie, proof.left)
        require(accepted == 1, "a lie is right for one mask")
    print("GF(2^8), wrong findings: accepted for 1 of 256 masks, whatever the values are")


def main():
    rng = random.Random(1)
    for part in (escapes, zeros_counted, cancelling, weights_known, inputs_late, challenge_known, views, wrong_findings):
        part(rng)
