#!/bin/sh
# What a graph behind HTTP costs, beside a bare axum handler that sends the same bytes and beside `langgraph dev`, in turns: prints a
# table. src/main.rs has the options.
#
#   benches/server/run.sh [floor engine memory sqlite postgres langgraph] [--rounds 3] [--seconds 4]
#
# LangGraph's server comes from PyPI into an environment of its own below the target folder. `postgres` needs `DATABASE_URL`.
set -eu
cd "$(dirname "$0")"
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../../target}
export CARGO_TARGET_DIR
home=$CARGO_TARGET_DIR/langgraph-dev
if ! [ -x "$home/bin/langgraph" ]; then
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet 'langgraph-cli[inmem]==0.4.40' langgraph-api==0.16.7 langgraph==1.2.24
fi
# It writes beside its configuration.
rm -rf "$home/reference"
cp -r reference "$home/reference"
cargo build --quiet --release --locked
# A thousand streams, twice.
ulimit -n 8192
LANGGRAPH_DEV=$home exec "$CARGO_TARGET_DIR/release/server-cost" "$@"
