#!/usr/bin/env bash
# Watching with kubectl get -w, and waiting with kubectl wait.
source "$(dirname "$0")/../lib.sh"
start_server
k create -f "$here/widgets.yaml" >/dev/null

names=$(watchers configmaps)
k get widgets -w --no-headers --output-watch-events >"$work/watch" 2>&1 &
k get configmaps -w -o name -l color=red >"$work/names" 2>&1 &
soon watched widgets 0
soon watched configmaps "$names"
k create -f - >/dev/null <<'END'
{"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": "small"}}
END
k patch widget w --type=merge -p '{"spec":{"replicas":3}}' >/dev/null
k delete widget w >/dev/null
k create configmap c >/dev/null
k label configmap c color=red >/dev/null
soon grep -q DELETED "$work/watch" || true
says "added, modified, deleted" '^ADDED +w +small +1\s+MODIFIED +w +small +3\s+DELETED +w +small +3' cat "$work/watch"
soon grep -q configmap/c "$work/names" || true
prints "an object enters a watch when its labels do" configmap/c cat "$work/names"

k create -f - >/dev/null <<'END'
{"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": "small"}}
END
# Only the watch from the beginning is open.
is_alone() { [ "$(watchers widgets)" = 1 ]; }
# together NAME PATTERN CHANGE WAIT...: the wait for a widget ends well when the change comes while it waits.
together() {
    local name=$1 pattern=$2 change=$3
    shift 3
    soon is_alone
    (soon watched widgets 1 && sh -c "$change" >"$work/change" 2>&1) &
    says "$name" "$pattern" "$@"
    wait $!
}
export KUBECTL
together "wait for a condition" 'widget.shop.example.com/w condition met' \
    '"$KUBECTL" patch widget w --subresource=status --type=merge -p "{\"status\":{\"phase\":\"Open\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"' \
    k wait widget/w --for=condition=Ready --timeout=120s
says "wait for a condition that is there" 'condition met' k wait widget/w --for=condition=Ready --timeout=120s
says "wait for a value that is there" 'condition met' k wait widget/w --for=jsonpath='{.status.phase}'=Open --timeout=120s
together "wait for a value" 'condition met' \
    '"$KUBECTL" patch widget w --subresource=status --type=merge -p "{\"status\":{\"phase\":\"Sold\"}}"' \
    k wait widget/w --for=jsonpath='{.status.phase}'=Sold --timeout=120s
together "wait for the end" 'condition met' '"$KUBECTL" delete widget w' k wait widget/w --for=delete --timeout=120s
refused "waiting ends" 'timed out waiting for the condition' k wait configmap/c --for=jsonpath='{.data.never}'=x --timeout=1s
if [ "$(kubectl_minor)" -ge 31 ]; then
    (sleep 0.7 && k create configmap late >/dev/null) &
    says "wait for the beginning" 'condition met' k wait configmap/late --for=create --timeout=120s
    wait $!
fi
says "wait for a definition" 'condition met' k wait crd/widgets.shop.example.com --for=condition=Established --timeout=120s
says "wait for a namespace" 'condition met' k wait ns/default --for=jsonpath='{.status.phase}'=Active --timeout=120s
