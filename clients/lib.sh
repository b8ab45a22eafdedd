# What the scripts that drive a server with kubectl share. Source it; it needs STANCHION (the program) and KUBECTL, which `clients/run`
# sets and which are found here when a script is run by itself.

set -euo pipefail

clients=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
: "${STANCHION:=$("$clients/install/stanchion")}"
: "${KUBECTL:=$("$clients/install/kubectl" 1.33)}"

work=$(mktemp -d)
passed=0
failed=0
server=

# kubectl keeps what it discovers under HOME; a script must not see another server's.
export HOME=$work/home
mkdir -p "$HOME"

k() { "$KUBECTL" "$@"; }

# Version of kubectl as one number: 1.33 is 33.
kubectl_minor() { k version --client -o json | jq -r '.clientVersion.minor' | tr -cd 0-9; }

# start_server [FLAG...]: starts a server of its own, in memory, and points kubectl at it.
start_server() {
    data=$work/data
    : >"$work/server.out"
    "$STANCHION" server --in-memory --data-dir "$data" --listen 127.0.0.1:0 "$@" >"$work/server.out" 2>"$work/server.err" &
    server=$!
    for _ in $(seq 2400); do
        grep -q '^export KUBECONFIG=' "$work/server.out" && break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    grep -q '^export KUBECONFIG=' "$work/server.out" || { cat "$work/server.err" >&2; echo "the server did not start" >&2; exit 1; }
    export KUBECONFIG=$data/admin.kubeconfig
}

finish() {
    local code=$?
    # What a script left in the background.
    for job in $(jobs -p); do
        [ "$job" = "$server" ] || kill "$job" 2>/dev/null || true
    done
    if [ -n "$server" ] && kill "$server" 2>/dev/null; then
        wait "$server" || true
    fi
    if grep -q panicked "$work/server.err" 2>/dev/null; then
        not_ok "the server does not panic" "$work/server.err"
    fi
    rm -rf "$work"
    # `set -e` ended the script before its time.
    [ "$code" = 0 ] || failed=$((failed + 1))
    echo "# $passed passed, $failed failed"
    [ "$failed" = 0 ]
}
trap finish EXIT

ok() {
    passed=$((passed + 1))
    echo "ok - $1"
}

# not_ok NAME FILE...: FILEs say what came.
not_ok() {
    failed=$((failed + 1))
    echo "not ok - $1"
    shift
    sed 's/^/    /' "$@" | head -40
}

# works NAME COMMAND...: the command ends well.
works() {
    local name=$1
    shift
    if "$@" >"$work/out" 2>&1; then ok "$name"; else not_ok "$name" "$work/out"; fi
}

# says NAME PATTERN COMMAND...: the command ends well, and what it prints matches the extended regular expression.
says() {
    local name=$1 pattern=$2
    shift 2
    if "$@" >"$work/out" 2>&1 && grep -qzE -- "$pattern" "$work/out"; then ok "$name"; else
        { echo "wanted: $pattern"; echo "came:"; cat "$work/out"; } >"$work/why"
        not_ok "$name" "$work/why"
    fi
}

# prints NAME TEXT COMMAND...: the command ends well and prints exactly TEXT to its standard output.
prints() {
    local name=$1 text=$2
    shift 2
    if "$@" >"$work/out" 2>"$work/errors" && [ "$(cat "$work/out")" = "$text" ]; then ok "$name"; else
        { echo "wanted:"; echo "$text"; echo "came:"; cat "$work/out" "$work/errors"; } >"$work/why"
        not_ok "$name" "$work/why"
    fi
}

# refused NAME PATTERN COMMAND...: the command fails, and says why.
refused() {
    local name=$1 pattern=$2
    shift 2
    if "$@" >"$work/out" 2>&1; then
        echo "it went through" >>"$work/out"
        not_ok "$name" "$work/out"
    elif grep -qzE -- "$pattern" "$work/out"; then ok "$name"; else
        { echo "wanted: $pattern"; echo "came:"; cat "$work/out"; } >"$work/why"
        not_ok "$name" "$work/why"
    fi
}

# soon COMMAND...: waits until the command ends well, two minutes at most.
soon() {
    local end=$((SECONDS + 120))
    while [ $SECONDS -lt $end ]; do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.1
    done
    return 1
}

# watchers RESOURCE: how many watches of the resource are open.
watchers() {
    k get --raw /metrics | sed -n "/^apiserver_longrunning_requests{.*resource=\"$1\".*verb=\"WATCH\"/s/.* //p" | awk '{ sum += $1 } END { print sum + 0 }'
}

# watched RESOURCE BEFORE: whether there are more watches of the resource than BEFORE.
watched() { [ "$(watchers "$1")" -gt "$2" ]; }

# field RESOURCE/NAME JSONPATH: what the object has there.
field() { k get "$1" -o jsonpath="{$2}"; }
