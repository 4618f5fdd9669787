#!/usr/bin/env bash
# What a party runs has no simulator, no emulator, no benchmark, no plotter and no test double inside: neither their crates nor their features are
# among those that `veil` is built of. Builds of the whole workspace have them all, so it is asked for that package alone.
source "$(dirname "$0")/lib.sh"

say "cargo tree -p veil-cli -e normal,build,features"
tree=$(cargo tree --locked --package veil-cli --edges normal,build,features --all-features --prefix none)
# Drivers are there, of GPUs and of boards; what they drive is not.
for driver in veil-device-cuda veil-device-fpga; do
  grep -q "^$driver v" <<<"$tree" || { echo "error: this does not see what veil is built of" >&2; exit 1; }
done
unwanted='^veil-(lab|testkit) v|^plotters(-[a-z]+)? v|^veil-device-cuda feature "(emulator|probes)"|^veil-device-fpga feature "simulated"'
if found=$(grep -E "$unwanted" <<<"$tree" | sort -u); then
  printf 'error: veil is built with what no party needs to run:\n%s\n' "$found" >&2
  echo "cargo tree -p veil-cli -e normal,features -i CRATE says by which way it comes" >&2
  exit 1
fi
# Each alarm rings where there is something to find.
tree=$(cargo tree --locked --package veil-lab --edges normal,build,features --all-features --prefix none)
for found in '^veil-lab v' '^veil-device-cuda feature "emulator"' '^veil-device-fpga feature "simulated"' '^plotters v'; do
  grep -E "$unwanted" <<<"$tree" | grep -qE "$found" ||
    { echo "error: $found would not be found in veil-lab, either" >&2; exit 1; }
done
say "veil has no simulator, no emulator, no benchmark and no plotter inside"
