#!/usr/bin/env bash
# All benchmarks, as JSON lines and plots. What the fields mean: docs/benchmarks.md.
source "$(dirname "$0")/lib.sh"

mkdir -p "$target/bench"
run cargo build --release --locked --package veil-cli
for name in and mul64 mul128 aes a2b b2a rep4-mul garble; do
  say "veil bench $name"
  "$target/release/veil" bench "$name" --json --svg "$target/bench/$name.svg" | tee "$target/bench/$name.jsonl"
done

say "reading tables, and shares at rest, on one core"
run cargo run --release --locked --package veil-program --example csv_rate | tee "$target/bench/csv_rate.txt"
run cargo run --release --locked --package veil-store --example store_rate | tee "$target/bench/store_rate.txt"

say "ten million rows of six columns: shared, computed on and opened by six processes over TLS"
run cargo run --release --locked --package veil-program --example table_generate -- 10000000 "$target/bench/table"
"$target/release/veil" stats "$target/bench/table/job.toml" --processes --json >"$target/bench/table.json"
grep -m 1 '"seconds"' "$target/bench/table.json"
say "plots and rows are in $target/bench"
