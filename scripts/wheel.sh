#!/usr/bin/env bash
# Builds the wheel of the Python package, and tries it in an environment of its own that has nothing else.
#   scripts/wheel.sh             a wheel of this machine, in $target/wheels
#   scripts/wheel.sh --aarch64   one for aarch64 (unbuilt: it takes a cross compiler and its libraries, which this project's machines lack)
source "$(dirname "$0")/lib.sh"

readonly WHEELS=$target/wheels
maturin=(maturin)
if ! command -v maturin >/dev/null; then
  [[ -x $target/maturin/bin/maturin ]] || { run python3 -m venv "$target/maturin" && run "$target/maturin/bin/pip" install --quiet 'maturin>=1.16,<2'; }
  maturin=("$target/maturin/bin/maturin")
fi
rm -rf "$WHEELS"
if [[ ${1:-} == --aarch64 ]]; then
  run "${maturin[@]}" build --release --out "$WHEELS" --target aarch64-unknown-linux-gnu --compatibility manylinux_2_28 --zig
  exit
fi
# The tag that this machine's C library allows: the newest symbol says which manylinux it is.
run "${maturin[@]}" build --release --out "$WHEELS" --auditwheel repair
wheel=$(ls "$WHEELS"/*.whl)
bytes=$(stat --format %s "$wheel")
say "$(basename "$wheel"): $((bytes / 1000000)) MB"
((bytes < 25000000)) || { echo "error: a wheel has less than 25 MB" >&2; exit 1; }

fresh=$(mktemp -d)
trap 'rm -r "$fresh"' EXIT
run python3 -m venv "$fresh/venv"
run "$fresh/venv/bin/pip" install --quiet --no-index "$wheel"
cd "$fresh"
run venv/bin/python - <<'PY'
import sys
import time

began = time.perf_counter()
import veilworks as vw

took = time.perf_counter() - began
assert took < 0.3, f"the import took {took:.2f} s"
assert "site-packages" in vw.__file__, vw.__file__
assert not {"numpy", "pandas", "pyarrow"} & set(sys.modules)
job = vw.Job("a first look", owners=["mill"], parties=["p0", "p1", "p2"], recipients=["press"])
people = job.table("people", owner="mill", rows=3, columns={"pay": vw.Integer(0, 1000), "sex": vw.Category(["f", "m"])})
job.open(people.group_by("sex").agg(pay=people.pay.sum()), to="press")
result = job.run_local({"people": {"pay": [100, 200, 300], "sex": ["f", "m", "f"]}})
assert result.to_dicts() == [{"sex": "f", "pay": 400}, {"sex": "m", "pay": 200}], result
print(f"import in {took:.2f} s; {result}")
PY
