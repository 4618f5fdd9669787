#!/usr/bin/env bash
# The lookaside unit in simulation: three nodes with memories on a modelled network, random commands with random stalls, every error, lost
# packets and scrubs; memories of 128 bits and of 512. Then the stages of products of four parties as its workers have them, against the
# model of vectors/model. tests/rtl/lookaside.sh "1 2 3" 100 --long takes longer.
source "$(dirname "$0")/../../scripts/lib.sh"
seeds=${1:-1}
commands=${2:-60}

if ! command -v verilator >/dev/null; then
    say "skipped: Verilator is not here (apt-get install verilator), and the lookaside unit is not simulated"
    exit 0
fi
mapfile -t files < <(ls rtl/{aes,prim,gcm,share,lookaside}/rtl/*.sv rtl/garble/rtl/garble_queue.sv | grep -v "_pkg.sv$")
files=(rtl/{aes/rtl/aes,gcm/rtl/gcm,share/rtl/share,lookaside/rtl/lookaside}_pkg.sv "${files[@]}")

# Flat, so that all of the state lies in one object, in which the bench looks for what is left. First without, then with sealed packets.
cores=("lookaside_unit 1" "lookaside_node 4")
[[ ${3:-} == --long ]] && cores+=("lookaside_unit 4" "lookaside_node 1")
for core in "${cores[@]}"; do
    read -r top lanes <<<"$core"
    folder=$target/rtl/$top$lanes
    mkdir -p "$folder"
    say "building $top with $lanes words in a beat"
    flags="-O1 -std=c++17 -I$PWD/rtl/lookaside/dv -DLANES=$lanes"
    [[ $top == lookaside_node ]] && flags+=" -DWIRE"
    verilator --cc --exe --build --assert --flatten -O3 --output-split 20000 -Wno-fatal --top-module "$top" --Mdir "$folder" -GNodes=3 -GSharers=2 -GLanes="$lanes" \
        -CFLAGS "$flags" "${files[@]}" "$PWD/rtl/lookaside/dv/unit_bench.cpp" >"$folder/log" 2>&1 || { tail -n 40 "$folder/log" >&2; exit 1; }
    for seed in $seeds; do
        run "$folder/V$top" "$seed" "$commands"
    done
done
run python3 rtl/lookaside/dv/stage_bench.py "$target/rtl" "${@:3}"
