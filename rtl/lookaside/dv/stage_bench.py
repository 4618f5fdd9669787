#!/usr/bin/env python3
"""The bench of lookaside_local and lookaside_join: both stages of products of four parties as workers of the lookaside unit have them.

    python3 rtl/lookaside/dv/stage_bench.py FOLDER [--long] [--seed N]

Each party's command of a layer takes columns and gives messages, codes and shares in the order that the registers' page says; the model of
vectors/model knows what they are. Messages and codes that are not as they were end with a mismatch and zeros.
"""

import argparse
import pathlib
import random
import subprocess
import sys

RTL = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(RTL / "share/dv"))

from cores import RINGS, hexed, require  # noqa: E402
from rep4_bench import ALL, JOINT, PARTIES, Place, Roles, encoded, golden, layer_at, parts_of, tag  # noqa: E402
from rep4_bench import joint_tag  # noqa: E402

OP = {"local": 10, "join": 11}
# Of a stage, from its highest bits: lookaside_pkg::stage_t.
STAGE = [("counter", 64), ("used_1", 16), ("used_0", 16), ("zero", 12), ("with_1", 2), ("with_0", 2), ("to_1", 2), ("to_0", 2)]
STAGE += [("two", 1), ("sends", 3), ("checks", 1), ("sum", 1), ("ring", 2), ("tail", 4)]


def build(folder, top, lanes):
    """The model of a worker's core, flat, so that all of its state lies in one object."""
    out = pathlib.Path(folder).resolve() / f"lookaside_{top}-Lanes{lanes}"
    out.mkdir(parents=True, exist_ok=True)
    folders = [text for place in sorted(RTL.glob("*/rtl")) for text in ("-y", str(place))]
    sources = [*map(str, sorted(RTL.glob("*/rtl/*_pkg.sv"))), str(RTL / f"lookaside/rtl/lookaside_{top}.sv")]
    sources.append(str(RTL / "lookaside/dv/stage_bench.cpp"))
    command = ["verilator", "--cc", "--exe", "--build", "--assert", "-O3", "-Wno-lint", "-Wno-fatal", "--output-split", "5000", "--flatten"]
    flags = "-O1 -std=c++17" + " -DJOIN" * (top == "join")
    command += [f"-GLanes={lanes}", "-CFLAGS", flags, "--top-module", f"lookaside_{top}", "--Mdir", str(out), *folders, *sources]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    return out / f"Vlookaside_{top}"


def packed(fields, values):
    whole = 0
    for name, bits in fields:
        value = int(values.pop(name, 0))
        require(value >> bits == 0, f"{name} has {bits} bits")
        whole = whole << bits | value
    require(not values, f"there are no fields {values}")
    return f"{whole:x}"


class Command:
    """A layer, whose products lie behind one another, as one party's command with so many words in a beat."""

    def __init__(self, layer, roles, lanes, checks, rng):
        self.layer, self.roles, self.lanes, self.checks, self.rng = layer, roles, lanes, checks, rng
        place = layer.place
        self.bytes = sum(len(encoded(place.ring, taken[0][0], roles.me)[0]) for _, taken, _, _ in layer.items)
        self.words = -(-self.bytes // (16 * lanes)) * lanes
        self.fits = self.bytes > 16 * (self.words - 1)  # no word without rows

    def beats(self, columns):
        """Columns of bytes as beats; what lies beyond the end is anything."""
        width = 16 * self.lanes
        padded = [c + self.rng.randbytes(-len(c) % width) for c in columns]
        return [c[at : at + width] for c in padded for at in range(0, len(c), width)]

    def code(self, k, other):
        return self.layer.code(k, self.roles.me, other) + bytes(16 * (self.lanes - 1))

    def head(self, op, words, **stage):
        place = self.layer.place
        others = stage.pop("others") + [0, 0]
        codes = stage.pop("codes") + [0, 0]
        way = [(o - self.roles.me) % 4 - 1 if n < len(others) - 2 else 0 for n, o in enumerate(others)]
        stage |= {"with_0": way[0], "with_1": way[1], "checks": self.checks, "ring": RINGS[place.ring], "sum": place.sum_rows}
        stage |= {"counter": self.layer.number, "used_0": tag("CODE4", codes[0]), "used_1": tag("CODE4", codes[1])}
        draw = joint_tag(0, place.sum_rows) << 112 | place.lane << 96 | place.counter(self.layer.items[0][0]) << 32 | place.chunk
        pairs = [self.layer.pairs[tuple(sorted((self.roles.me, (self.roles.me + step) % 4)))] for step in (1, 2, 3)]
        orders = [f"set pairs {hexed(b''.join(pairs))}"]
        return [*orders, f"command {words << 64 | OP[op]:x} {draw:x} {packed(STAGE, stage)}"]

    def local(self):
        """What the first stage is told, and what comes of it."""
        layer, roles, ring = self.layer, self.roles, self.layer.place.ring
        sends = sum(1 << n for n, k in enumerate(roles.crosses) if k in roles.sends)
        vouches = roles.vouches if self.checks else []
        orders = [f"set form {roles.form()}", *(f"key {n} {hexed(layer.keys[c])}" for n, c in enumerate(parts_of(roles.me)))]
        others = [JOINT[k][1] for k in roles.vouches]
        orders += self.head("local", self.words, others=others, codes=roles.vouches, sends=sends, tail=self.bytes % 16)
        columns = [b"".join(encoded(ring, taken[0][side], roles.me)[p] for _, taken, _, _ in layer.items) for side in (0, 1) for p in range(3)]
        orders += [f"beat {hexed(beat)}" for beat in self.beats(columns)]
        want = [layer.message(k) for k in roles.crosses if k in roles.sends]
        want += [self.code(k, JOINT[k][1]) for k in vouches]
        return orders, want + self.shares(lambda item: layer.left(item, roles))

    def shares(self, of):
        every = [of(item) for item in self.layer.items]
        return [b"".join(columns[p] for columns in every) for p in range(3)]

    def join(self, change=lambda what, n, data: data):
        layer, roles, ring = self.layer, self.roles, self.layer.place.ring
        to = [roles.part(JOINT[k][2]) for k in roles.received]
        two = len(to) == 2
        others = [roles.other(k) for k in roles.received]
        size = len(layer.message(roles.received[0]))
        words = self.lanes if layer.place.sum_rows else self.words
        fields = {"two": two, "to_0": to[0], "to_1": to[1] if two else 0, "tail": size % 16}
        orders = self.head("join", words, others=others, codes=roles.received, **fields)
        columns = self.shares(lambda item: layer.left(item, roles))
        columns += [change("message", n, layer.message(k)) for n, k in enumerate(roles.received)]
        if self.checks:
            columns += [change("code", n, self.code(k, roles.other(k))) for n, k in enumerate(roles.received)]
        orders += [f"beat {hexed(beat)}" for beat in self.beats(columns)]
        return orders, self.shares(lambda item: encoded(ring, item[3], roles.me))


def tell(model, orders):
    done = subprocess.run([model], input="\n".join(orders) + "\n", capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{model}: {done.stdout[-300:]}{done.stderr[-900:]}")
    return [line.split() for line in done.stdout.splitlines()]


def came(lanes, columns):
    """Beats of columns."""
    return sum(-(-len(column) // (16 * lanes)) for column in columns)


def run(model, lanes, commands, name, stalls, rng):
    """Commands one after the other; each gives what is wanted, or refuses. Says how many cycles each took."""
    orders = []
    for tells, want, _ in commands:
        orders += [*tells, f"run {came(lanes, want)} {rng.randrange(1 << 30)} {stalls}"]
    said, cycles = tell(model, orders), []
    for _, want, right in commands:
        for column in want:
            count = came(lanes, [column])
            beats, said = said[:count], said[count:]
            require(all(beat[0] == "out" and beat[2] == str(1 - right) for beat in beats), f"{name}: a mismatch is said where none is, or not")
            data = b"".join(bytes.fromhex(beat[1])[::-1] for beat in beats)
            want_now = column if right else bytes(len(data))
            require(data[: len(want_now)] == want_now, f"{name}: what comes is wrong")
        require(said[0][0] == "cycles", f"{name}: more comes than it should")
        cycles.append(int(said.pop(0)[1]))
    return cycles


def commands_of(layer, lanes, checks, rng):
    """The commands of all parties, if the layer fits one."""
    of = [Command(layer, Roles(me, layer.place.chunk % 2), lanes, checks, rng) for me in PARTIES]
    place = layer.place
    single = all(len(taken) == 1 for _, taken, _, _ in layer.items)
    whole = place.rows == place.chunk_rows and place.rows * place.ring.bits % 128 == 0 and not place.sum_rows
    return of if of[0].fits and single and (len(layer.items) == 1 or whole) else []


def random_layer(rng, ring, lanes, longest, products, summed=False):
    """Columns that end anywhere in their last word; several products are of whole words."""
    per_word = 128 // ring.bits
    words = lanes * rng.randint(1, longest // lanes)
    rows = words * per_word - (rng.randrange(per_word) if products == 1 else 0)
    if products > 1:
        words = rows = words * per_word
    place = Place(ring, rng.randrange(1 << 16), rng.randrange(1 << 32), rng.randrange(1 << 40), rows, rows, summed)
    return layer_at(rng, place, products, (1,))


def lies(model, lanes, rng):
    """Any bit of a message or code that is another one is found, and a right command follows."""
    found = 0
    for me in PARTIES:
        layer = random_layer(rng, rng.choice(ALL), lanes, 12, 1)
        command = commands_of(layer, lanes, 1, rng)[me]
        for what in ("message", "code"):
            for n in range(len(command.roles.received)):

                def change(kind, number, data, what=what, n=n):
                    if (kind, number) != (what, n):
                        return data
                    # Of a code, its first word is looked at.
                    where = rng.randrange(min(16, len(data)) if what == "code" else len(data))
                    bit = rng.randrange(8 if layer.place.ring.bits > 1 else max(1, min(8, layer.place.rows - 8 * where)))
                    return data[:where] + bytes([data[where] ^ 1 << bit]) + data[where + 1 :]

                wrong, right = command.join(change), command.join()
                run(model, lanes, [(*wrong, 0), (*right, 1), (*wrong, 0), (*right, 1)], "a lie", rng.choice([0, 3]), rng)
                found += 2
    return found


def scrubbed(models, lanes, rng):
    """Commands that are cut anywhere, and in their last cycles, leave nothing, and a right one follows."""
    for top, model in models.items():
        for turn in range(6):
            layer = random_layer(rng, rng.choice(ALL), lanes, 12, 2)
            command = commands_of(layer, lanes, 1, rng)[rng.randrange(4)]
            orders, want = getattr(command, top)()
            count = came(lanes, want)
            took = int(tell(model, [*orders, f"run {count} {turn} 2"])[-1][1])
            fed = [bytes.fromhex(f"{order.split()[1]:0>{32 * lanes}}")[::-1] for order in orders if order.startswith("beat")]
            secrets = [*layer.pairs.values(), *layer.keys, *want, *fed]
            halves = {data[at : at + 8] for data in secrets for at in range(0, len(data) - 7, 8)}
            told = [*orders, *(f"secret {hexed(half)}" for half in halves if len(set(half)) > 3)]
            cut = rng.randrange(20, took) if turn < 4 else took - turn
            said = tell(model, [*told, f"cut {cut} {turn} 2", *orders, f"run {count} 1 0"])
            (found,) = [line for line in said if line[0] == "found"]
            require(int(found[1]) > 0 and found[2] == "0", f"{top}: {found} secrets before and after a scrub")
            data = b"".join(bytes.fromhex(line[1])[::-1] for line in said[said.index(found) + 1 :] if line[0] == "out")
            require(data[: len(want[0])] == want[0] and len(data) == 16 * lanes * count, f"{top}: what comes after a scrub is wrong")


def alike(models, lanes, rng):
    """Other keys and shares take as many cycles."""
    for top, model in models.items():
        for ring in ALL:
            seed, place = rng.randrange(1 << 30), None
            cycles = []
            for _ in range(2):
                rows = 12 * 128 // ring.bits
                place = place or Place(ring, 1, 6, 3, rows, rows)
                command = commands_of(layer_at(rng, place, 1, (1,)), lanes, 1, rng)[2]
                cycles.append(run(model, lanes, [(*getattr(command, top)(), 1)], f"{top} twice", 3, random.Random(seed)))
            require(cycles[0] == cycles[1], f"{top}: cycles depend on values: {cycles}")


def check(folder, long, rng):
    for lanes in (1, 4):
        models = {top: build(folder, top, lanes) for top in ("local", "join")}
        layers = [layer for ring in ALL for _, layer in golden(f"rep4_{ring.name}")]
        for ring in ALL:
            for _ in range(6 if long else 2):
                layers += [random_layer(rng, ring, lanes, 16, products, summed) for products, summed in [(1, False), (3, False)]]
                layers += [random_layer(rng, ring, lanes, 16, 1, True)] if ring.bits > 1 else []
        done = 0
        for layer in layers:
            for checks in (1, 0) if long else (rng.choice([1, 1, 1, 0]),):
                for command in commands_of(layer, lanes, checks, rng):
                    for top, model in models.items():
                        run(model, lanes, [(*getattr(command, top)(), 1)], f"{top} of party {command.roles.me}", rng.choice([0, 2, 5]), rng)
                    done += 1
        found = sum(lies(models["join"], lanes, rng) for _ in range(4 if long else 1))
        scrubbed(models, lanes, rng)
        alike(models, lanes, rng)
        print(f"lookaside_local, lookaside_join, {lanes} words in a beat: {done} commands of each right, {found} lies found", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Both stages of products of four parties as workers have them.")
    parser.add_argument("folder")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    check(arguments.folder, arguments.long, random.Random(arguments.seed))


if __name__ == "__main__":
    main()
