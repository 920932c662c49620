#!/bin/sh
# What graphs on Restate cost, beside handlers written with its SDK, on the same server: prints a table. src/main.rs has the options.
#
#   benches/restate/run.sh [words of cases] [--rounds 5] [--quick]
#
# The server (226 MB) is fetched from npm into `target`, once, as by .ci/restate.
set -eu
cd "$(dirname "$0")/../.."
. .ci/machine
use_restate
cd benches/restate
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-../../target}
export CARGO_TARGET_DIR
cargo build --quiet --release --locked
exec "$CARGO_TARGET_DIR/release/restate-cost" "$@"
