#!/usr/bin/env bash
# The program as it is handed on: one for all machines, with code for GPUs inside if that can be compiled here.
source "$(dirname "$0")/lib.sh"

with_gpus
run cargo build --release --locked --package veil-cli --bin veil
