#!/usr/bin/env bash
# What the server serves, in its own words: api-resources, api-versions, explain, cluster-info; and what clients check with it.
source "$(dirname "$0")/../lib.sh"
start_server

says "kinds" 'configmaps +cm +v1 +true +ConfigMap' k api-resources
says "kinds of a group" 'customresourcedefinitions +crd,crds +apiextensions.k8s.io/v1 +false +CustomResourceDefinition' k api-resources --api-group=apiextensions.k8s.io
says "what can be done" 'create,delete,deletecollection,get,list,patch,update,watch' k api-resources -o wide
says "names" 'leases.coordination.k8s.io' k api-resources -o name
says "versions" 'apps/v1\s.*(^|\s)v1\s' k api-versions
says "the cluster" 'control plane.* is running at .*https://127.0.0.1:' k cluster-info
works "the definition" k create -f "$here/widgets.yaml"
says "explain an own kind, at once" 'GROUP: +shop.example.com\s+KIND: +Widget\s+VERSION: +v1.*A thing that is sold' k explain widget
says "its fields" 'FIELD: size.*ENUM:\s+small\s+large.*How large it is' k explain widget.spec.size
says "all of them" 'spec.*parts.*count.*status.*phase' k explain widgets --recursive
says "by version" 'FIELDS:' k explain widgets --api-version=shop.example.com/v1
says "required" '-required-' k explain widget.spec
refused "no such field" 'field "none" does not exist' k explain widget.spec.none
says "explain a built-in kind" 'KIND: +ConfigMap.*binaryData.*<map\[string\]string>' k explain configmap
says "deep in a built-in kind" 'FIELD: containerPort <integer>' k explain pod.spec.containers.ports.containerPort
says "a built-in kind, recursively" 'volumeMounts.*mountPath' k explain deployment --recursive
says "the old form" 'KIND: +ConfigMap' k explain configmap --output=plaintext-openapiv2
says "its kind" 'widgets +wd +shop.example.com/v1 +true +Widget' k api-resources --api-group=shop.example.com
says "kinds of a category" 'widgets' k api-resources --categories=goods -o name
says "the plain list" '"kind":"APIGroupList"' k get --raw /apis
says "an OpenAPI document" 'com.example.shop.v1.Widget' k get --raw /openapi/v3/apis/shop.example.com/v1

cat >"$work/wrong.yaml" <<'END'
apiVersion: shop.example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: small, colour: red}
END
refused "an unknown field" 'strict decoding error: unknown field "spec.colour"' k create -f "$work/wrong.yaml"
refused "an unknown field, strictly" 'strict decoding error: unknown field "spec.colour"' k create --validate=strict -f "$work/wrong.yaml"
says "an unknown field, with a warning" 'Warning: unknown field "spec.colour".*created' k create --validate=warn -f "$work/wrong.yaml"
prints "which is not kept" '{"replicas":1,"size":"small"}' field widget/w .spec
says "an unknown field, ignored" '^widget.shop.example.com/w configured|^widget.shop.example.com/w unchanged|^Warning: resource' k apply --validate=ignore -f "$work/wrong.yaml"
cat >"$work/wrong.yaml" <<'END'
apiVersion: v1
kind: ConfigMap
metadata: {name: w}
daata: {a: b}
END
refused "an unknown field of a built-in kind" 'strict decoding error: unknown field "daata"' k create -f "$work/wrong.yaml"
refused "a wrong kind" 'no matches for kind "Gadget" in version "shop.example.com/v1"' sh -c "printf 'apiVersion: shop.example.com/v1\nkind: Gadget\nmetadata: {name: x}\n' | '$KUBECTL' create -f -"
refused "a name that cannot be" 'metadata.name: Invalid value: "Big_One": a lowercase RFC 1123 subdomain' sh -c "printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Big_One}\n' | '$KUBECTL' create -f -"

works "nothing left of the kind" k delete -f "$here/widgets.yaml"
refused "explain a kind that is gone" "doesn't have a resource type|couldn't find resource" k explain widget
