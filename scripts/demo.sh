#!/usr/bin/env bash
# The main job: a pay-gap study over data that no one may put together, checked against the clear computation.
source "$(dirname "$0")/lib.sh"

folder=$target/pay-gap
# Compiling kernels takes tools that are fetched, and minutes that a demo does not have. Nor are its tables columnar.
with_gpus made
run cargo build --profile demo --no-default-features --locked --package veil-cli --package pay-gap
run "$target/demo/pay-gap-generate" "$folder"
export PATH="$target/demo:$PATH"
run veil explain "$folder/job.toml"
run veil stats "$folder/job.toml" --check --show-views --out "$folder/results"

say "the same among four parties, of whom one may do whatever it likes"
examples/four-parties.sh "$folder/job.toml" >"$folder/four.toml"
run veil stats "$folder/four.toml" --check --out "$folder/results-four"
run cmp "$folder/results/newspaper/result.csv" "$folder/results-four/newspaper/result.csv"

say "rows that meet: patients of one hospital who came to another within 30 days, by a query in SQL"
joined=$target/readmissions
run examples/readmissions/prepare.sh "$joined"
run veil explain "$joined/job.toml"
run veil run "$joined/job.toml" --out "$joined/results"
examples/four-parties.sh "$joined/job.toml" >"$joined/four.toml"
run veil run "$joined/four.toml" --out "$joined/results-four"
run cmp "$joined/results/ministry/readmitted.csv" "$joined/results-four/ministry/readmitted.csv"

say "That was one machine. Next:"
cat <<END
    $target/demo/veil stats $folder/job.toml --processes   a process per participant, over TLS
    cargo run --release --package veil-lab -- bench aes       how fast this machine is
    examples/README.md                                        other jobs; README.md has one of your own in ten lines
    make test                                                 all tests but the long ones
END
