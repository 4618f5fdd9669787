#!/usr/bin/env bash
# AES-GCM in hardware, in simulation, against a model in Python: the core on the test cases of its specification and random messages, then the
# inline path on packets with random stalls, forged, repeated and cut packets between them. tests/rtl/gcm.sh "1 2 3" 1000 takes longer.
source "$(dirname "$0")/../../scripts/lib.sh"
seeds=${1:-1}
packets=${2:-300}

if ! command -v verilator >/dev/null; then
    say "skipped: Verilator is not here (apt-get install verilator), and the inline path is not simulated"
    exit 0
fi
mapfile -t files < <(ls rtl/{aes,prim,gcm}/rtl/*.sv | grep -v "_pkg.sv$")
files=(rtl/aes/rtl/aes_pkg.sv rtl/gcm/rtl/gcm_pkg.sv "${files[@]}")

# Flat, so that all of the state lies in one object, in which the bench looks for what is left.
build() {
    local top=$1 bench=$2
    shift 2
    local folder=$target/rtl/$top
    mkdir -p "$folder"
    say "building $top"
    verilator --cc --exe --build --assert --flatten -O3 --output-split 20000 -Wno-fatal --top-module "$top" --Mdir "$folder" "$@" \
        -CFLAGS "-O1 -std=c++17 -I$PWD/rtl/gcm/dv" "${files[@]}" "$PWD/rtl/gcm/dv/$bench" >"$folder/log" 2>&1 || { tail -n 40 "$folder/log" >&2; exit 1; }
}

build gcm_core core_bench.cpp
build gcm_inline inline_bench.cpp -GLimitW=5
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
for seed in $seeds; do
    python3 vectors/model/gcm.py --messages "$seed" 40 >"$work/messages"
    python3 vectors/model/gcm.py --packets "$seed" "$packets" >"$work/packets"
    python3 vectors/model/gcm.py --packets "$seed" "$packets" 1 >"$work/others"
    run "$target/rtl/gcm_core/Vgcm_core" "$work/messages" "$seed"
    run "$target/rtl/gcm_inline/Vgcm_inline" "$work/packets" "$work/others" "$seed"
done
