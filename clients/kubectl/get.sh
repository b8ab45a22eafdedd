#!/usr/bin/env bash
# Creating objects, and reading them in every form that kubectl prints.
source "$(dirname "$0")/../lib.sh"
start_server

says "the server's version" 'Server Version: v1\.33\.' k version
says "a namespace" 'namespace/a created' k create namespace a
says "a config map from literals" 'configmap/settings created' k create configmap settings --from-literal=color=red --from-literal=size=3
says "a secret" 'secret/door created' k create secret generic door --from-literal=key=1234
says "a service account" 'serviceaccount/robot created' k create serviceaccount robot
says "a definition" 'widgets.shop.example.com created' k create -f "$here/widgets.yaml"
says "an object of the definition, at once" 'widget.shop.example.com/big created' k create -f - <<'END'
{"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": "big", "labels": {"line": "a"}}, "spec": {"size": "large", "note": "first"}}
END
says "another from YAML, in another namespace" 'widget.shop.example.com/tiny created' k create -n a -f - <<'END'
apiVersion: shop.example.com/v1
kind: Widget
metadata:
  name: tiny
  labels: {line: b}
spec:
  size: small
  replicas: 12
END
refused "the same twice" 'configmaps "settings" already exists' k create configmap settings
refused "an unknown namespace" 'namespaces "nowhere" not found' k create configmap c -n nowhere
refused "a size that the schema does not have" 'The Widget "bad" is invalid: .*spec\.size: Unsupported value: "huge": supported values: "small", "large"' k create -f - <<'END'
{"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": "bad"}, "spec": {"size": "huge"}}
END
refused "what a rule forbids" 'The Widget "bad" is invalid: spec: Invalid value: "object": only small widgets come in dozens' k create -f - <<'END'
{"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": "bad"}, "spec": {"size": "large", "replicas": 12}}
END
says "a generated name" 'configmap/part-[a-z0-9]{5} created' k create -f - <<'END'
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "part-"}}
END
says "a dry run" 'configmap/thought created \(server dry run\)' k create configmap thought --dry-run=server
refused "a dry run leaves nothing" 'configmaps "thought" not found' k get configmap thought

says "columns of a definition" 'NAME +SIZE +REPLICAS\s+big +large +1\s*$' k get widgets
says "wide columns of a definition" 'NAME +SIZE +REPLICAS +NOTE\s+big +large +1 +first\s*$' k get widgets -o wide
says "short name, all namespaces" 'NAMESPACE +NAME +SIZE +REPLICAS\s+a +tiny +small +12\s+default +big +large +1\s*$' k get wd -A
prints "a category" widget.shop.example.com/big k get goods -o name
prints "no headers" "big   large   1" k get widgets --no-headers
says "columns of config maps" 'NAME +DATA +AGE' k get configmaps
says "columns of secrets" 'NAME +TYPE +DATA +AGE\s+door +Opaque +1 ' k get secrets
says "columns of namespaces" 'NAME +STATUS +AGE\s+a +Active ' k get namespaces
says "several kinds" 'configmap/settings.*secret/door' k get configmaps,secrets
prints "names" "widget.shop.example.com/big" k get widgets -o name
prints "JSON" red sh -c "'$KUBECTL' get configmap settings -o json | jq -r .data.color"
says "YAML" 'apiVersion: shop.example.com/v1.*kind: Widget.*uid: ' k get widget big -o yaml
says "a list in YAML" 'kind: List' k get widgets -o yaml
prints "a default" 1 field widget/big .spec.replicas
prints "JSONPath" "tiny big" k get widgets -A -o 'jsonpath={.items[*].metadata.name}'
says "own columns" 'N +S\s+big +large' k get widgets -o custom-columns=N:.metadata.name,S:.spec.size
prints "a template" "big is large" k get widget big -o 'go-template={{.metadata.name}} is {{.spec.size}}'
prints "by label" "widget.shop.example.com/tiny" k get widgets -A -l line=b -o name
prints "by set of labels" "widget.shop.example.com/big" k get widgets -A -l 'line notin (b)' -o name
prints "by field" "configmap/settings" k get configmaps --field-selector metadata.name=settings -o name
says "sorted" 'default +big.*a +tiny' k get widgets -A --sort-by=.spec.replicas
says "labels in columns" 'LINE.*tiny.* b' k get widgets -n a -L line
says "labels" 'line=b' k get widgets -n a --show-labels
says "managed fields" 'f:size' k get widget big -o yaml --show-managed-fields
prints "in pieces" "door tiny big" sh -c "'$KUBECTL' get secrets,widgets -A -o json --chunk-size=1 | jq -r '[.items[].metadata.name] | join(\" \")'"
refused "none of that name" 'Error from server \(NotFound\): widgets.shop.example.com "none" not found' k get widget none
prints "none of that name, ignored" "" k get widget none --ignore-not-found
says "an empty list" 'No resources found in a namespace' k get secrets -n a
refused "no such kind" "the server doesn't have a resource type \"gadgets\"" k get gadgets
prints "raw" '{"color":"red","size":"3"}' sh -c "'$KUBECTL' get --raw /api/v1/namespaces/default/configmaps/settings | jq -c .data"
says "health" '^ok$' k get --raw /readyz
says "health in detail" 'readyz check passed' k get --raw '/readyz?verbose'
says "metrics" 'apiserver_request_total' k get --raw /metrics
