#!/bin/sh
# Fuzzes the decoders of a wire for so many seconds (300), guided by coverage, on stable Rust: libFuzzer comes with a crate, and the
# compiler instruments without its nightly sanitizers. Needs a C++ compiler.
#
#   agentgraph-llm/fuzz/run.sh openai_chat [seconds]        what is found is in agentgraph-llm/fuzz/found
#   agentgraph-llm/fuzz/run.sh openai_chat minimize         makes the corpus, which the tests replay, from what was seen
#
# The targets: anthropic_stream, openai_chat, openai_responses and gemini.
# Memory is bounded to 600 MiB and the stack to 1 MiB: input that makes a decoder go deep or allocate what it was only promised fails.
set -eu
cd "$(dirname "$0")"
host=$(rustc -vV | sed -n 's/^host: //p')
passes="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for kind in inline-8bit-counters pc-table trace-compares; do
    passes="$passes -Cllvm-args=-sanitizer-coverage-$kind"
done
# With a target the instrumentation is not for build scripts and macros.
RUSTFLAGS="--cfg fuzzing $passes" cargo build --release --target "$host" --bins
fuzzer=${CARGO_TARGET_DIR:-target}/$host/release/$1
ulimit -s 1024
mkdir -p "work/$1" "corpus/$1" found
if [ "${2:-}" = minimize ]; then
    rm -rf "corpus/$1.small" && mkdir -p "corpus/$1.small"
    # What is replayed with every test is to be small and few: by edges, not by how often they are passed.
    "$fuzzer" -set_cover_merge=1 -use_counters=0 -max_len=1500 -rss_limit_mb=600 -artifact_prefix=found/ \
        "corpus/$1.small" "corpus/$1" "work/$1"
    cp "corpus/$1"/seed-* "corpus/$1.small"
    rm -rf "corpus/$1" "work/$1" && mv "corpus/$1.small" "corpus/$1"
    exit
fi
"$fuzzer" -max_total_time="${2:-300}" -max_len=4096 -rss_limit_mb=600 -timeout=5 -artifact_prefix=found/ \
    -dict=wires.dict "work/$1" "corpus/$1"
