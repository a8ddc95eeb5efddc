#!/usr/bin/env bash
# All tests in real editors: `run.sh [vscode] [terminal]`, both if none is named; `run.sh person` makes the pictures of a
# person's way through public projects, in VS Code and in Neovim. What is missing is installed into the cache first.
# A part that fails does not keep the others from running; the summary says what was run, how long it took and what came of
# it, and the exit status is 1 if anything failed. Pictures land in build/editors.
# `PYTHON` (with the [dev] extra) builds the wheel, chooses the edit and runs the tests of the terminal editors.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$here/../.." && pwd)
vscode=$here/vscode
export EDITORS_CACHE=${EDITORS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rlm-lsp-editors}
PYTHON=$(command -v "${PYTHON:-python3}") || { echo "no such Python; set PYTHON" >&2; exit 1; }
PYTHON=$(cd "$(dirname "$PYTHON")" && pwd)/$(basename "$PYTHON")
export PYTHON
pictures=$checkout/build/editors
workspace=$(mktemp -d)
trap 'rm -rf "$workspace"' EXIT
summary=()
failed=0

# part NAME COMMAND...: run it, and keep how it ended and how many seconds it took.
part() {
    local name=$1 start=$SECONDS outcome=passed
    shift
    echo "==> $name"
    "$@" || { outcome=FAILED; failed=1; }
    summary+=("$(printf '%-7s %4d s  %s' "$outcome" $((SECONDS - start)) "$name")")
    [ "$outcome" = passed ]
}

left_out() {
    summary+=("$(printf '%-7s %4s    %s' "not run" "" "$1")")
}

packaged() (
    cd "$checkout/vscode-extension" && PATH=$EDITORS_CACHE/node24/bin:$PATH || exit
    if [ ! -e node_modules/installed ] || [ package-lock.json -nt node_modules/installed ]; then
        npm ci --no-fund --no-audit --loglevel=error && touch node_modules/installed || exit
    fi
    npm run --silent lint && npx tsc --noEmit -p "$vscode" || exit
    npm run --silent package >"$workspace/package.log" 2>&1 || { cat "$workspace/package.log"; exit 1; }
)

# in_vscode SCRIPT ARGUMENT...: on the files as they were committed.
in_vscode() {
    git -C "$workspace/shop" checkout --quiet . && "$EDITORS_CACHE/node24/bin/node" "$vscode/$1" "${@:2}"
}

in_host() {
    local server
    server=$(ls "$workspace"/home/user/User/globalStorage/rlm-lsp.rlm-lsp/server/*/bin/python) &&
        in_vscode host.mjs "$server" "$workspace"
}

# The files that vscode-extension/images has: `animated THEME FILE`.
animated() {
    in_vscode animation.mjs "$checkout/vscode-extension/rlm-lsp.vsix" "$workspace" "$workspace/frames" "$1" &&
        "$PYTHON" "$vscode/animate.py" "$workspace/frames" "$pictures/vscode/$2"
}

in_terminal() {
    "$PYTHON" -m pytest -q --rootdir "$checkout" "$here/$1"
}

of_vscode() {
    local vsix=$checkout/vscode-extension/rlm-lsp.vsix after=("tests in its extension host" "the README's animation" "what can go wrong" "trust" "a full model" "update and uninstalling")
    rm -rf "$pictures/vscode"
    part "VS Code: Node.js, code-server, Chromium" "$vscode/get_vscode.sh" &&
        part "VS Code: lint, types, package" packaged &&
        part "VS Code: the held-out edit is chosen" env PYTHONPATH="$checkout" "$PYTHON" "$vscode/prepare.py" "$workspace" || {
        left_out "VS Code: all tests, since it could not be prepared"
        return
    }
    part "VS Code: the package has the same bytes each time; the script that uninstalls" in_terminal vscode
    part "the report in Chromium" in_terminal report
    # The others need the server that it installs.
    part "VS Code: a person's way" in_vscode journey.mjs "$vsix" "$workspace" "$pictures/vscode"
    if ls "$workspace"/home/user/User/globalStorage/rlm-lsp.rlm-lsp/server/*/installed.json >/dev/null 2>&1; then
        part "VS Code: ${after[0]}" in_host
        part "VS Code: ${after[1]}, dark" animated "Dark Modern" edit.gif
        part "VS Code: ${after[1]}, light" animated "Light Modern" edit-light.gif
        part "VS Code: ${after[2]}" in_vscode failures.mjs "$vsix" "$workspace" "$pictures/vscode"
        part "VS Code: ${after[3]}" in_vscode trust.mjs "$vsix" "$workspace" "$pictures/vscode"
        part "VS Code: ${after[4]}" in_vscode full_model.mjs "$vsix" "$workspace" "$pictures/vscode"
        part "VS Code: ${after[5]}" in_vscode uninstall.mjs "$vsix" "$workspace" "$pictures/vscode"
    else
        for name in "${after[@]}"; do left_out "VS Code: $name, since the server was not installed"; done
    fi
}

of_terminal() {
    part "Neovim 0.12 and 0.10, Helix, Emacs" "$PYTHON" "$here/get_editors.py" || {
        left_out "Neovim, Helix, Emacs: all tests, since they could not be had"
        return
    }
    part "pages for Zed and Sublime" in_terminal test_pages.py
    part "Neovim 0.12 and 0.10: tests" in_terminal nvim
    part "Helix: tests" in_terminal helix
    part "Emacs: tests" in_terminal emacs
}

# A person's way through public projects: pictures to be looked at.
of_person() {
    local vsix=$checkout/vscode-extension/rlm-lsp.vsix
    rm -rf "$pictures/person"
    part "VS Code: Node.js, code-server, Chromium" "$vscode/get_vscode.sh" &&
        part "VS Code: lint, types, package" packaged &&
        part "the public projects" env PYTHONPATH="$checkout" "$PYTHON" "$vscode/projects.py" "$workspace" || {
        left_out "a person's way, since it could not be prepared"
        return
    }
    part "VS Code: a person's way through public projects" \
        "$EDITORS_CACHE/node24/bin/node" "$vscode/projects.mjs" "$vsix" "$workspace" "$pictures/person"
    part "Neovim 0.12" "$PYTHON" "$here/get_editors.py" neovim-0.12 &&
        part "Neovim: a person's way through public projects" \
            env PYTHONPATH="$checkout" "$PYTHON" -m tests.editors.nvim.person "$pictures/person"
}

for which in "${@:-vscode}"; do
    case $which in
        vscode) of_vscode ;;
        terminal) of_terminal ;;
        person) of_person ;;
        *) echo "$which: no such editors; there are vscode, terminal and person" >&2; exit 2 ;;
    esac
done
[ $# -gt 0 ] || of_terminal
echo
printf '%s\n' "${summary[@]}"
echo "==> $(find "$pictures" -name '*.png' | wc -l) pictures in $pictures"
[ "$failed" = 0 ] && echo "==> all tests in editors passed" || echo "==> tests in editors failed"
exit "$failed"
