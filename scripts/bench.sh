#!/usr/bin/env bash
# All benchmarks, as JSON lines and plots. What the fields mean: docs/benchmarks.md.
source "$(dirname "$0")/lib.sh"

mkdir -p "$target/bench"
with_gpus
run cargo build --release --locked --package veil-cli --package veil-lab
for name in and mul64 mul128 aes a2b b2a rep4-mul garble yao ot; do
  say "veil-lab bench $name"
  "$target/release/veil-lab" bench "$name" --json --svg "$target/bench/$name.svg" | tee "$target/bench/$name.jsonl"
done

say "a billion ANDs between two parties, over cycles and over a batch, in less than 64 MB each"
"$target/release/veil-lab" bench yao --ands 1e9 --json | tee "$target/bench/yao-stream.jsonl"

say "reading tables, and shares at rest, on one core"
run cargo run --release --locked --package veil-program --example csv_rate | tee "$target/bench/csv_rate.txt"
run cargo run --release --locked --package veil-store --example store_rate | tee "$target/bench/store_rate.txt"

say "ten million rows of six columns: shared, computed on and opened by six processes over TLS"
run cargo run --release --locked --package veil-program --example table_generate -- 10000000 "$target/bench/table"
"$target/release/veil" stats "$target/bench/table/job.toml" --processes --json >"$target/bench/table.json"
grep -m 1 '"seconds"' "$target/bench/table.json"
say "plots and rows are in $target/bench"
