#!/bin/sh
# Instructions a step, floor and engine, counted by valgrind: exact where times are not.
#
#   benches/instructions.sh                 the central cases
#   benches/instructions.sh chain/100       one case
#   FEW=0 MANY=1 benches/instructions.sh once/40000     with fewer runs, for long ones
#
# Only the runs are counted, not what builds their graphs. An entrant is run twice, 20 and 120 times (FEW and MANY), so that what a runtime costs
# falls out, and what the allocator does only in some runs is spread over a hundred of them.
set -eu
cd "$(dirname "$0")/.."
command -v valgrind > /dev/null || { echo "valgrind is not installed" >&2; exit 1; }

# The cases of agents are a program of their own.
case ${1:-} in
agent* | gaia*) bench="-p agentgraph-agent-benches --bench agents" ;;
*) bench="-p agentgraph-benches --bench cost" ;;
esac
# shellcheck disable=SC2086 # several words
program=$(cargo bench $bench --no-run 2>&1 | sed -n 's/.*(\(.*\)).*/\1/p' | tail -n 1)
[ -x "$program" ] || { echo "the bench was not built" >&2; exit 1; }

refs() { # case entrant times
    valgrind --tool=callgrind --toggle-collect='*counted_runs*' --callgrind-out-file=/dev/null \
        "$program" --solo "$2" --times "$3" "$1" 2>&1 |
        sed -n 's/.*Collected *: *\([0-9]*\).*/\1/p'
}

name() { # case entrant: label and units, as the program says them
    "$program" --solo "$2" --times 0 "$1" 2>&1 | sed -n 's/^[^:]*: \(.*\), \([0-9]*\) [a-z]*s each$/\1|\2/p'
}

row() { # case entrant
    said=$(name "$1" "$2")
    [ -n "$said" ] || return 1
    few=$(refs "$1" "$2" "${FEW:-20}")
    many=$(refs "$1" "$2" "${MANY:-120}")
    echo "| $1 | ${said%|*} | $(((many - few) / ((${MANY:-120} - ${FEW:-20}) * ${said#*|}))) |"
}

echo "| case | entrant | instructions a unit |"
echo "|---|---|---|"
for case in ${*:-chain/10 chain/100 chain/1000 loop fan_out/100 fan_out/1000 memory}; do
    for entrant in 0 1 2 3; do
        row "$case" "$entrant" 2> /dev/null || break
    done
done
