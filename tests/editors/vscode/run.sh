#!/usr/bin/env bash
# All tests in the real VS Code: packages the extension, then a person's way through it with screenshots, its tests in the
# extension host, and what goes wrong. `PYTHON` (with the [dev] extra) builds the wheel and chooses the edit.
# Screenshots land in build/editors/vscode.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$here/../../.." && pwd)
extension=$checkout/vscode-extension
cache=${EDITORS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rlm-lsp-editors}
export PYTHON=${PYTHON:-python3}
PYTHON=$(command -v "$PYTHON")
PYTHON=$(cd "$(dirname "$PYTHON")" && pwd)/$(basename "$PYTHON")

"$here/get_vscode.sh"
export PATH=$cache/node24/bin:$PATH

echo "==> packaging the extension"
cd "$extension"
if [ ! -e node_modules/installed ] || [ package-lock.json -nt node_modules/installed ]; then
    npm ci --no-fund --no-audit --loglevel=error
    touch node_modules/installed
fi
npm run --silent lint
npx tsc --noEmit -p "$here"
npm run --silent package >build.log 2>&1 || { cat build.log; exit 1; }
rm -f build.log

workspace=$(mktemp -d)
trap 'rm -rf "$workspace"' EXIT
screenshots=$checkout/build/editors/vscode
rm -rf "$screenshots"
"$PYTHON" "$here/prepare.py" "$workspace"

node "$here/journey.mjs" rlm-lsp.vsix "$workspace" "$screenshots"
git -C "$workspace/shop" checkout --quiet .
server=$(ls "$workspace"/home/user/User/globalStorage/rlm-lsp.rlm-lsp/server/*/bin/python)
echo "==> tests in the extension host"
node "$here/host.mjs" "$server" "$workspace"
git -C "$workspace/shop" checkout --quiet .
node "$here/failures.mjs" rlm-lsp.vsix "$workspace" "$screenshots"
echo "==> all tests in VS Code passed; screenshots are in $screenshots"
