#!/usr/bin/env bash
# Tests of kernels with a thread of the system for each thread of a grid, under the sanitizers of the host's compiler: whatever two threads touch without
# a barrier between them is a race, and whatever leaves its memory is an error. That races are found is tried first, by a barrier that is not there.
source "$(dirname "$0")/lib.sh"

# Whether the code is sanitized is for the crate's build to know (crates/device-cuda/build.rs): nothing else is built anew.
tests() {
  local sanitizer=$1 runtime
  shift
  # The run time of a sanitizer comes before all other libraries; and addresses that are drawn from all of the memory are too far apart for what it
  # remembers of them.
  runtime=$(cc -print-file-name="lib${sanitizer:0:1}san.so")
  run env VEIL_EMULATOR_SANITIZE="$sanitizer" cargo test -p veil-device-cuda --all-features --locked \
    --config "target.'cfg(all())'.runner=['setarch', '-R', 'env', 'LD_PRELOAD=$runtime']" "$@"
}
# Tests of what fibers alone have: an order of threads, and threads that wait in vain, which threads of the system do for ever.
readonly FIBERS=(--skip a_missing_barrier --skip threads_that_do_not_meet)
# Tests that take too long with a thread of the system for each thread of a grid.
readonly LONG=(--skip deep_programs)

log=$(mktemp)
known=$(mktemp)
trap 'rm "$log" "$known"' EXIT
# How threads of Rust's library hand things on is not seen, as they are not made by the host's compiler. Its functions are in no thread of a grid.
echo 'race:_RN' >"$known"
export TSAN_OPTIONS=halt_on_error=1:exitcode=66:suppressions=$known ASAN_OPTIONS=detect_leaks=0
if tests thread --test tests emulator::a_missing_barrier -- >"$log" 2>&1 || ! grep -q 'ThreadSanitizer: data race' "$log" || ! grep -q probe_neighbours "$log"; then
  cat "$log"
  say "a barrier was left out, and nobody noticed"
  exit 1
fi
say "a barrier that was left out is found"
for sanitizer in thread address; do
  tests "$sanitizer" --test tests -- --test-threads 1 emulator:: kernels:: device:: few:: psi::keys_that "${FIBERS[@]}" "${LONG[@]}"
done
say "no thread reads what another one writes beside it, and none leaves its memory"
