#!/usr/bin/env bash
# What cores take on FPGAs: rtl/synth/*.json and docs/rtl-resources.md. Tools go into a virtual environment.
# Arguments are those of rtl/synth/synth.py.
source "$(dirname "$0")/lib.sh"

tools=$target/rtl-tools/venv
if ! [[ -x $tools/bin/python ]]; then
  say "installing the tools of synthesis into $tools"
  python3 -m venv "$tools"
fi
"$tools/bin/pip" install --quiet --disable-pip-version-check -r rtl/synth/requirements.txt
run "$tools/bin/python" rtl/synth/synth.py "$@"
