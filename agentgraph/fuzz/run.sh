#!/bin/sh
# Fuzzes the reader of stored bytes for so many seconds (300), guided by coverage, on stable Rust: libFuzzer comes with a crate, and
# the compiler instruments without its nightly sanitizers. Needs a C++ compiler.
#
#   agentgraph/fuzz/run.sh [seconds]        what is found is in agentgraph/fuzz/found, as input and with its stack
#   agentgraph/fuzz/run.sh minimize         adds to the corpus what reached something new, and drops what adds nothing
#
# Memory is bounded to 300 MiB and the stack to 1 MiB: input that makes the reader go deep or allocate what it was only promised fails.
set -eu
cd "$(dirname "$0")"
target=$(rustc -vV | sed -n 's/^host: //p')
passes="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for kind in inline-8bit-counters pc-table trace-compares; do
    passes="$passes -Cllvm-args=-sanitizer-coverage-$kind"
done
# With a target the instrumentation is not for build scripts and macros.
RUSTFLAGS="--cfg fuzzing $passes" cargo build --release --target "$target"
fuzzer=${CARGO_TARGET_DIR:-target}/$target/release/stored_thread
ulimit -s 1024
if [ "${1:-}" = minimize ]; then
    rm -rf corpus.small && mkdir -p corpus.small work
    # What is replayed with every test is to be small and few: by edges, not by how often they are passed.
    "$fuzzer" -set_cover_merge=1 -use_counters=0 -max_len=300 -rss_limit_mb=300 corpus.small corpus work
    cp corpus/seed-* corpus.small
    rm -rf corpus work && mv corpus.small corpus
    exit
fi
mkdir -p work found
"$fuzzer" -max_total_time="${1:-300}" -max_len=16384 -rss_limit_mb=300 -timeout=5 -artifact_prefix=found/ work corpus
