#!/usr/bin/env python3
"""Runs the cores of replicated sharing against the models of vectors/model, which know nothing of the hardware.

    python3 rtl/share/dv/bench.py FOLDER [--long] [--seed N] [--only rep3|rep4]

FOLDER is where models of the hardware are built.
"""

import argparse
import random

from rep3_bench import check_rep3
from rep4_bench import check_rep4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["rep3", "rep4"])
    options = parser.parse_args()
    print(f"seed {options.seed}")
    if options.only in (None, "rep3"):
        check_rep3(options.folder, options.long, random.Random(options.seed))
    if options.only in (None, "rep4"):
        check_rep4(options.folder, options.long, random.Random(options.seed))


if __name__ == "__main__":
    main()
