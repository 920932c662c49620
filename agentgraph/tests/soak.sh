#!/bin/sh
# The engine against its reference model on new graphs, for so many seconds (600). Each round has a seed of its own, which is
# printed: the same seed and number of cases repeat it.
#
#   agentgraph/tests/soak.sh [seconds] [first seed]
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-600}
seed=${2:-$(date +%s)}
export PROPTEST_CASES="${PROPTEST_CASES:-2000}"
cargo test --release -p agentgraph --all-features --test engine_matches_reference_model --no-run
end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$end" ]; do
    echo "PROPTEST_RNG_SEED=$seed PROPTEST_CASES=$PROPTEST_CASES"
    PROPTEST_RNG_SEED=$seed cargo test --release -q -p agentgraph --all-features --test engine_matches_reference_model
    seed=$((seed + 1))
done
