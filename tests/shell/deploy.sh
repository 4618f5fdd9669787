#!/usr/bin/env bash
# The unit and the container file in deploy/ say only what `veil serve` understands, and systemd understands the unit.
source "$(dirname "$0")/../../scripts/lib.sh"

build_veil
unit=deploy/veil-party.service
help=$("$target/debug/veil" serve --help)

flags() { grep -oE -- '--[a-z][a-z-]+' <<<"$1"; }
for flag in $(flags "$(grep '^ExecStart=' "$unit")") $(flags "$(grep '^CMD ' deploy/Containerfile)"); do
    grep -q -- "$flag\b" <<<"$help" || { echo "deploy/: \`veil serve\` has no $flag" >&2; exit 1; }
done

# What is said in two places is the same.
in_container() { grep -qE -- "$1" deploy/Containerfile || { echo "deploy/Containerfile: $2" >&2; exit 1; }; }
option() { grep -oE -- "\"--$1\", \"[^\"]+" deploy/Containerfile | sed 's/.*"//'; }
in_container "^EXPOSE $(option listen | sed 's/.*://')\$" "the port that it listens on is not the one that it exposes"
in_container "http://$(option admin)/readyz" "its health is asked elsewhere than it is served"
in_container "^COPY --from=build /src/target/release/veil /usr/bin/veil\$" "it copies another file than it builds"
in_container '^ENTRYPOINT \["/usr/bin/veil"\]' "it runs another file than it copies"
grace=$(grep -oE -- '--grace [0-9]+' "$unit" | grep -oE '[0-9]+')
patience=$(sed -n 's/^TimeoutStopSec=//p' "$unit")
((patience > grace + 10)) || { echo "$unit: it is killed before its grace is over" >&2; exit 1; }

if command -v systemd-analyze >/dev/null; then
    # The program and its user need not be installed here.
    wrong=$(systemd-analyze verify "$unit" 2>&1 | grep -F "$unit:" || true)
    [[ -z $wrong ]] || { echo "$wrong" >&2; exit 1; }
    say "deploy/: the flags are those of veil serve, and systemd understands the unit"
else
    say "deploy/: the flags are those of veil serve; skipped: systemd-analyze is not here"
fi
