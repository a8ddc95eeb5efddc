#!/usr/bin/env bash
# Runs the tests in surroundings that the machine of a developer or of CI may not have:
#
#     tests/surroundings.sh NAME [PYTEST ARGUMENT...]
#
#     processor   the processor's name is full of Markdown (needs root)
#     time-zone   local time is 14 hours ahead of UTC
#     user        a user without root, in a clone that is theirs (needs root, to become that user)
#     space       a clone whose path has a space
#     all         all four at once (needs root)
#
# Without arguments it runs the tests that `make test` runs. The packages are those of .venv, which `make test` makes. A
# clone has what is committed, and is removed at the end. Nothing outside it is changed: mounts are in a namespace.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

NAME=${1:-}
shift || true
[ $# -gt 0 ] || set -- -q -n 2 --dist loadfile --max-worker-restart 1
PROCESSOR='Intel(R) *Xeon*_[x](y) `@ 2.50GHz` <b>|'
TESTER=54321 # an id that no user has
FAR='<+14>-14'

fail() {
    echo "tests/surroundings.sh: $1" >&2
    exit 2
}

need_root() {
    [ "$(id -u)" -eq 0 ] && unshare --mount true || fail "$NAME needs root and Linux"
}

# A clone in $1 whose environment has the packages of ours, but the code of the clone. It copies nothing.
clone() {
    git clone --quiet --no-hardlinks . "$1"
    .venv/bin/python - "$PWD/.venv" "$1" <<'PYTHON'
import os, sys, sysconfig, venv
from pathlib import Path

ours, checkout = map(Path, sys.argv[1:])
theirs = checkout / ".venv"
venv.create(theirs, symlinks=True)
packages = sysconfig.get_paths(vars={"base": str(theirs), "platbase": str(theirs)})["purelib"]
found = [checkout / "server", checkout / "model_core", sysconfig.get_path("purelib")]
Path(packages, "checkout.pth").write_text("".join(f"{path}\n" for path in found))
python = theirs / "bin" / "python"
for script in (ours / "bin").iterdir():
    target = theirs / "bin" / script.name
    if target.exists() or target.is_symlink():
        continue
    content = script.read_bytes()
    if content.startswith(b"#!"):
        # A path with a space cannot follow `#!`: sh starts Python, which reads the second line as a text.
        line = f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"
        target.write_bytes(line.encode() + content.partition(b"\n")[2])
        target.chmod(0o755)
    elif os.access(script, os.X_OK):
        target.symlink_to(script.resolve())
(theirs / "installed").touch()
PYTHON
}

# What /proc/cpuinfo says of a processor with that name, in $1.
name_processor() {
    PROCESSOR=$PROCESSOR awk -F: '/^model name/ { print $1 ": " ENVIRON["PROCESSOR"]; next } { print }' \
        /proc/cpuinfo >"$1"
    grep -q '^model name' "$1" || printf 'model name\t: %s\n' "$PROCESSOR" >>"$1"
}

[ -x .venv/bin/python ] || fail "there is no .venv; run: make test"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

case $NAME in
processor)
    need_root
    name_processor "$WORK/cpuinfo"
    unshare --mount bash -c 'mount --bind "$0" /proc/cpuinfo && exec "$@"' "$WORK/cpuinfo" \
        .venv/bin/python -m pytest "$@"
    ;;
time-zone)
    TZ=$FAR .venv/bin/python -m pytest "$@"
    ;;
space)
    clone "$WORK/a clone"
    cd "$WORK/a clone"
    env -u PYTHONPATH .venv/bin/python -m pytest "$@"
    ;;
user | all)
    need_root
    clone=$WORK/clone zone=UTC
    cp /proc/cpuinfo "$WORK/cpuinfo"
    if [ "$NAME" = all ]; then
        clone="$WORK/a clone" zone=$FAR
        name_processor "$WORK/cpuinfo"
    fi
    clone "$clone"
    mkdir "$WORK/home" "$WORK/tmp"
    chmod 755 "$WORK"
    chown -R "$TESTER:$TESTER" "$clone" "$WORK/home" "$WORK/tmp"
    sed "\$a tester:x:$TESTER:$TESTER::$WORK/home:/bin/sh" /etc/passwd >"$WORK/passwd"
    sed "\$a tester:x:$TESTER:" /etc/group >"$WORK/group"
    chmod 644 "$WORK/passwd" "$WORK/group" "$WORK/cpuinfo"
    export WORK TESTER clone zone
    # Where the interpreter or .venv is below a folder that the user may not enter, as /root is, that folder is replaced
    # by one that has nothing else.
    # shellcheck disable=SC2016 # the inner shell expands them
    unshare --mount bash -c '
        set -euo pipefail
        mount --bind "$WORK/passwd" /etc/passwd
        mount --bind "$WORK/group" /etc/group
        mount --bind "$WORK/cpuinfo" /proc/cpuinfo
        needed=("$(.venv/bin/python -c "import sys; print(sys.base_prefix)")" "$(realpath .venv)")
        as_tester=(setpriv --reuid "$TESTER" --regid "$TESTER" --clear-groups --inh-caps=-all)
        for folder in "${needed[@]}"; do
            until "${as_tester[@]}" test -x "$folder"; do
                closed=$folder
                while ! "${as_tester[@]}" test -e "$closed"; do closed=${closed%/*}; done
                mkdir -p "$WORK/kept"
                mount --bind "$folder" "$WORK/kept"
                mount -t tmpfs -o mode=755 none "$closed"
                mkdir -p "$folder"
                mount --bind "$WORK/kept" "$folder"
                umount "$WORK/kept"
            done
        done
        cd "$clone"
        exec env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 TZ="$zone" HOME="$WORK/home" TMPDIR="$WORK/tmp" USER=tester \
            LOGNAME=tester "${as_tester[@]}" .venv/bin/python -m pytest "$@"
    ' bash "$@"
    ;;
*) fail "name one of processor, time-zone, user, space and all" ;;
esac
