"""The cores of replicated sharing, and a node of the network: which are measured, their parts, and their tables beside published ones."""

import tempfile

from mapping import COMMANDS, COUNTS, RTL, Yosys, ecp5, parts, sources, total
from tables import number, table

FILE = RTL / "synth/share.json"
FAMILIES = ("xilinx", "intel")


def rep3(cores, rings):
    """A design: name, module and parameters."""
    return (f"rep3_core, {'with rings' if rings else 'bits'}, {cores}", "rep3_core", {"Cores": cores, "Rings": int(rings)})


# What is mapped together, so that modules that several cores have are mapped once: the folders of sources, and designs.
GROUPS = {
    "bits": (("garble", "share"), [rep3(cores, False) for cores in (1, 2, 4, 8)]),
    "rep4": (
        ("garble", "share"),
        [(f"rep4_local, Fold {fold}", "rep4_local", {"Fold": fold}) for fold in (1, 2, 4, 6)] + [("rep4_join", "rep4_join", {})],
    ),
    "rings": (("garble", "share"), [rep3(cores, True) for cores in (1, 2, 4, 8)]),
    "node": (
        ("garble", "share", "gcm", "lookaside"),
        [("gcm_inline", "gcm_inline", {})]
        + [(f"{module}, {lanes} words in a beat", module, {"Lanes": lanes})
           for module in ("lookaside_unit", "lookaside_node") for lanes in (1, 4)]
        + [("lookaside_node, four parties", "lookaside_node", {"Lanes": 4, "Locals": 1, "Joins": 1})],
    ),
}
PARTS = {
    "aes_pipeline": "AES",
    "share_prf": "AES",
    "share_keys": "keys",
    "gcm_keys": "keys",
    "share_mul": "multipliers",
    "rep4_code": "codes",
    "gcm_hash": "hash",
    "garble_queue": "results",
    "lookaside_worker": "workers",
    "lookaside_columns": "columns",
    "lookaside_reader": "memory",
    "lookaside_writer": "memory",
    "lookaside_send": "network",
    "lookaside_receive": "network",
}
# Pipelines of AES whose S-boxes are block RAMs, which they are where registers before them are taken in.
IN_RAM = ("aes_pipeline", "share_prf")
# Cores that are placed and routed, with the clock that is aimed at.
ROUTED = (
    ("rep4_local, Fold 6", "rep4_pins", {"Fold": 6}, 60),
    ("rep3_core, with rings, 1", "rep3_pins", {"Cores": 1, "Rings": 1}, 60),
    ("rep3_core, bits, 1", "rep3_pins", {"Cores": 1, "Rings": 0}, 80),
)

# Wolfe, Patel, Munafo, Varia, Herbordt, "Secret Sharing MPC on FPGAs in the Datacenter", FPL 2020, runs on a VU9P, which has so many.
VU9P = {"lut": 1_182_240, "ff": 2_364_480, "bram": 2160, "dsp": 6840}
# Table I of Patel, Haghi, Jain, Kot, Krishnan, Varia, Herbordt, "Distributed Hardware Accelerated Secure Joint Computation on the COPA
# Framework", HPEC 2022: one accelerator, which takes a product in about six cycles, both stages, on Stratix 10.
COPA = {"alm": 10_667, "m20k": 668, "dsp": 150}
# Draws of a product, each of which takes a pipeline of AES for a cycle.
DRAWS = 5


def measure(results, families, names, save):
    """All groups, or those of `names`; then clocks."""
    for family in FAMILIES:
        for group in (names or GROUPS) if family in families else ():
            if group in GROUPS:
                cores, designs = GROUPS[group]
                for (name, module, parameters), measured in zip(designs, mapped(cores, designs, family)):
                    design = results.setdefault("designs", {}).setdefault(name, {"module": module, "parameters": parameters})
                    design[family] = measured
                    print(f"{family}, {name}: {measured['total']}", flush=True)
                save()
    if "intel" in families and (not names or "ram" in names):
        results["in_ram"] = {module: in_ram(module) for module in IN_RAM}
        print(f"S-boxes in block RAM: {results['in_ram']}", flush=True)
        save()
    for name, top, parameters, aim in ROUTED if "ecp5" in families else ():
        if not names or top in names:
            measured = {"name": name, **ecp5(("garble", "share"), top, parameters, aim)}
            results["ecp5"] = [run for run in results.get("ecp5", []) if run["name"] != name] + [measured]
            print(f"ecp5: {measured}", flush=True)
            save()


def mapped(cores, designs, family):
    """Resources of each design, and of its parts."""
    with tempfile.NamedTemporaryFile(suffix=".sv", mode="w") as file:
        for at, (_, module, parameters) in enumerate(designs):
            given = ", ".join(f".{name}({value})" for name, value in parameters.items())
            file.write(f"module design_{at}; (* keep *) {module} {f'#({given}) ' if given else ''}u_core (); endmodule\n")
        each = " ".join(f"design_{at} u_{at} ();" for at in range(len(designs)))
        file.write(f"module designs; {each.replace('design_', '(* keep *) design_')} endmodule\n")
        file.flush()
        yosys = Yosys([*sources(*cores), file.name])
        yosys.run(COMMANDS[family].format("designs"))
    modules, count = yosys.modules(), COUNTS[family]
    for at in range(len(designs)):
        (core,) = (kind for kind in modules[f"design_{at}"] if kind in modules)
        of = {part: count(cells) for part, cells in parts(modules, core, PARTS).items()}
        yield {"total": count(total(modules, core)), "parts": {part: counts for part, counts in of.items() if any(counts.values())}}


def in_ram(module):
    """A pipeline of AES on Cyclone V, flat, and as it is."""
    out = {}
    for name, command in (("flat", "intel_flat"), ("apart", "intel")):
        yosys = Yosys(sources("garble", "share"))
        yosys.run(COMMANDS[command].format(module))
        modules = yosys.modules()
        out[name] = COUNTS["intel"](total(modules, module))
    return out


def cells(measured, keys):
    """Cells of a table."""
    return [number(measured[key]) for key in keys]


def page(results):
    """The tables of the page; of what was not measured yet there are no rows."""
    designs, say = results["designs"], []
    keys = ("lut", "lutram", "ff", "bram", "dsp")
    rows = []
    for name, of in designs.items():
        if "xilinx" in of:
            counts = of["xilinx"]["total"]
            most = max(counts[key] / VU9P[key] for key in VU9P)
            rows.append([name, *cells(counts, keys), f"{100 * most:.2f} %"])
    head = ["", "LUT", "of them as memory", "FF", "BRAM (36 kb)", "DSP48E2", "of a VU9P"]
    say.append("### UltraScale+: cores of sharing\n\n" + table(head, rows) + "\n")
    keys = ("alm", "alut", "mlab", "ff", "m10k", "dsp")
    rows = [[name, *cells(of["intel"]["total"], keys)] for name, of in designs.items() if "intel" in of]
    if rows:
        head = ["", "ALM, at least", "ALUT", "MLAB cells", "FF", "M10K", "DSP blocks"]
        say.append("### Cyclone V: cores of sharing\n\n" + table(head, rows) + "\n")
    say.append(copa(results))
    keys = ("lut", "ff", "bram", "dsp")
    for name in ("rep3_core, bits, 1", "rep3_core, with rings, 1", "rep4_local, Fold 1", "rep4_local, Fold 6", "lookaside_node, 4 words in a beat"):
        of = designs.get(name, {}).get("xilinx")
        if of:
            rows = [[part, *cells(counts, keys)] for part, counts in of["parts"].items()]
            say.append(f"### UltraScale+: {name}, by module\n\n" + table(["", "LUT", "FF", "BRAM", "DSP48E2"], rows) + "\n")
    rows = [[run["name"], number(run["lut4"]), number(run["ff"]), number(run["dp16kd"]), number(run["mult18"]), run["mhz"]]
            for run in results.get("ecp5", [])]
    if rows:
        head = ["LFE5UM-85F, CABGA756", "LUT4", "FF", "DP16KD", "MULT18X18D", "clock in MHz"]
        say.append("### ECP5: cores of sharing, placed and routed\n\n" + table(head, rows) + "\n")
    return "\n".join(say)


def both_stages(results, fold, ram):
    """Both stages of an accelerator on Cyclone V: with S-boxes of its AES pipelines in block RAM, or in ALMs. Nothing, where one was not measured."""
    stages = [results["designs"].get(name, {}).get("intel") for name in (f"rep4_local, Fold {fold}", "rep4_join")]
    if None in stages or (ram and "in_ram" not in results):
        return None
    out = {key: sum(stage["total"][key] for stage in stages) for key in ("alm", "m10k", "dsp")}
    if ram:
        pipelines = -(-DRAWS // fold)
        flat, apart = (results["in_ram"]["aes_pipeline"][key] for key in ("flat", "apart"))
        for key in ("alm", "m10k"):
            out[key] += pipelines * (flat[key] - apart[key])
    return out


def copa(results):
    """Beside table I."""
    keys = ("alm", "m10k", "dsp")
    rows = [["published", "6, about", *(number(COPA[key]) for key in ("alm", "m20k", "dsp"))]]
    for fold in (1, 2, 4, 6):
        for ram in (False, True):
            of = both_stages(results, fold, ram)
            if of:
                rows.append([f"Fold {fold}, S-boxes in {'block RAM' if ram else 'ALMs'}", fold, *cells(of, keys)])
    head = ["both stages", "cycles for a product", "ALM", "block RAMs (published 20 kb, ours 10 kb)", "DSP blocks"]
    return "### An accelerator of four parties\n\n" + table(head, rows) + "\n"
