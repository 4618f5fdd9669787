#!/usr/bin/env bash
# The card of the garbler, in simulation: random circuits with random stalls against a garbler in software, what must be refused, and that
# nothing is left after a scrub. For two rows; or for those that are named, with labels in and tables out per cycle, and with a register behind
# the memories of labels: tests/rtl/card.sh "1 2:1 4:4:2:1" 300.
source "$(dirname "$0")/../../scripts/lib.sh"
rows=${1:-2}
runs=${2:-60}

if ! command -v verilator >/dev/null; then
    say "skipped: Verilator is not here (apt-get install verilator), and the card is not simulated"
    exit 0
fi
mapfile -t files < <(ls rtl/{aes,prim,garble}/rtl/*.sv | grep -v "_pkg.sv$")
files=(rtl/aes/rtl/aes_pkg.sv rtl/garble/rtl/garble_pkg.sv "${files[@]}")
for shape in $rows; do
    IFS=: read -r n in out reg <<<"$shape:::"
    in=${in:-2} out=${out:-$n} reg=${reg%%:*}
    core=("-GRows=$n" "-GLabelsIn=$in" "-GLabelReg=${reg:=0}")
    card=("${core[@]}" "-GTablesOut=$out")
    folder=$target/rtl/card$n-$in-$out-$reg
    mkdir -p "$folder"
    say "verilator --lint-only -Wall, $n rows, $in labels in, $out tables out, $reg registers"
    verilator --lint-only -Wall "${core[@]}" --top-module garble_core "${files[@]}"
    verilator --lint-only -Wall "${card[@]}" --top-module garble_card "${files[@]}"
    # Small banks, so that they fill; flat, so that all of the state lies in one object, in which the bench looks for what is left.
    say "building the card of $n rows"
    verilator --cc --exe --build --assert --flatten -O3 --output-split 20000 -Wno-fatal --top-module garble_card --Mdir "$folder" \
        "${card[@]}" -GXorW=8 -GAndW=7 -GInputW=7 -GLinesW=2 -GBundles=256 \
        -CFLAGS "-O1 -std=c++17 -DROWS=$n -DLABELS_IN=$in -DTABLES_OUT=$out -DLABEL_REG=$reg" \
        "${files[@]}" "$PWD/rtl/garble/dv/card_bench.cpp" >"$folder/log" 2>&1 || { tail -n 40 "$folder/log" >&2; exit 1; }
    for seed in 1 2 3; do
        run "$folder/Vgarble_card" "$seed" "$runs"
    done
done
