#!/bin/sh
# Look up known vulnerabilities: tools/audit.sh NAME COMMAND...
#
# COMMAND is pip-audit or npm audit, which both end with status 1 for a vulnerability and for a registry that cannot
# answer. Status 0: none is known; 1: vulnerabilities, which are listed; 2: they could not be looked up, in one line.
name=$1
shift
report=$("$@" 2>&1) && { printf '%s\n' "$report"; exit 0; }
if printf '%s\n' "$report" | grep -Eq '^Found [0-9]+ known vulnerabilit|^[0-9]+ .*vulnerabilit'; then
    printf '%s\n' "$report"
    exit 1
fi
reason=$(printf '%s\n' "$report" | grep -Eim 1 '40[0-9] |50[0-9] |error' | cut -c 1-200)
echo "$name: nothing was looked up: the registry has no audit service or cannot be reached (${reason:-no reason given});" \
    "name another one in the settings of pip or npm" >&2
exit 2
