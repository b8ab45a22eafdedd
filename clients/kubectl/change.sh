#!/usr/bin/env bash
# Changing objects: edit, label, annotate, patch, replace, scale, describe.
source "$(dirname "$0")/../lib.sh"
start_server
k create -f "$here/widgets.yaml" >/dev/null
k create configmap settings --from-literal=color=red >/dev/null
k create -f - >/dev/null <<'END'
apiVersion: shop.example.com/v1
kind: Widget
metadata: {name: w}
spec:
  size: small
  parts:
  - {name: lid}
  - {name: pot, count: 2}
END

# editor COMMAND: what kubectl edit runs in place of an editor.
editor() {
    printf '#!/bin/sh\n%s\n' "$1" >"$work/editor"
    chmod +x "$work/editor"
    export EDITOR=$work/editor KUBE_EDITOR=$work/editor
}
editor 'sed -i "s/color: red/color: blue/" "$1"'
says "edit" 'configmap/settings edited' k edit configmap settings
prints "the edit is there" blue field configmap/settings .data.color
prints "who edited" kubectl-edit sh -c "'$KUBECTL' get configmap settings -o json --show-managed-fields | jq -r '.metadata.managedFields[-1].manager'"
editor 'true'
says "an edit that changes nothing" 'Edit cancelled, no changes made' k edit configmap settings
editor 'sed -i "s/size: small/size: large/" "$1"'
says "edit an object of a definition" 'widget.shop.example.com/w edited' k edit widget w
prints "that edit is there" large field widget/w .spec.size
editor 'cp "$1" "'"$work"'/reopened"; sed -i "s/size: large/size: huge/" "$1"'
refused "an edit that is not valid comes back with the reason" 'Edit cancelled|is invalid|copy of your changes' k edit widget w
says "the reason is in the file" 'spec.size: Unsupported value: "huge"' cat "$work/reopened"
editor 'printf "status:\n  phase: Edited\n" >>"$1"'
says "edit the status" 'widget.shop.example.com/w edited' k edit widget w --subresource=status
prints "the status is edited" Edited field widget/w .status.phase

says "label" 'widget.shop.example.com/w labeled' k label widget w line=a
refused "label that is there" "already has a value \(a\), and --overwrite is false" k label widget w line=b
says "label anew" 'labeled' k label widget w line=b --overwrite
prints "the label" b field widget/w .metadata.labels.line
says "take a label off" 'unlabeled' k label widget w line-
says "label all" 'configmap/settings labeled' k label configmaps --all tier=x
refused "a label that cannot be" 'a valid label must be' k label configmap settings "tier=a b" --overwrite
says "annotate" 'annotated' k annotate configmap settings note="a word"
prints "the annotation" "a word" field configmap/settings .metadata.annotations.note
says "take an annotation off" 'annotated' k annotate configmap settings note-

says "merge patch" 'patched' k patch widget w --type=merge -p '{"spec":{"note":"m","replicas":4}}'
prints "it is there" "m 4" k get widget w -o 'jsonpath={.spec.note} {.spec.replicas}'
says "merge patch that changes nothing" 'patched \(no change\)' k patch widget w --type=merge -p '{"spec":{"note":"m"}}'
says "JSON patch" 'patched' k patch widget w --type=json -p '[{"op":"test","path":"/spec/note","value":"m"},{"op":"remove","path":"/spec/note"},{"op":"add","path":"/spec/parts/-","value":{"name":"key"}}]'
prints "parts" "lid pot key" k get widget w -o 'jsonpath={.spec.parts[*].name}'
refused "a JSON patch whose test fails" 'The request is invalid' k patch widget w --type=json -p '[{"op":"test","path":"/spec/size","value":"none"}]'
refused "strategic merge is not for objects of definitions" 'UnsupportedMediaType|unable to find|not supported' k patch widget w --type=strategic -p '{"spec":{"note":"s"}}'
says "strategic merge patch" 'patched' k patch configmap settings -p '{"data":{"shape":"round","color":null}}'
prints "data" '{"shape":"round"}' field configmap/settings .data
refused "a patch that the schema forbids" 'spec.replicas: Invalid value: "string"' k patch widget w --type=merge -p '{"spec":{"replicas":"four"}}'
says "patch the status" 'patched' k patch widget w --subresource=status --type=merge -p '{"status":{"phase":"Open","replicas":2,"selector":"line=b"},"spec":{"size":"small"}}'
prints "only the status" "Open large" k get widget w -o 'jsonpath={.status.phase} {.spec.size}'
says "get the status" 'phase: Open' k get widget w --subresource=status -o yaml
says "patch the scale" 'patched|scale.autoscaling' k patch widget w --subresource=scale --type=merge -p '{"spec":{"replicas":6}}'
prints "scaled by the patch" 6 field widget/w .spec.replicas

says "scale" 'widget.shop.example.com/w scaled' k scale widget w --replicas=5
prints "scaled" 5 field widget/w .spec.replicas
refused "scale from another number" 'Expected replicas to be 9, was 5' k scale widget w --current-replicas=9 --replicas=1
refused "scale of what has none" 'NotFound|not find the requested resource' k scale configmap settings --replicas=2
prints "the scale" "5 2 line=b" k get widget w --subresource=scale -o 'jsonpath={.spec.replicas} {.status.replicas} {.status.selector}'
refused "scale below zero" 'must be greater than or equal to 0|must be at least 0|Invalid value|count is required' k scale widget w --replicas=-2

k get widget w -o json | jq '.spec.size = "small"' >"$work/w.json"
says "replace" 'widget.shop.example.com/w replaced' k replace -f "$work/w.json"
prints "replaced" small field widget/w .spec.size
refused "replace what has changed since" 'Error from server \(Conflict\): .*the object has been modified; please apply your changes to the latest version and try again' k replace -f "$work/w.json"
uid=$(field widget/w .metadata.uid)
says "replace by force" 'widget.shop.example.com/w replaced' sh -c "jq 'del(.metadata.resourceVersion, .metadata.uid)' '$work/w.json' | '$KUBECTL' replace --force -f -"
refused "a new uid" "wanted other" sh -c "[ \"\$('$KUBECTL' get widget w -o 'jsonpath={.metadata.uid}')\" != '$uid' ] && echo wanted other && exit 1"

says "describe an object of a definition" 'Name: +w\s.*Kind: +Widget.*Size: +small.*Events: +<none>' k describe widget w
says "describe a config map" 'Name: +settings.*shape:\s+----\s+round' k describe configmap settings
says "describe a namespace" 'Name: +default.*Status: +Active' k describe namespace default
says "describe a definition" 'Name: +widgets.shop.example.com' k describe crd widgets.shop.example.com
k create secret generic door --from-literal=key=1234 >/dev/null
says "describe a secret" 'Type: +Opaque.*key: +4 bytes' k describe secret door
says "set data from a file" 'configmap/settings replaced' sh -c "'$KUBECTL' create configmap settings --from-literal=a=b --dry-run=client -o yaml | '$KUBECTL' replace -f -"
prints "replaced wholly" '{"a":"b"}' field configmap/settings .data
