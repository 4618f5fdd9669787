"""The garbler: its capacities, its parts, and its tables beside those of the published one."""

from mapping import COMMANDS, COUNTS, RTL, Yosys, ecp5, name_of, sources, total
from tables import number, table

FILE = RTL / "synth/garble.json"
FAMILIES = ("xilinx", "intel")

# Modules of the core, as the tables name them.
PARTS = {"garble_engine": "engines", "garble_store": "labels", "garble_tables": "tables", "garble_sequencer": "program"}
# A small core, for ECP5.
SMALL = {"Rows": 1, "XorW": 9, "AndW": 9, "InputW": 9, "LinesW": 9, "Bundles": 512, "LabelsIn": 1, "LabelReg": 0}
# The tables of the published accelerator, for the same capacities with two rows.
PAPER = {"lut": 158902, "lutram": 619, "ff": 44497, "bram": 585}
PAPER_PARTS = {"engines": (52975, 10856, 0), "labels": (41539 + 4965, 25116 + 3094, 456 + 64)}


def capacities(rows):
    """Room for 2^13 gates, of which none shares its slot with another, 2^10 inputs, and a program of as many bundles as rows make of them."""
    log = rows.bit_length() - 1
    return {"Rows": rows, "XorW": 13 - log, "AndW": 12 - log, "InputW": 10, "LinesW": 9, "Bundles": 8192 // rows, "LabelsIn": 2}


def measure(results, families, names, save):
    """Rows 1, 2, 4 and 8, or those of `names`, and the clock of a small core."""
    for family in FAMILIES:
        for rows in map(int, (names or ("1", "2", "4", "8")) if family in families else ()):
            measured = {"rows": rows, "capacities": capacities(rows), **core(rows, family)}
            others = [run for run in results.get(family, []) if run["rows"] != rows]
            results[family] = sorted([*others, measured], key=lambda run: run["rows"])
            print(f"{family}, {rows} rows: {measured['total']}", flush=True)
            save()
    if "ecp5" in families:
        results["ecp5"] = ecp5(("garble",), "garble_pins", SMALL, 28)
        print(f"ecp5: {results['ecp5']}", flush=True)
        save()


def core(rows, family):
    """Resources of the whole and of its parts. On Cyclone V there would be more S-boxes than block RAMs."""
    yosys = Yosys(sources("garble"), "garble_core", capacities(rows))
    yosys.run(COMMANDS[family].format("garble_core"))
    modules, count = yosys.modules(), COUNTS[family]
    top = next(name for name in modules if name_of(name) == "garble_core")
    out = {"total": count(total(modules, top))}
    for module, part in PARTS.items():
        cells = {}
        for name, times in modules[top].items():
            if name in modules and name_of(name) == module:
                for kind, inner in total(modules, name).items():
                    cells[kind] = cells.get(kind, 0) + times * inner
        out[part] = count(cells)
    out["rest"] = {key: value - sum(out[part][key] for part in PARTS.values()) for key, value in out["total"].items()}
    return out


def name_of_run(run):
    """What was measured, as the tables name it."""
    return f"N = {run['rows']}" + ("" if run["capacities"].get("LabelsIn", 1) == 2 else ", one label in")


def page(results):
    """The tables of the page."""
    say = []
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
        say.append("### ECP5, placed and routed\n\n" + table(head, rows) + "\n")
    return "\n".join(say)
