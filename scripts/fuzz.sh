#!/usr/bin/env bash
# Each fuzz target for so many seconds [60], one after the other; a finding stops it, and names the file that repeats it.
source "$(dirname "$0")/lib.sh"

if ! cargo fuzz --version >/dev/null 2>&1; then
  run cargo install cargo-fuzz --locked
fi
for file in fuzz/targets/*.rs; do
  name=$(basename "$file" .rs)
  # Forms of products live as long as the process, some for each record.
  leaks=1
  [[ $name != record ]] || leaks=0
  # The sanitizers of libFuzzer are flags of the compiler that are unstable.
  run env ASAN_OPTIONS=detect_leaks=$leaks RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$target/fuzz" cargo fuzz run "$name" -- -max_total_time="${1:-60}" -rss_limit_mb=4096
done
