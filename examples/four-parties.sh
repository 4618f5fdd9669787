#!/bin/sh
# Prints JOB as a job of four parties: the same, with one more party that has no other part in it.
set -eu
job=${1:?usage: four-parties.sh JOB.toml}
sed -e '1,/^version = 1$/s/^version = 1$/version = 1\nprotocol = "rep4"/' \
    -e '/^parties = \[/s/\]/, "fourth-party"]/' "$job"
