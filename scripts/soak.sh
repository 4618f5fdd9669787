#!/usr/bin/env bash
# Two hostile members against a party, while an honest member's jobs run: ten minutes, or VEIL_SOAK_SECONDS.
source "$(dirname "$0")/lib.sh"

run cargo test "${WORKSPACE[@]}" --test tests soak:: -- --ignored --nocapture
