#!/bin/sh
# Random graphs in LangGraph and here: so many, beginning with a seed. The same seed gives the same graphs, and `graphs.py --seed 5
# --count 1 --only 17` one of them. Fails if any comes to something else here.
#
#   agentgraph/tests/beside_langgraph/run.sh [graphs] [seed]
#
# LangGraph is installed, at the version that docs/evidence/langgraph.md is about, into an environment of its own below the target folder.
set -eu
cd "$(dirname "$0")/../../.."
count=${1:-2000}
seed=${2:-$(date +%s)}
home="${CARGO_TARGET_DIR:-$PWD/target}/beside-langgraph"
if ! "$home/bin/python" -c 'import langgraph' 2>/dev/null; then
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet langgraph==1.2.22
fi
echo "beside LangGraph: $count graphs, seed $seed"
# First to a file: of a pipe only the last part can fail.
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
"$home/bin/python" -I agentgraph/tests/beside_langgraph/graphs.py --seed "$seed" --count "$count" >"$lines"
cargo run --release --quiet -p agentgraph --example beside_langgraph <"$lines"
