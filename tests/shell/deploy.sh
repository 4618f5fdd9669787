#!/usr/bin/env bash
# The unit and the container file in deploy/ say only what `veil serve` understands, and systemd understands the unit.
source "$(dirname "$0")/../../scripts/lib.sh"

cargo build --quiet --locked --package veil-cli
unit=deploy/veil-party.service
help=$("$target/debug/veil" serve --help)

flags() { grep -oE -- '--[a-z][a-z-]+' <<<"$1"; }
for flag in $(flags "$(grep '^ExecStart=' "$unit")") $(flags "$(grep '^CMD ' deploy/Containerfile)"); do
    grep -q -- "$flag\b" <<<"$help" || { echo "deploy/: \`veil serve\` has no $flag" >&2; exit 1; }
done

if command -v systemd-analyze >/dev/null; then
    # The program and its user need not be installed here.
    wrong=$(systemd-analyze verify "$unit" 2>&1 | grep -F "$unit:" || true)
    [[ -z $wrong ]] || { echo "$wrong" >&2; exit 1; }
    say "deploy/: the flags are those of veil serve, and systemd understands the unit"
else
    say "deploy/: the flags are those of veil serve; skipped: systemd-analyze is not here"
fi
