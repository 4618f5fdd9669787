"""Authenticated garbling by its definitions, step by step: bits with MACs, openings, leaky ANDs, buckets, the use of triples, garbled gates and their checks.

What an honest party does is here; a cheater gives other messages to the same functions. ag.py writes the vectors, ag_escapes.py cheats.

From: Katz, Ranellucci, Rosulek, Wang, Optimizing Authenticated Garbling for Faster Secure Two-Party Computation, CRYPTO 2018 (leaky ANDs, tables of two
halves); Wang, Ranellucci, Katz, Authenticated Garbling and Efficient Maliciously Secure Two-Party Computation, CCS 2017 (bits with MACs, buckets, Beaver's
step); Gueron, Langley, Lindell, AES-GCM-SIV, RFC 8452 (2019), section 3 (POLYVAL). Both factors of a triple are fresh, and two bits are opened for an AND.
"""

import itertools
from types import SimpleNamespace

from aes128 import Aes128
from binary_field import carry_less, remainder
from common import require
from ot import polyval

# Party A garbles, party B evaluates.
A, B = 0, 1
PARTIES = (A, B)
# Candidates of a layer, at least.
SMALLEST_BATCH = 1 << 10


def le(x):
    return x.to_bytes(16, "little")


def blocks(numbers):
    return b"".join(le(x) for x in numbers)


def xor(*columns):
    return [x ^ y for x, y in zip(*columns, strict=True)] if len(columns) == 2 else xor(columns[0], xor(*columns[1:]))


def conjunction(a, b):
    return [x & y for x, y in zip(a, b, strict=True)]


def as_it_is(_party, _what, values):
    """What an honest party sends: a cheater's message is another function of the same arguments."""
    return values


# --------------------------------------------------------------------------------------------- bits with MACs


def pinned(q, t, x):
    """K and M of a correlated transfer Q = T + x Delta: bit 0 of K is 0, that of M is x."""
    return q >> 1 << 1, t >> 1 << 1 | x


def offset(party, drawn):
    """Bit 0 is 1; bit 1 is 1 of A's offset, 0 of B's."""
    return drawn >> 2 << 2 | (3 if party == A else 1)


class Bits:
    """Bits that both parties share, with MACs: `m[party]` of its own shares, `k[party]` the keys of the other's, entry by entry."""

    def __init__(self, m, k):
        self.m, self.k = m, k

    def __len__(self):
        return len(self.m[A])

    def shares(self, party):
        return [x & 1 for x in self.m[party]]

    def values(self):
        return xor(self.shares(A), self.shares(B))

    def __xor__(self, other):
        return Bits(*([xor(x, y) for x, y in zip(mine, theirs)] for mine, theirs in ((self.m, other.m), (self.k, other.k))))

    def times(self, bits):
        """The products with bits that both parties know."""
        return Bits(*([[bit * x for bit, x in zip(bits, column, strict=True)] for column in side] for side in (self.m, self.k)))

    def plus(self, offsets, *seen):
        """The sums with bits that both parties know, or that each of them has `seen`: A's shares change, and B's keys of them."""
        m = xor(self.m[A], seen[0])
        k = xor(self.k[B], [bit * (offsets[B] ^ 1) for bit in seen[-1]])
        return Bits([m, self.m[B]], [self.k[A], k])

    def rotated(self, shift):
        return Bits(*([column[shift:] + column[:shift] for column in side] for side in (self.m, self.k)))

    def hold(self, offsets):
        """Whether every MAC is right, and bit 0 of every key is 0."""
        for mine in PARTIES:
            other = 1 - mine
            for m, k in zip(self.m[mine], self.k[other], strict=True):
                if k & 1 or m != k ^ (m & 1) * offsets[other]:
                    return False
        return True

    def fields(self):
        return {"m": [blocks(x).hex() for x in self.m], "k": [blocks(x).hex() for x in self.k]}


def dealt(source, offsets, count, values=None):
    """Bits of random transfers, `source(label)` being numbers of 128 bits; with the `values`, if they are given, by B's shares."""
    m, k = [[], []], [[], []]
    for entry, mine in itertools.product(range(count), PARTIES):
        t, x = source(f"{mine}/t/{entry}"), source(f"{mine}/x/{entry}") & 1
        if mine == B and values:
            x = values[entry] ^ m[A][entry] & 1
        key, mac = pinned(t ^ x * offsets[1 - mine], t, x)
        m[mine].append(mac)
        k[1 - mine].append(key)
    return Bits(m, k)


def dealt_triple(source, offsets, count):
    """a, b, and c = a and b."""
    a, b = (dealt(lambda label, of=of: source(f"{of}/{label}"), offsets, count) for of in "ab")
    return a, b, dealt(lambda label: source(f"c/{label}"), offsets, count, conjunction(a.values(), b.values()))


# --------------------------------------------------------------------------------------- folds and openings


def folded(challenge, numbers):
    """POLYVAL under the challenge of the blocks; no length is added."""
    return int.from_bytes(polyval(challenge, blocks(numbers)), "little")


def opened(offsets, bits, party, challenge, fold=folded, sent=as_it_is):
    """The shares that a party tells, and whether the other accepts them, which draws the challenge when it has them all."""
    other = 1 - party
    told = sent(party, "bits", bits.shares(party))
    answer = sent(party, "fold", fold(challenge, bits.m[party]))
    return told, answer == fold(challenge, [k ^ bit * offsets[other] for k, bit in zip(bits.k[other], told, strict=True)])


# The field of POLYVAL.
FIELD = 1 << 128 | 1 << 127 | 1 << 126 | 1 << 121 | 1


def told(offsets, bits, party, challenge, sent=as_it_is):
    """What a participant from outside, which has no keys, computes of the shares that a party tells, and what both parties answer: the sum of the shares, which the
    other party is told, the fold of MACs, and what it must be by the keys and that sum. The last entries are shares that hide the sum."""
    other = 1 - party
    total = folded(challenge, sent(party, "bits", bits.shares(party)))
    expected = folded(challenge, bits.k[other]) ^ remainder(carry_less(total, offsets[other]), FIELD)
    return total, folded(challenge, bits.m[party]), expected


# ---------------------------------------------------------------------------------------- leaky ANDs, buckets


def tweak(party, candidate):
    """Of what a party garbles: candidates are numbered through all batches under a start point."""
    return 2 * candidate + party


def leaky(offsets, a, b, r, first, hash_of, sent=as_it_is):
    """Candidates c = a and b; `hash_of(tweak, x)` is the hash under the start point. By party: `offers` G, `sums` S, `d`, `checks` L."""
    count = len(a)
    own = [xor([bit * offsets[p] for bit in b.shares(p)], b.k[p], b.m[p]) for p in PARTIES]
    zero = [[hash_of(tweak(p, first + i), a.k[p][i]) for i in range(count)] for p in PARTIES]
    one = [[hash_of(tweak(p, first + i), a.k[p][i] ^ offsets[p]) for i in range(count)] for p in PARTIES]
    offers = [xor(zero[p], one[p], own[p]) for p in PARTIES]
    told = [sent(p, "offers", offers[p]) for p in PARTIES]
    sums = []
    for p in PARTIES:
        other, of_p = 1 - p, []
        for i, bit in enumerate(a.shares(p)):
            taken = hash_of(tweak(other, first + i), a.m[p][i]) ^ bit * told[other][i]
            of_p.append(zero[p][i] ^ taken ^ r.k[p][i] ^ r.m[p][i] ^ bit * own[p][i] ^ (r.m[p][i] & 1) * offsets[p])
        sums.append(of_p)
    d = [[x >> 1 & 1 for x in of_p] for of_p in sums]
    seen = [xor(d[p], sent(1 - p, "d", d[1 - p])) for p in PARTIES]
    checks = [[x ^ bit * offsets[p] for x, bit in zip(sums[p], seen[p])] for p in PARTIES]
    return SimpleNamespace(offers=offers, sums=sums, d=d, c=r.plus(offsets, *seen), checks=checks)


def shift(digest, layer, count):
    """By how much a layer is rotated: a number of 128 bits, modulo the candidates of a layer."""
    return int.from_bytes(Aes128(digest[:16]).encrypt(le(layer)), "little") % count


def rotated(layers, shifts):
    """Candidate i of a bucket is candidate i + shift of its layer; layer 0 stands."""
    return [layers[0], *([bits.rotated(by) for bits in layer] for layer, by in zip(layers[1:], shifts, strict=True))]


def differences(turned):
    """The bits d of layers 1, 2, ..., which are opened."""
    return [turned[0][1] ^ layer[1] for layer in turned[1:]]


def combined(turned, d):
    """One triple of each bucket, given what the bits d were opened to."""
    a, b, c = turned[0]
    for (a_k, _, c_k), d_k in zip(turned[1:], d, strict=True):
        a, c = a ^ a_k, c ^ c_k ^ a_k.times(d_k)
    return a, b, c


def layers_of(count, s):
    """Layers of buckets for batches of so many candidates: as few as give count^(layers - 1) > 2^s, which counts no factor 2^-layers."""
    require(count >= SMALLEST_BATCH, f"a batch of {count} candidates is too small")
    return next(layers for layers in itertools.count(2) if count ** (layers - 1) > 1 << s)


# ------------------------------------------------------------------------------------------------- garbling


def used(offsets, triple, epsilon, delta):
    """Sharings of the AND of two masks, given what their differences from a triple's factors were opened to."""
    a, b, c = triple
    return (c ^ b.times(epsilon) ^ a.times(delta)).plus(offsets, conjunction(epsilon, delta))


def garbled(hash_of, gate, delta, a, b, of_a, of_b, of_result):
    """The table G_0, G_1, z of an AND and the label of its result, of labels of the public value 0; `of_x` are A's parts of mask · Delta_A."""
    left, right = (hash_of(2 * gate + k, x) for k, x in enumerate((a, b)))
    zero = left ^ hash_of(2 * gate, a ^ delta) ^ of_b
    one = right ^ hash_of(2 * gate + 1, b ^ delta) ^ a ^ of_a
    label = left ^ right ^ of_result
    z = label >> 1 & 1
    return (zero, one, z), label ^ z << 1


def evaluated(hash_of, gate, table, a, b, of_a, of_b, of_result):
    """The label of the result, whose bit 1 is its public value; `of_x` are B's parts of mask · Delta_A."""
    zero, one, z = table
    label = hash_of(2 * gate, a) ^ hash_of(2 * gate + 1, b) ^ of_result
    if a >> 1 & 1:
        label ^= zero ^ of_b
    if b >> 1 & 1:
        label ^= one ^ a ^ of_a
    return label ^ z << 1


def parts(offsets, bits):
    """What A and B have of bit · Delta_A."""
    return xor([bit * offsets[A] for bit in bits.shares(A)], bits.k[A]), bits.m[B]


class Run:
    """A circuit on rows, at both sides. A gate is its kind and its operands; results are numbered behind the inputs."""

    def __init__(self, source, offsets, hash_of, first, layers, inputs, triples=None, fold=folded, sent=as_it_is):
        """`inputs` are the values of wires, by wire and row; `triples(product)` those of all rows, or they are dealt."""
        self.source, self.offsets, self.hash_of, self.first = source, offsets, hash_of, first
        self.triples = triples or (lambda product: dealt_triple(self.under(f"triple/{product}"), offsets, self.rows))
        self.rows, self.fold, self.sent, self.accepted = len(inputs[0]), fold, sent, True
        # By wire: bits, masks, labels of the public value 0 at A, labels at B. By product: operands, result, sharing of σ + mask, tables.
        self.values, self.masks, self.zero, self.active, self.products = [], [], [], [], []
        for wire, values in enumerate(inputs):
            mask = dealt(self.under(f"mask/{wire}"), offsets, self.rows)
            zero = [source(f"label/{wire}/{row}") & ~2 for row in range(self.rows)]
            public = xor(values, mask.values())
            self.put(values, mask, zero, [w ^ bit * offsets[A] for w, bit in zip(zero, public)])
        for kind, *operands in itertools.chain(*layers):
            getattr(self, kind)(*operands)

    def under(self, name):
        return lambda label: self.source(f"{name}/{label}")

    def put(self, values, mask, zero, active):
        for column, of in ((self.values, values), (self.masks, mask), (self.zero, zero), (self.active, active)):
            column.append(of)

    def xor(self, a, b):
        self.put(*(f(x[a], x[b]) for f, x in ((xor, self.values), (Bits.__xor__, self.masks), (xor, self.zero), (xor, self.active))))

    def inverse(self, a):
        ones = [1] * self.rows
        self.put(xor(self.values[a], ones), self.masks[a].plus(self.offsets, ones), self.zero[a], self.active[a])

    def open(self, bits, name):
        """What bits are opened to, each party telling its shares."""
        told = [opened(self.offsets, bits, p, self.source(f"{name}/{p}"), self.fold, self.sent) for p in PARTIES]
        self.accepted &= all(accepted for _, accepted in told)
        return xor(*(shares for shares, _ in told))

    def product(self, a, b):
        number = len(self.products)
        mask = dealt(self.under(f"mask of product/{number}"), self.offsets, self.rows)
        triple = self.triples(number)
        epsilon, delta = (self.open(self.masks[x] ^ factor, f"{number}/{x}") for x, factor in ((a, triple[0]), (b, triple[1])))
        sharing = used(self.offsets, triple, epsilon, delta) ^ mask
        of = [parts(self.offsets, bits) for bits in (self.masks[a], self.masks[b], sharing)]
        tables, zero, active = [], [], []
        for row in range(self.rows):
            gate = (self.first + number) << 16 | row
            of_a, of_b = ([part[side][row] for part in of] for side in PARTIES)
            table, label = garbled(self.hash_of, gate, self.offsets[A], self.zero[a][row], self.zero[b][row], *of_a)
            tables.append(self.sent(A, "table", table))
            zero.append(label)
            active.append(evaluated(self.hash_of, gate, tables[-1], self.active[a][row], self.active[b][row], *of_b))
        self.put(conjunction(self.values[a], self.values[b]), mask, zero, active)
        self.products.append(SimpleNamespace(operands=(a, b), result=len(self.zero) - 1, sharing=sharing, tables=tables))

    def public(self, wire):
        """The values that B sees."""
        return [label >> 1 & 1 for label in self.active[wire]]

    def label_folds(self, challenge):
        """What A computes, of the public values that B tells, and what B sends: products in order, and of each its rows."""
        wanted, sent = [], []
        for product in self.products:
            told = self.sent(B, "public", self.public(product.result))
            wanted += [w ^ bit * self.offsets[A] for w, bit in zip(self.zero[product.result], told)]
            sent += self.active[product.result]
        return self.fold(challenge, wanted), self.fold(challenge, sent)

    def mask_folds(self, challenge):
        """What A sends and what B computes: MACs and keys of bits that are 0. A has the public values once the labels are checked."""
        sent, wanted = [], []
        for product in self.products:
            a, b = product.operands
            of_a, of_b = self.public(a), self.public(b)
            tau = product.sharing ^ self.masks[b].times(of_a) ^ self.masks[a].times(of_b)
            sent += tau.m[A]
            # The public part is B's: its share is A's if the bit is 0.
            share = xor(tau.shares(B), conjunction(of_a, of_b), self.public(product.result))
            wanted += [k ^ bit * self.offsets[B] for k, bit in zip(tau.k[B], share)]
        return self.fold(challenge, sent), self.fold(challenge, wanted)
