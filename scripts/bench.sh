#!/usr/bin/env bash
# All benchmarks, as JSON lines and plots. What the fields mean: docs/benchmarks.md.
source "$(dirname "$0")/lib.sh"

mkdir -p "$target/bench"
run cargo build --release --locked --package veil-cli
for name in and mul64 mul128 aes; do
  say "veil bench $name"
  "$target/release/veil" bench "$name" --json --svg "$target/bench/$name.svg" | tee "$target/bench/$name.jsonl"
done
say "plots and rows are in $target/bench"
