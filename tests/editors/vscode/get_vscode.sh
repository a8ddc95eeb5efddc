#!/usr/bin/env bash
# Puts what the tests in VS Code need into the cache: Node.js 24, code-server (the real VS Code, served to a browser) from
# npm, and Chromium from Debian where it is not there yet. A second run does nothing.
set -euo pipefail

cache=${EDITORS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rlm-lsp-editors}
code_server_version=4.139.1
mkdir -p "$cache"

if ! command -v chromium >/dev/null || ! dpkg -s libkrb5-dev fonts-dejavu-core >/dev/null 2>&1; then
    echo "==> Chromium and what code-server is built with (apt-get, once)"
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core libkrb5-dev build-essential pkg-config >/dev/null
fi

"$(dirname "${BASH_SOURCE[0]}")/get_node.sh" --pinned >/dev/null

if [ "$(cat "$cache/code-server/installed" 2>/dev/null)" != "$code_server_version" ]; then
    echo "==> code-server $code_server_version (npm, once: 600 MB, minutes)"
    rm -rf "$cache/code-server"
    mkdir -p "$cache/code-server"
    echo '{"private": true}' >"$cache/code-server/package.json"
    (cd "$cache/code-server" &&
        PATH=$cache/node24/bin:$PATH npm_config_nodedir=$cache/node24 JOBS=2 \
            npm install --no-fund --no-audit --loglevel=error "code-server@$code_server_version")
    echo "$code_server_version" >"$cache/code-server/installed"
fi
