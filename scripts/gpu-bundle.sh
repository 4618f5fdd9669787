#!/usr/bin/env bash
# A directory that checks and measures the GPU of another machine, which needs a driver and nothing else: gpu-bundle in the target directory, and the same
# packed. What to do there is in its README. With "--try" it is unpacked elsewhere and run: on the GPU if there is one, and without.
source "$(dirname "$0")/lib.sh"

# Of what is ours, unpacked.
readonly MOST=$((40 * 1000 * 1000))
# The first release whose package has all parts of it: those before lack what starts a program under it.
readonly SANITIZER=nvidia-cuda-sanitizer-api==13.5.25
bundle=$target/gpu-bundle

with_gpus
[[ -n ${VEIL_CUDA_FATBIN:-} ]] || { say "no bundle: it would have no code for GPUs"; exit 1; }
rm -rf "$bundle" "$bundle.tar.gz"
mkdir -p "$bundle/bin"

run cargo build --release --locked --package veil-testkit --example on_gpu
run cargo build --release --locked --package veil-lab --no-default-features
say "cargo test --release --package veil-device-cuda --test gpu --no-run"
built=$(cargo test --release --locked --package veil-device-cuda --all-features --no-run --test gpu --message-format json)
# The path of each test's executable, by its name.
executables() {
  python3 -c '
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    if said.get("executable") and "test" in said["target"]["kind"]:
        print(said["target"]["name"], said["executable"])'
}
while read -r name path; do
  # That one is about what veil-gpu-bench does.
  [[ $name == bench ]] || strip -o "$bundle/bin/$name" "$path"
done < <(executables <<<"$built")
strip -o "$bundle/bin/on_gpu" "$target/release/examples/on_gpu"
strip -o "$bundle/bin/veil-lab" "$target/release/veil-lab"

# What is needed of the system: the newest symbols of its library that any program here asks for.
newest() { objdump -T "$bundle"/bin/* | grep -oE "$1_[0-9.]+" | sort -Vu | tail -n 1; }
glibc=$(newest GLIBC) libstdcxx=$(newest GLIBCXX)
needed=$(objdump -p "$bundle"/bin/* | awk '$1 == "NEEDED" { print $2 }' | sort -u | paste -sd ' ')
cp scripts/gpu-bundle/{run,jobs}.sh "$bundle"
sed "s/@GLIBC@/${glibc#GLIBC_}/; s/@NEEDED@/$needed/; s/@GLIBCXX@/$libstdcxx/; s/@COMMIT@/$(git rev-parse --short HEAD 2>/dev/null || echo unknown)/" scripts/gpu-bundle/README.md >"$bundle/README.md"

bytes=$(du --bytes --summarize "$bundle" | cut -f 1)
say "$bundle: $((bytes / 1000000)) MB and the sanitizer, needs glibc ${glibc#GLIBC_} ($needed)"
((bytes <= MOST)) || { echo "error: it may have $((MOST / 1000000)) MB at most" >&2; exit 1; }
# The sanitizer, if it can be had: else one that is in PATH there is taken.
wheel=$target/cuda/sanitizer
if [[ -e $wheel/complete && $(<"$wheel/complete") == "$SANITIZER" ]] || {
  rm -rf "$wheel"
  "$target/cuda/tools/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 --no-deps --target "$wheel" "$SANITIZER" &&
    echo "$SANITIZER" >"$wheel/complete"
}; then
  cp -r "$wheel/nvidia/cu13/compute-sanitizer" "$bundle/sanitizer"
  # For programs of 32 bits, and for whoever writes tools.
  rm -rf "$bundle"/sanitizer/{x86,docs,include}
  chmod +x "$bundle"/sanitizer/{compute-sanitizer,TreeLauncher*}
  find "$wheel" -iname 'license*' -type f -exec cp {} "$bundle/sanitizer/LICENSE.txt" \;
else
  say "left out: $SANITIZER cannot be had from PyPI; one that is in PATH will be taken"
fi

tar --create --gzip --file "$bundle.tar.gz" --directory "$target" gpu-bundle
say "packed: $bundle.tar.gz, $(($(stat --format %s "$bundle.tar.gz") / 1000000)) MB. On the machine with a GPU: tar xf gpu-bundle.tar.gz && gpu-bundle/run.sh"
[[ ${1:-} == --try ]] || exit 0

elsewhere=$(mktemp -d)
trap 'rm -r "$elsewhere"' EXIT
tar --extract --file "$bundle.tar.gz" --directory "$elsewhere"
status=0
run "$elsewhere/gpu-bundle/run.sh" || status=$?
# Without a GPU it says so, and does nothing else.
((status == 0 || status == 3)) || exit "$status"
run "$elsewhere/gpu-bundle/run.sh" --emulator --out "$elsewhere/results"
lines=$(wc -l <"$elsewhere/results/rates.jsonl")
((lines > 8)) || { echo "error: $lines rates are too few" >&2; exit 1; }
