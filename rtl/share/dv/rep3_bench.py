"""The bench of rep3_core."""

import json

from cores import OPS, RINGS, RTL, build, command, hexed, require, tell, whole_beats

# After cores, which says where the models are.
from common import BITS, Z64, Z128, Place  # isort: skip
from rep3 import PARTIES, product, product_tag

SUB_USE = 0x0500  # RAND3


class Job:
    """Commands for one party, and what has to come of them."""

    def __init__(self, rng, me, keys, cores, paper):
        self.rng, self.me, self.cores, self.paper = rng, me, cores, paper
        self.orders = [f"push key {n} {hexed(key)}" for n, key in enumerate([keys[me], keys[me - 1]])]
        self.want, self.beats, self.tag = [], 0, 0

    def words(self, ring, u):
        """The components of a party, as bytes, and in the form of the core."""
        own, previous = u[self.me], u[self.me - 1]
        return [ring.encode(own), ring.encode(ring.add(own, previous) if self.paper else previous)]

    def do(self, op, ring, columns, want, **fields):
        """One command. Columns: a and b of each pair, of each {own, previous}; none if the op has no operands."""
        width = 16 * self.cores
        length = fields.pop("length")
        beats = -(-length // width)
        self.tag += 1
        tail = length - (beats - 1) * width
        self.orders.append(
            "push command "
            + command(op=OPS[op], ring=RINGS[ring], beats=beats, pairs=max(1, len(columns)), tail=tail, tag=self.tag, **fields)
        )
        cut = [[whole_beats(self.rng, side, width) for side in pair] for pair in columns]
        for beat in range(beats if columns else 0):
            for pair in cut:
                self.orders.append("push operands " + " ".join(self.interleave(side[beat]) for side in pair))
                self.beats += 1
        self.want.append((self.tag, op == "product", bool(fields.get("sum")), want))

    def interleave(self, components):
        own, previous = components
        words = [piece[at : at + 16] for at in range(0, len(own), 16) for piece in (own, previous)]
        return hexed(b"".join(words))

    def compare(self, said, name):
        """Whether the beats that came are those that were wanted."""
        beats = iter(said.beats.get("result", []))
        for tag, is_product, is_sum, (own, previous) in self.want:
            got, ended = [b"", b""], False
            while not ended:
                values = next(beats, None)
                require(values is not None, f"{name}: results are missing")
                got_tag, size, last, product_bit = (int(v, 16) for v in values[:4])
                require((got_tag, bool(product_bit)) == (tag, is_product), f"{name}: a result of another command")
                data = bytes.fromhex(values[4])[::-1]
                for part in (0, 1):
                    piece = b"".join(data[at + 16 * part : at + 16 * part + 16] for at in range(0, len(data), 32))
                    got[part] += piece[:size]
                    require(not is_sum or not any(piece[size:]), f"{name}: a sum is more than an element")
                ended = bool(last)
            require(got[0] == own, f"{name}: command {tag}, the own component is wrong")
            require(is_product or got[1] == previous, f"{name}: command {tag}, the previous component is wrong")
        require(next(beats, None) is None, f"{name}: more results than commands have")


def product_command(job, place, kappa, item, pairs, parts=None):
    """A product, and what it has to be, unless that is given."""
    ring = place.ring
    if parts is None:
        parts = product(place, kappa, item, pairs)[1]
    columns = [[job.words(ring, u), job.words(ring, w)] for u, w in pairs]
    fields = {"sum": place.sum_rows, "used": product_tag(ring, place.sum_rows), "lane": place.lane, "chunk": place.chunk}
    rows = ring.padded(place.rows)
    job.do("product", ring, columns, (ring.encode(parts[job.me]), None), counter=place.counter(item), length=-(-rows * ring.bits // 8), **fields)


def golden(job, vectors):
    """Every product of a file of vectors, which the CPU device computes too."""
    for case in vectors["commands"]:
        ring = {"bits": BITS, "z64": Z64, "z128": Z128}[vectors["ring"]]
        place = Place(ring, case["lane"], case["chunk"], case["first"], case["chunk_rows"], case["rows"], sum_rows=case["sum_rows"])
        count = ring.padded(place.rows)
        operands = [[ring.decode(bytes.fromhex(c), count) for c in o["components"]] for o in case["operands"]]
        for number, item in enumerate(case["items"]):
            # What lies beyond the last row of a last byte is masked, so the message alone has it.
            size = len(item["parts"][0]) // 2
            at = sum(len(i["parts"][0]) // 2 for i in case["items"][:number])
            message = bytes.fromhex(case["messages"][job.me])[at : at + size]
            parts = [None] * 3
            parts[job.me] = ring.decode(message, len(message) * 8 // ring.bits)
            product_command(job, place, None, number, [(operands[l], operands[r]) for l, r in item["pairs"]], parts)


def randomly(job, rng, kappa, rings, commands, longest, data=None):
    """Commands of all kinds. `data` draws values, so that shapes can be the same with other values."""
    data = data or rng
    for _ in range(commands):
        ring = rng.choice(rings)
        rows = rng.randint(1, longest * 128 // ring.bits)
        op = rng.choice(["product", "product", "product", "add", "sub", "scale", "random"])
        summed = ring is not BITS and op != "random" and rng.random() < 0.3
        place = Place(ring, rng.randrange(1 << 16), rng.randrange(1 << 32), rng.randrange(1 << 40), rows + rng.randrange(50), rows, summed)
        count = ring.padded(rows)
        length = -(-count * ring.bits // 8)
        column = lambda: [data.getrandbits(ring.bits) for _ in range(count)]  # noqa: E731
        sharing = lambda: [column() for _ in range(3)]  # noqa: E731
        if op == "product":
            pairs = [(sharing(), sharing()) for _ in range(rng.choice([1, 1, 2, 5]))]
            product_command(job, place, kappa, rng.randrange(3), pairs)
            continue
        fields = {"lane": place.lane, "chunk": place.chunk, "counter": place.first, "length": length}
        if op == "random":
            unsummed = place.stream
            drawn = [unsummed(kappa[i], SUB_USE, 0) for i in PARTIES]
            job.do(op, ring, [], tuple(job.words(ring, drawn)), used=SUB_USE, **fields)
            continue
        gate = {"add": ring.add, "sub": ring.sub, "scale": ring.mul}[op]
        columns, result = [], [[0] * count] * 3
        for _ in range(rng.choice([1, 1, 3])):
            u, w = sharing(), [[data.getrandbits(ring.bits)] * count] * 3 if op == "scale" else sharing()
            result = [ring.add(r, gate(a, b)) for r, a, b in zip(result, u, w)]
            columns.append([job.words(ring, u), job.words(ring, w)])
        if summed:
            result = [[sum(c) & ring.mask] for c in result]
        job.do(op, ring, columns, tuple(job.words(ring, result)), sum=summed, **fields)


def keys_of(rng):
    return [rng.randbytes(16) for _ in PARTIES]


def check_rep3(folder, long, rng):
    variants = [(1, 1, 0), (2, 0, 1)] + ([(3, 1, 0), (12, 0, 0)] if long else [])
    for cores, rings, paper in variants:
        name = f"rep3_core of {cores}, {'rings' if rings else 'paper form' if paper else 'bits'}"
        # Of one core: flat models of many take minutes to build.
        model = build(folder, "rep3_core", flat=cores == 1, Cores=cores, Rings=rings, PaperForm=paper)
        there = [BITS, Z64, Z128] if rings else [BITS]
        compared = 0
        for me in PARTIES:
            for ring in there:
                vectors = json.loads((RTL.parent / f"vectors/rep3_{ring.name}.json").read_text())
                kappa = [bytes.fromhex(k) for k in vectors["keys"]]
                job = Job(rng, me, kappa, cores, paper)
                golden(job, vectors)
                for said in tell(model, [*job.orders, "run 1 0"]):
                    job.compare(said, f"{name}, vectors")
                    compared += len(job.want)
            for stalls in (0, 4, 7) if long else (5,):
                kappa = keys_of(rng)
                job = Job(rng, me, kappa, cores, paper)
                randomly(job, rng, kappa, there, 40 if long else 12, 6 * cores)
                # After a run that was ended, everything is as from the start.
                (said,) = tell(model, [*job.orders[: len(job.orders) // 2], f"end {rng.randrange(20, 60)} 1 1", *job.orders, f"run {rng.randrange(1 << 30)} {stalls}"])
                job.compare(said, f"{name}, {stalls} stalls")
                compared += len(job.want)
        rate(model, name, rng, cores, there, paper)
        if cores == 1:
            scrubbed(model, name, rng, cores, there, paper)
        print(f"{name}: {compared} commands right", flush=True)


def rate(model, name, rng, cores, rings, paper):
    """A beat in each cycle, also from command to command, whatever the values are."""
    counts = set()
    for _ in range(2):
        kappa = keys_of(rng)
        job = Job(rng, 1, kappa, cores, paper)
        for ring in rings:
            for k, pairs in enumerate([1, 1, 3, 1]):
                place = Place(ring, 0, 1, 100 * k, 128 * cores * 7 // ring.bits, 128 * cores * 7 // ring.bits)
                sharing = lambda: [[rng.getrandbits(ring.bits) for _ in range(place.rows)] for _ in range(3)]  # noqa: B023, E731
                product_command(job, place, kappa, 0, [(sharing(), sharing()) for _ in range(pairs)])
        (said,) = tell(model, [*job.orders, "run 1 0"])
        job.compare(said, f"{name}, rate")
        require(said.spans["operands"] == (job.beats, job.beats), f"{name}: {said.spans['operands']} cycles for {job.beats} beats")
        counts.add(said.cycles)
    require(len(counts) == 1, f"{name}: cycles depend on values: {counts}")


def scrubbed(model, name, rng, cores, rings, paper):
    """The whole state after a run was ended is the same for other keys and shares."""
    for after in (13, 30, 45, 200):
        shape, orders = rng.randrange(1 << 30), []
        for n in range(2):
            kappa = keys_of(rng)
            job = Job(rng, 2, kappa, cores, paper)
            randomly(job, type(rng)(shape), kappa, rings, 6, 4, rng)
            orders += ["other"] * n + job.orders
        (same,) = tell(model, [*orders, f"same {after} 3 {rng.choice([0, 5])}"])
        require(same, f"{name}: something is left after a run that was ended in cycle {after}")
