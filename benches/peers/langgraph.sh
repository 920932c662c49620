#!/bin/sh
# What LangGraph's savers cost, on the same work as the cases of `benches`: prints a table. Installs them, at the versions that
# the figures of docs/figures.md are of, into an environment of its own below the target folder.
#
#   benches/peers/langgraph.sh [--steps 100000] [--postgres postgres://user@host/database]
#   benches/peers/langgraph.sh case chain/10        one of the cases of `run`, which calls it so; `case install` only installs
set -eu
cd "$(dirname "$0")"
home="${CARGO_TARGET_DIR:-../../target}/langgraph"
if ! [ -x "$home/bin/python" ]; then
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet \
        langgraph==1.2.22 langgraph-checkpoint-sqlite==3.1.2 \
        langgraph-checkpoint-postgres==3.2.0 'psycopg[binary]==3.3.9'
fi
program=langgraph.py
if [ "${1:-}" = case ]; then
    [ "$2" != install ] || exit 0
    program=langgraph_case.py
    shift
fi
# Isolated, or it would take itself for the library of its name.
exec "$home/bin/python" -I $program "$@"
