#!/usr/bin/env bash
# The first job of README.md: what a reader types works, and gives what the text says.
source "$(dirname "$0")/../../scripts/lib.sh"

build_veil
export PATH="$target/debug:$PATH"
readme=$PWD/README.md
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Blocks of a language, without their fences.
blocks() { awk -v fence="\`\`\`$1" '$0 == fence { on = 1; next } /^```/ { on = 0 } on' "$readme"; }
blocks toml >wages.toml
blocks sh >commands.sh
[[ $(wc -l <wages.toml) -lt 10 ]] || { echo "the first job has ten lines or more" >&2; exit 1; }
bash -euo pipefail commands.sh | tee output
grep -qE '\b3,?200\b' output || { echo "README.md says the mean is 3200; the output does not" >&2; exit 1; }
say "README.md: the first job runs and opens what it says"
