"""Builds cores by Verilator, tells them what to do, and reads what they say."""

import pathlib
import re
import subprocess
import sys

RTL = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(RTL.parent / "vectors/model"))

from common import BITS, Z64, Z128  # noqa: E402

RINGS = {BITS: 0, Z64: 1, Z128: 2}
OPS = {name: number for number, name in enumerate(["add", "sub", "scale", "product", "random"])}
# Of a command, from its highest bits: share_pkg::command_t.
FIELDS = [("op", 3), ("ring", 2), ("sum", 1), ("beats", 16), ("pairs", 16), ("tail", 12), ("tag", 16), ("closes", 2)]
FIELDS += [("used", 16), ("lane", 16), ("counter", 64), ("chunk", 32)]


def build(folder, top, flat=False, **parameters):
    """The model of a core, made by Verilator; flat, so that all of its state lies in one object, if states are to be compared."""
    name = "-".join([top, *(f"{k}{v}" for k, v in parameters.items())])
    out = pathlib.Path(folder).resolve() / name
    out.mkdir(parents=True, exist_ok=True)
    folders = [text for place in sorted(RTL.glob("*/rtl")) for text in ("-y", str(place))]
    sources = [*map(str, sorted(RTL.glob("*/rtl/*_pkg.sv"))), str(RTL / f"share/rtl/{top}.sv"), str(RTL / f"share/dv/{top}.cpp")]
    command = ["verilator", "--cc", "--exe", "--build", "--assert", "-O3", "-Wno-lint", "-Wno-fatal", "--output-split", "5000"]
    command += ["--flatten"] * flat
    command += [f"-G{k}={v}" for k, v in parameters.items()] + ["-CFLAGS", "-O1 -std=c++17", "--top-module", top]
    done = subprocess.run([*command, "--Mdir", str(out), *folders, *sources], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    if flat:
        skip_temporaries(out, top)
    return out / f"V{top}"


def skip_temporaries(out, top):
    """Tells the bench what of the state is of the simulator: what its functions and checks of bounds keep of their last call."""
    header = (out / f"V{top}___024root.h").read_text()
    names = sorted(set(re.findall(r"\b(\w*__V(?:func|lvbound)_\w+);", header)))
    state = f"V{top}___024root"
    lines = [f"{{offsetof({state}, {n}), sizeof(static_cast<{state}*>(nullptr)->{n})}}," for n in names]
    text = f'#include "{state}.h"\n#define TEMPORARIES ' + " \\\n  ".join(lines) + "\n"
    path = out / "temporaries.h"
    if path.exists() and path.read_text() == text:
        return
    path.write_text(text)
    (out / f"{top}.o").unlink()
    done = subprocess.run(["make", "-C", str(out), "-f", f"V{top}.mk", f"V{top}"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-4000:])


class Said:
    """What a core printed of a run: beats of each stream, cycles, spans."""

    def __init__(self):
        self.beats, self.cycles, self.spans = {}, None, {}


def tell(model, orders):
    """The runs of a core; whether states were the same counts as one."""
    done = subprocess.run([model], input="\n".join(orders) + "\n", capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{model}: {done.stdout[-300:]}{done.stderr[-900:]}")
    runs, said = [], Said()
    for line in done.stdout.splitlines():
        name, *values = line.split()
        if name == "cycles":
            said.cycles = int(values[0])
            runs.append(said)
            said = Said()
        elif name == "span":
            runs[-1].spans[values[0]] = (int(values[1]), int(values[2]))
        elif name == "same":
            runs.append(values[0] == "1")
        elif name == "differ":
            print(line)
        else:
            said.beats.setdefault(name, []).append(values)
    return runs


def command(**values):
    """The bits of a command."""
    whole = 0
    for name, bits in FIELDS:
        value = int(values.pop(name, {"pairs": 1}.get(name, 0)))
        if value >> bits:
            raise ValueError(f"{name} has {bits} bits")
        whole = whole << bits | value
    if values:
        raise ValueError(f"no fields {values}")
    return f"{whole:x}"


def hexed(data):
    """Bytes, the first one lowest, as a value."""
    return data[::-1].hex()


def whole_beats(rng, columns, width):
    """Columns as bytes, cut into beats; what lies beyond the end is anything."""
    length = len(columns[0])
    if any(len(column) != length for column in columns):
        raise ValueError("columns of different lengths")
    padded = [column + rng.randbytes(-length % width) for column in columns]
    return [[column[at : at + width] for column in padded] for at in range(0, length, width)]


def require(condition, otherwise):
    if not condition:
        sys.exit(f"FAILED: {otherwise}")
