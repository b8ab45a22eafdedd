#!/usr/bin/env bash
# Deleting: finalizers, namespaces, definitions.
source "$(dirname "$0")/../lib.sh"
start_server
k create -f "$here/widgets.yaml" >/dev/null

# widget NAME [FINALIZER]
widget() {
    jq -n --arg name "$1" --arg finalizer "${2-}" '{
        apiVersion: "shop.example.com/v1", kind: "Widget", spec: {size: "small"},
        metadata: ({name: $name} + if $finalizer == "" then {} else {finalizers: [$finalizer]} end)}' | k create -f - >/dev/null
}

widget plain
says "delete" 'widget.shop.example.com "plain" deleted' k delete widget plain
refused "it is gone" NotFound k get widget plain
refused "delete what is not there" 'Error from server \(NotFound\): widgets.shop.example.com "plain" not found' k delete widget plain
works "delete what is not there, ignored" k delete widget plain --ignore-not-found
widget plain
says "dry run" 'deleted \(server dry run\)' k delete widget plain --dry-run=server
works "it is still there" k get widget plain
says "delete by label" 'No resources found' k delete widgets -l none=x
k create configmap c1 >/dev/null
k create configmap c2 >/dev/null
k label configmap c1 c2 group=g >/dev/null
says "delete several by label" '"c1" deleted.*"c2" deleted' k delete configmaps -l group=g
widget second
says "delete all" '"plain" deleted.*"second" deleted' k delete widgets --all
says "delete by file" 'widgets.shop.example.com" deleted' k delete -f "$here/widgets.yaml"
refused "the kind went with its definition" "the server doesn't have a resource type|could not find the requested resource" k get widgets
works "and comes back with it" k create -f "$here/widgets.yaml"

widget held example.com/hold
says "delete without waiting" 'deleted' k delete widget held --wait=false
says "it is being deleted" '[0-9]{4}-.*example.com/hold' k get widget held -o 'jsonpath={.metadata.deletionTimestamp} {.metadata.finalizers[0]}'
refused "waiting for it ends" 'timed out waiting' k delete widget held --timeout=1s
refused "no finalizer is added to it" 'Forbidden: no new finalizers can be added if the object is being deleted' k patch widget held --type=merge -p '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'
says "without its finalizer" 'patched' k patch widget held --type=merge -p '{"metadata":{"finalizers":null}}'
refused "it goes" NotFound k get widget held

widget child
says "by force" 'force deleted|deleted' k delete widget child --force --grace-period=0
k create namespace full >/dev/null
k create configmap c -n full >/dev/null
k create -n full -f - >/dev/null <<'END'
{"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}, "spec": {"size": "small"}}
END
says "a namespace" 'namespace "full" deleted' k delete namespace full --wait=false
says "it is ending" 'Terminating' k get namespace full
refused "nothing is created there" 'forbidden: unable to create new content in namespace full because it is being terminated' k create configmap late -n full
left() { k get namespace full -o yaml | grep -qE 'NamespaceFinalizersRemaining|NamespaceContentRemaining'; }
works "it says what is left" soon left
k patch widget held -n full --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
works "it ends when it is empty" k wait namespace/full --for=delete --timeout=120s
refused "default stays" 'is forbidden: this namespace may not be deleted' k delete namespace default
