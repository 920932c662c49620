#!/bin/sh
# Fuzzes a decoder of answers for so many seconds (300), guided by coverage, on stable Rust: libFuzzer comes with a crate, and the
# compiler instruments without its nightly sanitizers. Needs a C++ compiler. The answers of the tests are where it begins.
#
#   agentgraph-llm/fuzz/run.sh anthropic_stream [seconds]        what is found is in agentgraph-llm/fuzz/found
#
# Memory is bounded to 600 MiB and the stack to 1 MiB: input that makes a decoder go deep or allocate what it was only promised fails.
set -eu
cd "$(dirname "$0")"
target=$(rustc -vV | sed -n 's/^host: //p')
passes="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for kind in inline-8bit-counters pc-table trace-compares; do
    passes="$passes -Cllvm-args=-sanitizer-coverage-$kind"
done
# With a target the instrumentation is not for build scripts and macros.
RUSTFLAGS="--cfg fuzzing $passes" cargo build --release --target "$target" --bin "$1"
fuzzer=${CARGO_TARGET_DIR:-target}/$target/release/$1
case $1 in
    anthropic_stream) seeds=../tests/anthropic/wire ;;
esac
ulimit -s 1024
mkdir -p work found "corpus/$1"
"$fuzzer" -max_total_time="${2:-300}" -max_len=4096 -rss_limit_mb=600 -timeout=5 -artifact_prefix=found/ \
    work "corpus/$1" ${seeds:+"$seeds"}
