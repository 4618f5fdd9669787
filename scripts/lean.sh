#!/usr/bin/env bash
# What a party runs has no simulator, no emulator, no benchmark, no plotter and no test double inside: neither their crates nor their features are
# among those that `veil` is built of. Builds of the whole workspace have them all, so it is asked for that package alone.
source "$(dirname "$0")/lib.sh"

# The crates that a package is built of, with their features: those that a feature of the package itself turns on are among them.
tree_of() { cargo tree --locked --package "$1" --edges normal,build --all-features --prefix none --format '{lib} {f}' | sort -u; }

say "cargo tree -p veil-cli -e normal,build"
tree=$(tree_of veil-cli)
# Drivers are there, of GPUs and of boards; what they drive is not.
for driver in veil_device_cuda veil_device_fpga; do
  grep -q "^$driver " <<<"$tree" || { echo "error: this does not see what veil is built of" >&2; exit 1; }
done
simulator='^veil_device_fpga (.*,)?simulated(,|$)'
emulator='^veil_device_cuda (.*,)?(emulator|probes)(,|$)'
plotter='^plotters(_[a-z]+)? '
unwanted="^veil_testkit |$simulator|$emulator|$plotter"
if found=$(grep -E "$unwanted" <<<"$tree"); then
  printf 'error: veil is built with what no party needs to run:\n%s\n' "$found" >&2
  echo "cargo tree -p veil-cli -e normal,features -i CRATE says by which way it comes" >&2
  exit 1
fi
# Each alarm rings where there is something to find.
tree=$(tree_of veil-lab)
for alarm in "$simulator" "$emulator" "$plotter"; do
  grep -qE "$alarm" <<<"$tree" || { echo "error: $alarm would not be found in veil-lab, either" >&2; exit 1; }
done
say "veil has no simulator, no emulator, no benchmark and no plotter inside"
