#!/bin/sh
# Random calls on threads in LangGraph and on this server: so many threads, beginning with a seed.
#
#   agentgraph/server/tests/beside_langgraph/run.sh [threads] [seed]
#
# With the file `calls.jsonl` of this folder, `.ci/test` does the same: it has threads of an earlier run.
set -eu
cd "$(dirname "$0")/../../../.."
seed=${2:-$(date +%s)}
home="${CARGO_TARGET_DIR:-$PWD/target}/beside-langgraph-calls"
if ! "$home/bin/python" -c 'import langgraph' 2>/dev/null; then
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet langgraph==1.2.24
fi
echo "beside LangGraph: ${1:-500} threads, seed $seed"
LANGGRAPH_CALLS=$(mktemp)
export LANGGRAPH_CALLS
trap 'rm -f "$LANGGRAPH_CALLS"' EXIT
"$home/bin/python" -I agentgraph/server/tests/beside_langgraph/calls.py "$seed" "${1:-500}" >"$LANGGRAPH_CALLS"
cargo test --locked --workspace --all-features --test serves calls_end_as_on_langgraph
