#!/bin/sh
# Instructions a step, floor and engine, counted by valgrind: exact where times are not.
#
#   benches/instructions.sh                 the central cases
#   benches/instructions.sh chain/100       one case
#   FEW=0 MANY=1 benches/instructions.sh once/40000     with fewer runs, for long ones
#   benches/instructions.sh --check         fails if the engine takes over 3 % more than benches/instructions.txt says
#   benches/instructions.sh --accept        writes that file
#
# Only the runs are counted, not what builds their graphs. An entrant is run twice, 20 and 120 times (FEW and MANY), so that what a runtime costs
# falls out, and what the allocator does only in some runs is spread over a hundred of them.
set -eu
cd "$(dirname "$0")/.."
command -v valgrind > /dev/null || { echo "valgrind is not installed" >&2; exit 1; }

accepted=benches/instructions.txt
mode=
case ${1:-} in
--check | --accept)
    mode=$1
    set -- chain/10 chain/1000 loop fan_out/10 fan_out/100 memory eager/two_branches
    ;;
esac

# The cases of agents are a program of their own.
case ${1:-} in
agent* | gaia*) bench="-p agentgraph-agent-benches --bench agents" ;;
*) bench="-p agentgraph-benches --bench cost" ;;
esac
# The cases that are compared need no store of files.
[ -z "$mode" ] || bench="$bench --no-default-features"
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
    case $mode$said in --*engine* | [!-]*) ;; *) return 0 ;; esac
    few=${FEW:-20} many=${MANY:-120}
    # In a short run one rare turn of the allocator would be a hundredth.
    case $mode$1 in --*/10) many=2020 ;; esac
    less=$(refs "$1" "$2" "$few")
    more=$(refs "$1" "$2" "$many")
    echo "| $1 | ${said%|*} | $(((more - less) / ((many - few) * ${said#*|}))) |"
}

rows() { # cases
    for case in "$@"; do
        for entrant in 0 1 2 3; do
            row "$case" "$entrant" 2> /dev/null || break
        done
    done
}

# A row that is not accepted, or is no longer there, fails as well: else nothing would compare it.
compare() {
    awk -F '|' '
        NR == FNR { accepted[$2 "|" $3] = $4; next }
        { name = $2 "|" $3; limit = accepted[name] * 1.03; seen[name] = 1 }
        !(name in accepted) { print "not accepted: " $0; bad = 1; next }
        $4 > limit { print "over 3 % more than " accepted[name] ":" $0; bad = 1; next }
        { print "accepted" accepted[name] ": " $0 }
        END {
            for (name in accepted) if (!(name in seen)) { print "missing: " name; bad = 1 }
            if (bad) print "If that is meant: benches/instructions.sh --accept"
            exit bad
        }' "$accepted" -
}

case $mode in
--check) rows "$@" | compare ;;
--accept) rows "$@" > "$accepted.new" && mv "$accepted.new" "$accepted" ;;
*)
    echo "| case | entrant | instructions a unit |"
    echo "|---|---|---|"
    rows ${*:-chain/10 chain/100 chain/1000 loop fan_out/100 fan_out/1000 memory}
    ;;
esac
