#!/bin/sh
# UpGrade's own client libraries 6.5, 6.2 and 5.1, unchanged, on the embedded server: in Node and in a page in
# Chromium, on both dialects.
#
#   upgrade-agent/server/tests/javascript_clients/run.sh CHECKOUT [chromium]
#
# CHECKOUT is a clone of github.com/CarnegieLearningWeb/UpGrade with its branches `dev` and `release/6.2` and its
# tag `v5.1.1`. Node, npm and Chromium must be installed; what else it needs goes below the target folder.
# With `RECORD=1` what the libraries say goes to `fixtures/javascript_clients.json`, if all is well.
set -eu
checkout=$(cd "${1:?the folder of a clone of UpGrade}" && pwd)
cd "$(dirname "$0")/../../../.."
chromium=${2:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
home="${CARGO_TARGET_DIR:-$PWD/target}/javascript-clients"
mkdir -p "$home"

# Each library with the HTTP client that its lock file names.
[ -f "$home/package.json" ] || echo '{ "private": true }' >"$home/package.json"
npm install --prefix "$home" --silent --no-audit --no-fund esbuild@0.28.2 playwright-core@1.64.1 uuid@8.3.2 tslib@2 \
    axios-6.5@npm:axios@1.15.0 axios-6.2@npm:axios@1.12.0 axios-5.1@npm:axios@1.4.0 \
    reflect-metadata@0.2 class-validator@0.14 class-transformer@0.5

# library <version> <revision> <folder of the shared types>
library() {
    sources="$home/sources-$1"
    rm -rf "$sources"
    mkdir "$sources"
    git -C "$checkout" archive "$2" clientlibs/js "$3" | tar -x -C "$sources"
    for place in node browser; do
        # As the library's own `webpack.config.ts` has it, but for the size.
        case $place in node) format=cjs ;; browser) format=iife ;; esac
        (cd "$home" && node_modules/.bin/esbuild "sources-$1/clientlibs/js/src/index.ts" --bundle --log-level=error \
            --platform=$place --format=$format --global-name=UpGrade --target=es2019 \
            --define:API_VERSION="${1%%.*}" --define:USE_CUSTOM_HTTP_CLIENT=false \
            --alias:upgrade_types="./sources-$1/$3/src/index.ts" --alias:axios="axios-$1" --outfile="client-$1-$place.js")
    done
}
library 6.5 dev packages/types
library 6.2 release/6.2 types
library 5.1 v5.1.1 types

cargo build --quiet -p upgrade-agent
set -- "${CARGO_TARGET_DIR:-$PWD/target}/debug/upgrade-agent" "$home" "$chromium"
[ -z "${RECORD:-}" ] || set -- "$@" upgrade-agent/server/tests/fixtures/javascript_clients.json
exec node upgrade-agent/server/tests/javascript_clients/play.mjs "$@"
