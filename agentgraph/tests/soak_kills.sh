#!/bin/sh
# Runs that are killed, and races, many more of them than a test run has time for: prints the table of docs/figures.md.
#
#   agentgraph/tests/soak_kills.sh [kills (1000) of each store and mode] [rounds (10000; a fifth of them on Postgres)] [seed]
set -eu
cd "$(dirname "$0")/../.."
export AGENTGRAPH_SOAK=1 AGENTGRAPH_KILLS="${1:-1000}" AGENTGRAPH_ROUNDS="${2:-10000}" AGENTGRAPH_SEED="${3:-$(date +%s)}"
echo "AGENTGRAPH_SEED=$AGENTGRAPH_SEED"
echo
echo "| store | durability | what was done to it, without a violation |"
echo "|---|---|---|"
cargo test --release -q -p agentgraph --all-features --test killed_runs_lose_nothing_stored -- --nocapture 2>&1 |
    sed 's/^\.*|/|/' | grep -E '^\||panicked|in line|FAILED'
