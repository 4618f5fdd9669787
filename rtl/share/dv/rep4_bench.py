"""The benches of rep4_local and rep4_join: both stages of products of four parties."""

import json

from cores import OPS, RINGS, RTL, build, command, hexed, require, tell

# After cores, which says where the models are.
from common import BITS, Z64, Z128, Place  # isort: skip
from rep4 import JOINT, PARTIES, code, joint_tag, product, tag

RAND4 = 0x0D00
ALL = [BITS, Z64, Z128]


def parts_of(me):
    """The components of a party, in its order."""
    return [(me + 1 + p) % 4 for p in range(3)]


class Roles:
    """What a party does with which joint message. Cross terms are with the next party, the previous one, and the one opposite."""

    def __init__(self, me, odd):
        with_party = {(set(pair) - {me}).pop(): k for k, (pair, _, _) in enumerate(JOINT) if me in pair}
        self.me, self.crosses = me, [with_party[(me + step) % 4] for step in (1, 3, 2)]
        self.outside = [k for k, (_, _, outsider) in enumerate(JOINT) if outsider == me]
        self.received = [k for k, (_, receiver, _) in enumerate(JOINT) if receiver == me]
        self.sends = [k for k in self.crosses if JOINT[k][0][odd] == me]
        self.vouches = [k for k in self.crosses if k not in self.sends]
        self.odd = odd

    def form(self):
        """share_pkg::form_t."""
        swapped = parts_of(self.me).index(JOINT[self.crosses[2]][2]) == 2
        draws = self.crosses + self.outside
        subs = sum(k << 3 * d for d, k in enumerate(draws))
        return f"{swapped << 16 | (len(draws) == 5) << 15 | subs:x}"

    def other(self, k):
        """Who vouches for a joint message."""
        return JOINT[k][0][1 - self.odd]

    def part(self, component):
        return parts_of(self.me).index(component)


def encoded(ring, u, me):
    """The components of a party as columns of bytes."""
    return [ring.encode(u[c]) for c in parts_of(me)]


def words(columns, rng):
    """Words of columns side by side, with the bytes that hold rows; any bytes beyond."""
    length = len(columns[0])
    padded = [c + rng.randbytes(-length % 16) for c in columns]
    return [(b"".join(c[at : at + 16] for c in padded), min(16, length - at)) for at in range(0, length, 16)]


class Layer:
    """Products of a layer and chunk by the model: shares, messages, codes."""

    def __init__(self, rng, keys, pairs, place, items, number):
        self.place, self.keys, self.pairs, self.number, self.items = place, keys, pairs, number, []
        for index, taken in items:
            _, sent, u, _ = product(place, keys, index, taken)
            self.items.append((index, taken, sent, u))
        self.rng = rng

    def message(self, k):
        return b"".join(self.place.ring.encode(sent[k]) for _, _, sent, _ in self.items)

    def code(self, k, a, b):
        place = self.place
        key = self.pairs[min(a, b), max(a, b)]
        return code(key, place.lane, tag("CODE4", k), self.number, place.chunk, [self.message(k)])

    def begin(self, ends, me, codes):
        """The beat with which codes of joint messages begin, each with another party."""
        keys = b"".join(self.pairs[min(me, e), max(me, e)] for e in ends)
        used = sum(tag("CODE4", k) << 16 * n for n, k in enumerate(codes))
        return f"push begin {hexed(keys) or '0'} {used:x} {self.place.lane:x} {self.number:x} {self.place.chunk:x}"

    def left(self, item, roles):
        """What the first stage leaves of a product: the shares without what is received."""
        _, _, sent, u = item
        ring, left = self.place.ring, [list(c) for c in u]
        for k in roles.received:
            outsider = JOINT[k][2]
            left[outsider] = ring.sub(left[outsider], sent[k])
        return encoded(ring, left, roles.me)


def gathered(beats, streams):
    """Columns of bytes of a stream, by their tags in order: [tag, [column, ...]]."""
    columns = []
    for values in beats:
        got, size, last = (int(v, 16) for v in values[:3])
        data = bytes.fromhex(values[-1])[::-1]
        if not columns or columns[-1][2]:
            columns.append([got, [b""] * streams, 0])
        require(columns[-1][0] == got, "a column is mixed with another")
        columns[-1][1] = [c + data[16 * n : 16 * n + size] for n, c in enumerate(columns[-1][1])]
        columns[-1][2] = last
    return [(got, list(columns)) for got, columns, _ in columns]


def setting(roles, layer, checks):
    sends = sum(1 << n for n, k in enumerate(roles.crosses) if k in roles.sends)
    orders = [f"set form {roles.form()}", f"set sends {sends:x}", f"set checks {checks:x}"]
    return orders + [f"push key {n} {hexed(layer.keys[c])}" for n, c in enumerate(parts_of(roles.me))]


def first_stage(model, name, rng, layer, roles, stalls, checks=1, extra=()):
    """The products of a layer, and after each what else is to be computed: all that comes is that of the model."""
    ring, place = layer.place.ring, layer.place
    orders = setting(roles, layer, checks)
    if checks:
        orders.append(layer.begin([JOINT[k][1] for k in roles.vouches], roles.me, roles.vouches))
    want = {"result": [], "message0": [], "message1": [], "message2": []}
    beats = 0

    def push(op, pairs, length, tag_of, **fields):
        nonlocal beats
        count = -(-length // 16)
        fields |= {"op": OPS[op], "ring": RINGS[ring], "beats": count, "pairs": max(1, len(pairs)), "tail": length - 16 * (count - 1)}
        orders.append("push command " + command(tag=tag_of, lane=place.lane, chunk=place.chunk, **fields))
        cut = [[words(side, rng) for side in pair] for pair in pairs]
        for beat in range(count if pairs else 0):
            for pair in cut:
                orders.append("push operands " + " ".join(hexed(side[beat][0]) for side in pair))
                beats += 1

    for n, item in enumerate(layer.items):
        index, taken, sent, _ = item
        pairs = [[encoded(ring, u, roles.me), encoded(ring, w, roles.me)] for u, w in taken]
        closes = 3 if n + 1 == len(layer.items) else 0
        length = len(pairs[0][0][0])
        push("product", pairs, length, 2 * n, sum=place.sum_rows, used=joint_tag(0, place.sum_rows), counter=place.counter(index), closes=closes)
        want["result"].append((2 * n, layer.left(item, roles)))
        for c, k in enumerate(roles.crosses):
            if k in roles.sends:
                want[f"message{c}"].append((2 * n, [ring.encode(sent[k])]))
        for op in extra:
            result = beside(rng, op, layer, roles, taken[0], push, 2 * n + 1)
            want["result"].append((2 * n + 1, result))
    (said,) = tell(model, [*orders, f"run {rng.randrange(1 << 30)} {stalls}"])
    for stream, columns in want.items():
        got = gathered(said.beats.get(stream, []), 3 if stream == "result" else 1)
        require(got == columns, f"{name}: {stream} of party {roles.me} is wrong")
    for n in range(2):
        got = [v[0] for v in said.beats.get(f"code{n}", [])]
        due = [layer.code(k, roles.me, JOINT[k][1])[::-1].hex() for k in roles.vouches[n : n + 1]] if checks else []
        require(got == due, f"{name}: code {n} of party {roles.me} is wrong: {got}, {due}")
    return said, beats


def beside(rng, op, layer, roles, operands, push, number):
    """A command without a product, and what has to come of it."""
    ring, place = layer.place.ring, layer.place
    u, w = operands
    count = ring.padded(place.rows)
    length = -(-count * ring.bits // 8)
    if op == "random":
        drawn = [place.stream(layer.keys[c], RAND4, 5) if not place.sum_rows else None for c in PARTIES]
        if place.sum_rows:
            unsummed = Place(ring, place.lane, place.chunk, place.first, place.chunk_rows, place.rows)
            drawn = [unsummed.stream(layer.keys[c], RAND4, 5) for c in PARTIES]
            place = unsummed
        push(op, [], length, number, used=RAND4, counter=place.counter(5))
        return encoded(ring, drawn, roles.me)
    if op == "scale":
        w = [[rng.getrandbits(ring.bits)] * count] * 4
    gate = {"add": ring.add, "sub": ring.sub, "scale": ring.mul}[op]
    result = [gate(a, b) for a, b in zip(u, w)]
    if place.sum_rows:
        result = [[sum(c) & ring.mask] for c in result]
    push(op, [[encoded(ring, u, roles.me), encoded(ring, w, roles.me)]], length, number, sum=place.sum_rows)
    return encoded(ring, result, roles.me)


def joining(rng, layer, roles, checks=1, change=lambda what, n, data: data):
    """Orders of the second stage; `change` may change what came: messages and codes."""
    two = len(roles.received) == 2
    to = sum(roles.part(JOINT[k][2]) << 2 * n for n, k in enumerate(roles.received))
    orders = [f"set two {two:x}", f"set to {to:x}", f"set checks {checks:x}"]
    if checks:
        orders.append(layer.begin([roles.other(k) for k in roles.received], roles.me, roles.received))
    for n, item in enumerate(layer.items):
        closes = 3 if n + 1 == len(layer.items) else 0
        beats = words(layer.left(item, roles), rng)
        for b, (data, size) in enumerate(beats):
            last = b + 1 == len(beats)
            orders.append(f"push shares {RINGS[layer.place.ring]} {hexed(data)} {size:x} {last:x} {closes:x} {n:x}")
    for n, k in enumerate(roles.received):
        message = change("message", n, layer.message(k))
        size = len(message) // len(layer.items)
        for at in range(0, len(message), size):
            orders += [f"push message{n} {hexed(data)}" for data, _ in words([message[at : at + size]], rng)]
        if checks:
            orders.append(f"push code{n} {hexed(change('code', n, layer.code(k, roles.me, roles.other(k))))}")
    return orders


def second_stage(model, name, rng, layer, roles, stalls, checks=1):
    orders = joining(rng, layer, roles, checks)
    (said,) = tell(model, [*orders, f"run {rng.randrange(1 << 30)} {stalls}"])
    want = [(n, encoded(layer.place.ring, item[3], roles.me)) for n, item in enumerate(layer.items)]
    require(gathered(said.beats["result"], 3) == want, f"{name}: shares of party {roles.me} are wrong")
    require(len(said.beats.get("checked", [])) == checks, f"{name}: party {roles.me} is not told that all is right")
    require(said.beats["fails"] == [["0"]], f"{name}: party {roles.me} is told that something is wrong")
    return said


def lies(model, name, rng, layer, roles):
    """Any bit of a message or a code that is not as it was is found, and nothing leaves after it."""
    found = 0
    for what in ("message", "code"):
        for n in range(len(roles.received)):
            for at in (0, -1, None):

                def change(kind, number, data, what=what, n=n, at=at):
                    if (kind, number) != (what, n):
                        return data
                    where = rng.randrange(len(data)) if at is None else at % len(data)
                    return data[:where] + bytes([data[where] ^ 1 << rng.randrange(8)]) + data[where + 1 :]

                orders = joining(rng, layer, roles, 1, change)
                more = [o for o in joining(rng, layer, roles) if o.startswith("push shares") or o.startswith("push message")]
                runs = tell(model, [*orders, "for 4000 1 2", *more, "for 400 1 0"])
                require(runs[0].beats["fails"] == [["1"]] and "checked" not in runs[0].beats, f"{name}: a {what} that was changed is taken")
                require("result" not in runs[1].beats, f"{name}: shares leave after a {what} that was changed")
                found += 1
    return found


def golden(name):
    """The layers of a file of vectors, which the CPU device computes too."""
    vectors = json.loads((RTL.parent / f"vectors/{name}.json").read_text())
    ring = {"bits": BITS, "z64": Z64, "z128": Z128}[vectors["ring"]]
    keys = [bytes.fromhex(k) for k in vectors["keys"]]
    pairs = {(int(p[0]), int(p[1])): bytes.fromhex(k) for p, k in vectors["pairs"].items()}
    for case in vectors["commands"]:
        place = Place(ring, case["lane"], case["chunk"], case["first"], case["chunk_rows"], case["rows"], sum_rows=case["sum_rows"])
        operands = [[ring.decode(bytes.fromhex(c), ring.padded(place.rows)) for c in o["components"]] for o in case["operands"]]
        items = [(n, [(operands[l], operands[r]) for l, r in item["pairs"]]) for n, item in enumerate(case["items"])]
        layer = Layer(None, keys, pairs, place, items, case["layer"])
        # What the model says now is what was written.
        for k, joint in enumerate(case["joint"]):
            said = (layer.message(k).hex(), layer.code(k, joint["backup"], joint["receiver"]).hex())
            require(said == (joint["message"], joint["code"]), f"{name}: the vectors are not those of the model")
        yield case["name"], layer


def random_layer(rng, ring, longest, products, pairs=(1, 1, 2, 5), summed=False):
    rows = rng.randint(1, longest * 128 // ring.bits)
    place = Place(ring, rng.randrange(1 << 16), rng.randrange(1 << 32), rng.randrange(1 << 40), rows + rng.randrange(50), rows, summed)
    return layer_at(rng, place, products, pairs)


def layer_at(rng, place, products, pairs):
    ring = place.ring
    sharing = lambda: [[rng.getrandbits(ring.bits) for _ in range(ring.padded(place.rows))] for _ in PARTIES]  # noqa: E731
    keys = [rng.randbytes(16) for _ in PARTIES]
    of_pairs = {(a, b): rng.randbytes(16) for a in PARTIES for b in range(a + 1, 4)}
    items = [(n, [(sharing(), sharing()) for _ in range(rng.choice(pairs))]) for n in range(products)]
    return Layer(rng, keys, of_pairs, place, items, rng.randrange(1 << 20))


def check_rep4(folder, long, rng):
    join = build(folder, "rep4_join", flat=True)
    folds = [1, 2, 4, 6] if long else [1, 4]
    locals_ = {fold: build(folder, "rep4_local", flat=fold == 4, Fold=fold) for fold in folds}
    layers, found = 0, 0
    for ring in ALL:
        for case, layer in golden(f"rep4_{ring.name}"):
            for me in PARTIES:
                roles = Roles(me, layer.place.chunk % 2)
                for fold in folds if long else [folds[layers % 2]]:
                    first_stage(locals_[fold], f"Fold={fold}, {case}", rng, layer, roles, 0)
                second_stage(join, case, rng, layer, roles, 0)
                layers += 1
    for ring in ALL:
        for turn in range(8 if long else 2):
            for me in PARTIES:
                summed = ring is not BITS and rng.random() < 0.4
                layer, roles = random_layer(rng, ring, 12, rng.choice([1, 2, 5]), summed=summed), Roles(me, rng.randrange(2))
                stalls, checks, extra = rng.choice([0, 3, 6]), rng.choice([1, 1, 0]), rng.sample(["add", "sub", "scale", "random"], 2)
                for fold in folds:
                    first_stage(locals_[fold], f"Fold={fold}, random", rng, layer, roles, stalls, checks, extra)
                second_stage(join, "random", rng, layer, roles, stalls, checks)
                layers += 1
                if turn == 0 and ring is Z128:
                    found += lies(join, "random", rng, layer, roles)
    print(f"rep4_local, rep4_join: {layers} layers right, {found} lies found", flush=True)
    for fold in folds:
        rate(locals_[fold], join, rng, fold)
    scrubbed(locals_[4], join, rng)


def rate(model, join, rng, fold):
    """A product in Fold cycles, and a word of shares per cycle, whatever the values are."""
    counts = set()
    for _ in range(2):
        layer = layer_at(rng, Place(Z128, 0, 1, 0, 24, 24), 4, [1])
        roles = Roles(1, 1)
        said, beats = first_stage(model, f"Fold={fold}, rate", rng, layer, roles, 0)
        require(said.spans["operands"] == ((beats - 1) * fold + 1, beats), f"Fold={fold}: {said.spans['operands']} cycles for {beats} beats")
        second = second_stage(join, "rate", rng, layer, roles, 0)
        require(second.spans["shares"] == (beats, beats), f"rep4_join: {second.spans['shares']} cycles for {beats} words")
        counts.add((said.cycles, second.cycles))
    require(len(counts) == 1, f"Fold={fold}: cycles depend on values: {counts}")


def scrubbed(local, join, rng):
    """The whole state after a run was ended is the same for other keys, shares and messages."""
    roles, place = Roles(0, 0), Place(Z128, 1, 2, 3, 20, 20)
    for after in (20, 60, 90, 150):
        for model, orders_of in ((local, local_orders), (join, lambda rng, layer, roles: joining(rng, layer, roles))):
            orders = []
            for n in range(2):
                layer = layer_at(rng, place, 3, [1])
                layer.number = 7
                orders += ["other"] * n + orders_of(rng, layer, roles)
            (same,) = tell(model, [*orders, f"same {after} 3 {rng.choice([0, 5])}"])
            require(same, f"{model.name}: something is left after a run that was ended in cycle {after}")
    print("rep4_local, rep4_join: nothing is left after a scrub", flush=True)


def local_orders(rng, layer, roles):
    orders = setting(roles, layer, 1) + [layer.begin([JOINT[k][1] for k in roles.vouches], roles.me, roles.vouches)]
    for n, (index, taken, _, _) in enumerate(layer.items):
        columns = [encoded(layer.place.ring, u, roles.me) for u in taken[0]]
        fields = {"op": OPS["product"], "ring": 2, "beats": layer.place.rows, "tail": 16, "tag": n, "closes": 3 * (n == 2), "used": joint_tag(0, False)}
        orders.append("push command " + command(counter=layer.place.counter(index), **fields))
        orders += ["push operands " + " ".join(hexed(side[b][0]) for side in [words(c, rng) for c in columns]) for b in range(layer.place.rows)]
    return orders
