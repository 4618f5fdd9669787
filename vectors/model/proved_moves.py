#!/usr/bin/env python3
"""Golden model of moves of words among three parties of whom one may do anything: three steps of a round each, and a proof.

Component c, key c and factor c of the permutation belong to P_c and P_(c+1). In the step of factor c these two put what they hold in its order, and send the third party
what it holds with each of them, behind masks that both of them draw. Then each party proves both of its messages at once, as dzkp.py proves products of bits from its third level on.

    python3 vectors/model/proved_moves.py            write the vectors
    python3 vectors/model/proved_moves.py --check    compare them with what is committed; exit 1 if they differ

Each time it runs, a step of two rows is computed for all factors and masks that a party lacks: what it receives does not depend on the rows. Over a small field messages
are forged, and as many pass as the formula of docs/relations.md says; and two protocols that look alike are broken: weights that the prover knows before it sends, and one
weight for all rows.
"""

import argparse
import itertools
import pathlib
import random
import sys
from collections import Counter

from binary_field import Field
from common import draw, prf_block, prf_stream, require, tag, write_or_check
from dzkp import FIELD, Shape, Transcript, Verifier, accepts, drawn_by_keys, elements, polynomial, seed_of
from dzkp_escapes import best_forgery, within
from moves import Words, all_permutations, inverse, moved, permutation

PARTIES = range(3)
# Masks of what E sends, and of what F sends.
E, F = 5, 6
# Bits of a word of a row's hash.
WORD = 64


class Where:
    """Where draws stand: what dzkp.py's draws need of a place."""

    lane, chunk = 0, 1


# --------------------------------------------------------------------------------------------------- steps


def step(words, c, pi, u, masks):
    """The components after the step of factor c, which is pi; `masks` are those of E and of F."""
    eg, fg = (c + 2) % 3, (c + 1) % 3
    e, f = masks
    out = [None] * 3
    out[eg] = words.add(moved(pi, u[eg]), e)
    out[fg] = words.add(moved(pi, u[fg]), f)
    out[c] = words.add(moved(pi, u[c]), e, f)
    return out


def sent(c):
    """Who sends which component to whom in the step of factor c: E, then F."""
    return [(c, (c + 2) % 3, (c + 2) % 3), ((c + 1) % 3, (c + 2) % 3, (c + 1) % 3)]


class Move:
    """A move of columns, each of `words`: components before each step and after the last one, by column."""

    def __init__(self, columns, pi, sharings, masks, back=False, wrong=()):
        """`masks(c, which, column)` are words; `wrong` are (party, place, column, row) of a bit that a party sends wrong."""
        self.columns, self.pi, self.back, self.masks = columns, pi, back, masks
        self.order = [2, 1, 0] if back else [0, 1, 2]
        self.states, self.messages = [sharings], []
        for number, c in enumerate(self.order):
            factor = inverse(pi[c]) if back else pi[c]
            after = []
            for k, (words, u) in enumerate(zip(columns, self.states[-1])):
                out = step(words, c, factor, u, [masks(c, E, k), masks(c, F, k)])
                for party, place, column, row in wrong:
                    # Place 0 is the party's own step, in which it is E.
                    if column == k and c == (party - place) % 3:
                        out[sent(c)[place][2]][row] ^= 1
                after.append(out)
            for place, (sender, to, component) in enumerate(sent(c)):
                self.messages.append((number, sender, to, place, [out[component] for out in after]))
            self.states.append(after)

    def around(self, c):
        """The components before and after the step of a factor."""
        number = self.order.index(c)
        return self.states[number], self.states[number + 1]


# ----------------------------------------------------------------------------------------------- the proof


def words_of(columns, values):
    """The words of a row: of each column one, or two if it has more bits than a word."""
    out = []
    for words, value in zip(columns, values):
        out.append(value % 2**WORD)
        if words.bits > WORD:
            out.append(value >> WORD)
    return out


class Statement:
    """What is proved about both messages of party i, with keys of words and weights of rows by place."""

    def __init__(self, field, move, i, keys, weights):
        self.field, self.move, self.keys, self.weights = field, move, keys, weights
        rows = len(move.pi[0])
        self.length = -(-rows // WORD) * WORD
        # In place 0 the next party knows the permutation, in place 1 the previous one.
        self.places = [(i, (i + 2) % 3), ((i - 1) % 3, i)]

    def hashes(self, state, component):
        rows = zip(*(u[component] for u in state))
        return [self.field.dot(self.keys, words_of(self.move.columns, row)) for row in rows]

    def padded(self, values):
        return values + [0] * (self.length - len(values))

    def weighted(self, place):
        """By row before the step: the weight of the row that it becomes."""
        pi, weights = self.move.pi[self.places[place][0]], self.weights[place]
        if self.move.back:
            return self.padded(moved(pi, weights[: len(pi)]))
        return self.padded([weights[to] for to in pi])

    def hashed(self, place):
        factor, component = self.places[place]
        return self.padded(self.hashes(self.move.around(factor)[0], component))

    def claim_of_masks(self, place):
        factor, _ = self.places[place]
        drawn = [self.move.masks(factor, (E, F)[place], k) for k in range(len(self.move.columns))]
        rows = [self.field.dot(self.keys, words_of(self.move.columns, row)) for row in zip(*drawn)]
        return self.field.dot(self.weights[place], rows)

    def claim_of_message(self, place):
        factor, component = self.places[place]
        return self.field.dot(self.weights[place], self.hashes(self.move.around(factor)[1], component))

    def halves(self):
        """(vector, claim) of P_(i+1), and of P_(i-1)."""
        right = self.weighted(0) + self.hashed(1), self.claim_of_masks(0) ^ self.claim_of_message(1)
        left = self.hashed(0) + self.weighted(1), self.claim_of_message(0) ^ self.claim_of_masks(1)
        return right, left


class Half(Verifier):
    """A verifier from the third level on: of a vector, and of a share of the claim about the product of both."""

    def __init__(self, shape, vector, claim):
        self.shape, self.vector, self.claim = shape, vector, claim


def shape_of(rows, field=FIELD, later=8):
    """Vectors are as long as those of so many words of products of bits after two levels."""
    return Shape(128 * -(-rows // 64), field=field, later=later) if field is FIELD else Small(rows, field, later)


class Small(Shape):
    """The same over a field of a few bits, of vectors with two elements for each row."""

    def __init__(self, rows, field, later):
        self.field, self.factors = field, (later,) * 3
        length, self.last = 2 * rows, 3
        while length >= later:
            length, self.last = -(-length // later), self.last + 1


def prove(shape, right, left, randomness, forge=None):
    """The proof that the product of both vectors is the sum of both claims: as dzkp.prove from its third level on."""
    result = Transcript()
    verifiers = [Half(shape, *half) for half in (right, left)]
    masks = randomness("PMASK", 0, 0), randomness("QMASK", 0, 0)
    for level in range(3, shape.last + 1):
        halves = [v.vector for v in verifiers]
        if level == shape.last:
            size = shape.factor(level)
            require(len(halves[0]) < size, "the last level has room for a mask")
            halves = [h + [0] * (size - 1 - len(h)) + [m] for h, m in zip(halves, masks)]
        values = polynomial(shape, level, *halves)
        if forge:
            values = forge(level, values, verifiers[0].claim ^ verifiers[1].claim)
        values = [values[x] for x in shape.places(level)]
        drawn = [randomness("SHARE", level, k) for k in range(len(values))]
        share = [v ^ d for v, d in zip(values, drawn)]
        r = randomness("CHAL", level, 0)
        verifiers[0].level(level, share, r)
        verifiers[1].level(level, drawn, r)
        if level < shape.last:
            for verifier in verifiers:
                verifier.fold(level, r)
        result.sent.append(share)
        result.challenges.append(r)
    result.right, result.left = (v.findings(mask, r) for v, mask in zip(verifiers, masks))
    result.accepted = accepts(shape.field, result.right, result.left)
    return result


# -------------------------------------------------------------------------------------------- what is seen


def all_of_a_step():
    """What G is sent is uniform, whatever the factor, the rows and what G holds are."""
    words = Words(1)
    columns = list(itertools.product(range(2), repeat=2))
    for c in PARTIES:
        seen_first = None
        for pi, value, own, other in itertools.product(all_permutations(2), columns, columns, columns):
            u = [None] * 3
            u[(c + 2) % 3], u[(c + 1) % 3] = list(own), list(other)
            u[c] = words.add(list(value), list(own), list(other))
            seen = Counter()
            for masks in itertools.product(columns, repeat=2):
                out = step(words, c, pi, u, [list(m) for m in masks])
                require(words.add(*out) == moved(pi, list(value)), "a step is no move")
                seen[tuple(out[(c + 2) % 3]), tuple(out[(c + 1) % 3])] += 1
            require(seen_first in (None, seen) and set(seen.values()) == {1}, "what G is sent depends on the rows")
            seen_first = seen


def toy(rng, rows, wrong):
    """A random move of a byte a row, with random masks."""
    words = Words(8)
    column = lambda: [rng.randrange(256) for _ in range(rows)]
    drawn = {}

    def masks(c, which, k):
        return drawn.setdefault((c, which, k), column())

    pi = [rng.sample(range(rows), rows) for _ in PARTIES]
    return Move([words], pi, [[column() for _ in PARTIES]], masks, wrong=wrong)


def randomness_of(shape, rng):
    size = shape.field.size

    def randomness(what, level, element):
        return rng.randrange(shape.factor(level) if what == "CHAL" else 0, size)

    return randomness


class Bytes(Statement):
    """A statement over GF(2^8) about bytes: vectors without padding."""

    def padded(self, values):
        return values


def weights_of(rng, rows):
    return [[rng.randrange(256) for _ in range(rows)] for _ in range(2)]


def escapes(rng):
    """Forged messages over GF(2^8): a message with wrong rows passes if its hash or its weight is 0, or if a challenge is a zero of what the forger adds."""
    field, rows, trials = Field(8), 9, 2500
    shape = Small(rows, field, 4)
    passed = 0
    for _ in range(trials):
        move = toy(rng, rows, [(1, rng.randrange(2), 0, rng.randrange(rows))])
        statement = Bytes(field, move, 1, [rng.randrange(256)], weights_of(rng, rows))
        passed += prove(shape, *statement.halves(), randomness_of(shape, rng), best_forgery(shape, rng)).accepted
    # The key, the weight, and each level's challenge.
    caught = (1 - 1 / 256) ** 2
    for level in range(3, shape.last + 1):
        places = shape.factor(level)
        caught *= 1 - (2 * places - 2) / (256 - places)
    within(passed / trials, 1 - caught, trials, "forged moves")
    print(f"forged moves over GF(2^8): {passed} of {trials} pass, {(1 - caught) * trials:.0f} expected")


def broken(rng):
    """Two protocols that look alike, each with what passes in it."""
    field, rows = Field(8), 9
    shape = Small(rows, field, 4)
    # One weight for all rows: two equal errors are none.
    move = toy(rng, rows, [(1, 0, 0, 2), (1, 0, 0, 5)])
    same = [[rng.randrange(1, 256)] * rows for _ in range(2)]
    statement = Bytes(field, move, 1, [rng.randrange(1, 256)], same)
    require(prove(shape, *statement.halves(), randomness_of(shape, rng)).accepted, "equal errors do not cancel")
    # Weights that are known before the message: errors that they cancel.
    weights = weights_of(rng, rows)
    while not (weights[0][2] and weights[0][5]):
        weights = weights_of(rng, rows)
    move = toy(rng, rows, [])
    message = move.around(1)[1][0][0]
    error = rng.randrange(1, 256)
    message[2] ^= error
    message[5] ^= field.mul(error, field.mul(weights[0][2], field.inverse(weights[0][5])))
    statement = Bytes(field, move, 1, [1], weights)
    require(prove(shape, *statement.halves(), randomness_of(shape, rng)).accepted, "known weights find nothing")
    # The same message with other weights does not pass.
    found = 0
    for _ in range(200):
        statement = Bytes(field, move, 1, [1], weights_of(rng, rows))
        found += not prove(shape, *statement.halves(), randomness_of(shape, rng)).accepted
    require(found > 150, "unknown weights find nothing")


# ------------------------------------------------------------------------------------------------- vectors


def keys_under(seed, use, count):
    blocks = [prf_block(seed, use, Where.lane, k, Where.chunk) for k in range(-(-count // 2))]
    return [int.from_bytes(blocks[j // 2][8 * (j % 2) :][:8], "little") for j in range(count)]


def case(name, rows, sizes, kappa, back, wrong=()):
    columns = [Words(8 * size) for size in sizes]
    pi = [permutation(key, tag("PERM3", c), Where.lane, Where.chunk, 0, rows) for c, key in enumerate(kappa)]
    counters = [sum(-(-size * rows // 16) for size in sizes[:k]) for k in range(len(sizes))]

    def masks(c, which, k):
        drawn = prf_stream(kappa[c], tag("MOVE3", which), Where.lane, counters[k], Where.chunk, sizes[k] * rows)
        return columns[k].decode(drawn, rows)

    sharings = [[words.values(f"proved-moves/{name}/{k}/{c}", rows) for c in PARTIES] for k, words in enumerate(columns)]
    move = Move(columns, pi, sharings, masks, back, wrong)
    value = [words.add(*u) for words, u in zip(columns, sharings)]
    clear = value
    for c in move.order:
        clear = [moved(inverse(pi[c]) if back else pi[c], column) for column in clear]
    shape = shape_of(rows)
    proofs = []
    for i in PARTIES:
        seed = seed_of(kappa, Where, i)
        count = sum(1 + (size > 8) for size in sizes)
        weights = [keys_under(seed, tag("DZKP_ROWS", 0x10 | place), rows) for place in range(2)]
        statement = Statement(FIELD, move, i, keys_under(seed, tag("DZKP_ROWS"), count), weights)
        right, left = statement.halves()
        proof = prove(shape, right, left, drawn_by_keys(shape, kappa, Where, i))
        require(proof.accepted == all(party != i for party, *_ in wrong), "a wrong row is found, right ones are not")
        proofs.append(
            {
                "seed": seed.hex(),
                "shares": [elements(share) for share in proof.sent],
                "challenges": [elements([r]) for r in proof.challenges],
                "right": elements(proof.right),
                "left": elements(proof.left),
                "accepted": proof.accepted,
            }
        )
    if not wrong:
        require([words.add(*u) for words, u in zip(columns, move.states[-1])] == clear, "rows that moved")
    hexed = lambda k, column: columns[k].hex(column)
    fields = lambda state: [[hexed(k, u[c]) for c in PARTIES] for k, u in enumerate(state)]
    return {
        "name": name,
        "rows": rows,
        "sizes": sizes,
        "back": back,
        "wrong": [list(w) for w in wrong],
        "permutations": pi,
        "x": fields(sharings),
        "moved": fields(move.states[-1]),
        "messages": [
            {"round": r, "from": a, "to": b, "columns": [hexed(k, column) for k, column in enumerate(message)]}
            for r, a, b, _, message in move.messages
        ],
        "proofs": proofs,
    }


def vectors():
    kappa = [draw(f"proved-moves/key{c}", 16) for c in PARTIES]
    cases = []
    for rows, sizes in ((1, [1]), (2, [4, 16]), (64, [8]), (65, [2, 1, 16]), (129, [4])):
        for back in (False, True):
            name = f"{rows}-{'-'.join(map(str, sizes))}-{'back' if back else 'there'}"
            cases.append(case(name, rows, sizes, kappa, back))
    # In the last step, so that no other message depends on what is wrong.
    for back, party, place in ((False, 2, 0), (False, 0, 1), (True, 0, 0), (True, 1, 1)):
        cases.append(case(f"wrong-{party}-{place}", 5, [1, 16], kappa, back, [(party, place, place, 3)]))
    return {"keys": [k.hex() for k in kappa], "cases": cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    check = parser.parse_args().check
    all_of_a_step()
    rng = random.Random(7)
    escapes(rng)
    broken(rng)
    folder = pathlib.Path(__file__).resolve().parent.parent
    write_or_check(folder, {"proved_moves.json": vectors()}, check, "vectors/model/proved_moves.py")


if __name__ == "__main__":
    main()
