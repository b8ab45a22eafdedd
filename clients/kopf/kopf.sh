#!/usr/bin/env bash
# An operator written with kopf, from its first object to the last: finalizers, status, timers, events, a restart.
source "$(dirname "$0")/../lib.sh"
venv=$clients/../target/clients/kopf
if ! "$venv/bin/python" -c 'import kopf' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
fi
start_server
cd "$work"

k apply -f - >"$work/out" <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cups.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: cups, singular: cup, kind: Cup}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer, default: 1}, label: {type: string}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
YAML

start_operator() {
    "$venv/bin/kopf" run --standalone --namespace default "$here/operator.py" >>"$work/operator" 2>&1 &
    operator=$!
}
stop_operator() { kill "$operator" && wait "$operator"; }
cup() { printf 'apiVersion: shop.example.com/v1\nkind: Cup\nmetadata: {name: %s}\nspec: {size: %s, label: %s}\n' "$@" | k apply -f -; }
is() { [ "$(field "$1" "$2")" = "$3" ]; }

start_operator
works "an object" cup one 2 red
works "its handler ran" soon is cm/one .data.size 2
works "and told its result" soon is cup/one .status.pour.poured 2
works "the object owns what was made for it" is cm/one '.metadata.ownerReferences[0].kind' Cup
works "kopf holds it by a finalizer" is cup/one '.metadata.finalizers[0]' kopf.zalando.org/KopfFinalizerMarker
works "a field's handler labels it" soon is cup/one .metadata.labels.label red
works "a timer counts" soon sh -c "[ \$('$KUBECTL' get cup one -o 'jsonpath={.status.sips}') -ge 2 ]"
works "a change" cup one 3 blue
works "is followed" soon is cm/one .data.size 3
works "by each handler" soon is cup/one .metadata.labels.label blue
works "events tell of it" soon sh -c "'$KUBECTL' get events --field-selector involvedObject.name=one,reason=Poured -o name | grep -q event"
works "the operator ends" stop_operator
works "an object while nobody looks" cup two 5 green
start_operator
works "is seen after a restart" soon is cm/two .data.size 5
works "delete waits for the handler" k delete cup one --timeout=120s
works "which ran" k get cm one-washed
refused "the object is gone" NotFound k get cup one
works "the operator ends again" stop_operator
works "nothing went wrong in it" sh -c "! grep -E 'Traceback|ERROR' '$work/operator' >&2"
