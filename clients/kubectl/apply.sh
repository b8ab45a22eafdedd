#!/usr/bin/env bash
# kubectl apply on the client's side and on the server's, diff, and the way from one to the other.
source "$(dirname "$0")/../lib.sh"
start_server
cd "$work"

says "a definition" 'widgets.shop.example.com created' k apply -f "$here/widgets.yaml"
says "the same again" 'widgets.shop.example.com unchanged' k apply -f "$here/widgets.yaml"

# widget NAME FIELD...: an object's file.
widget() {
    printf 'apiVersion: shop.example.com/v1\nkind: Widget\nmetadata:\n  name: %s\nspec:\n  size: small\n' "$1"
    shift
    printf '  %s\n' "$@"
}

widget w 'replicas: 2' 'note: one' >w.yaml
says "apply creates" 'widget.shop.example.com/w created' k apply -f w.yaml
says "apply changes nothing" 'widget.shop.example.com/w unchanged' k apply -f w.yaml
widget w 'replicas: 3' >w.yaml
refused "diff shows the change" '-  note: one.*-  replicas: 2.*\+  replicas: 3' k diff -f w.yaml
refused "diff on the server's side" '-  replicas: 2.*\+  replicas: 3' k diff --server-side --force-conflicts -f w.yaml
says "apply changes and takes away" 'configured' k apply -f w.yaml
prints "it is so" "3 " k get widget w -o 'jsonpath={.spec.replicas} {.spec.note}'
works "no difference is left" k diff -f w.yaml
says "what was applied last" 'replicas: 3' k apply view-last-applied widget/w
says "dry run of the client" 'created \(dry run\)' sh -c "sed 's/name: w/name: x/' w.yaml | '$KUBECTL' apply --dry-run=client -f -"
says "dry run of the server" 'created \(server dry run\)' sh -c "sed 's/name: w/name: x/' w.yaml | '$KUBECTL' apply --dry-run=server -f -"
refused "neither is there" NotFound k get widget x

says "the server's side takes over from the client's" 'widget.shop.example.com/w serverside-applied' k apply --server-side -f w.yaml
prints "only appliers manage it" '["kubectl:Apply","kubectl-last-applied:Apply"]' sh -c "'$KUBECTL' get widget w -o json --show-managed-fields | jq -c '[.metadata.managedFields[] | select(.manager | startswith(\"kubectl\")) | .manager + \":\" + .operation]'"
widget w >w.yaml
says "what is no longer applied goes" 'serverside-applied' k apply --server-side -f w.yaml
prints "the default is back" 1 field widget/w .spec.replicas

widget s 'replicas: 2' 'note: mine' >s.yaml
says "apply on the server creates" 'widget.shop.example.com/s serverside-applied' k apply --server-side --field-manager=one -f s.yaml
version=$(field widget/s .metadata.resourceVersion)
says "and changes nothing the second time" 'serverside-applied' k apply --server-side --field-manager=one -f s.yaml
prints "not even the version" "$version" field widget/s .metadata.resourceVersion
widget s 'note: yours' >other.yaml
refused "a conflict names manager and field" 'conflict with "one".*\.spec\.note' k apply --server-side --field-manager=two -f other.yaml
refused "a conflict is explained" 'Please review the fields above.*--force-conflicts' k apply --server-side --field-manager=two -f other.yaml
says "by force" 'serverside-applied' k apply --server-side --field-manager=two --force-conflicts -f other.yaml
prints "the other's note" "yours 2" k get widget s -o 'jsonpath={.spec.note} {.spec.replicas}'
prints "who owns the note" two sh -c "'$KUBECTL' get widget s -o json --show-managed-fields | jq -r '.metadata.managedFields[] | select(.fieldsV1[\"f:spec\"][\"f:note\"]) | .manager'"
widget s 'note: yours' 'parts: [{name: lid, count: 3}]' >s.yaml
says "a list with keys" 'serverside-applied' k apply --server-side --field-manager=two -f s.yaml
widget s 'parts: [{name: pot}]' >other.yaml
says "another's item" 'serverside-applied' k apply --server-side --field-manager=three -f other.yaml
prints "both are there" "lid pot" k get widget s -o 'jsonpath={.spec.parts[*].name}'
refused "one object is not scaled over another's apply" 'conflict' sh -c "'$KUBECTL' scale widget s --replicas=4 >/dev/null && sed 's/note: yours/replicas: 7/' s.yaml | '$KUBECTL' apply --server-side --field-manager=two -f -"
refused "diff of a conflict" '\+  note: new' sh -c "sed 's/note: yours/note: new/' s.yaml | '$KUBECTL' diff --server-side --field-manager=two -f -"
refused "apply of what the schema forbids" 'spec.size: Unsupported value: "none"' sh -c "sed 's/size: small/size: none/' s.yaml | '$KUBECTL' apply --server-side --field-manager=two --force-conflicts -f -"

cat >set.yaml <<'END'
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {app: shop}}
data: {k: v}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, labels: {app: shop}}
END
says "several documents" 'configmap/a created.*configmap/b created' k apply -f set.yaml
sed '/^---/,$d' set.yaml >less.yaml
says "prune by label" 'configmap/a unchanged.*configmap/b pruned' k apply --prune -l app=shop --prune-allowlist=core/v1/ConfigMap -f less.yaml
export KUBECTL_APPLYSET=true
says "a set" 'configmap/a serverside-applied.*configmap/b serverside-applied' k apply -n default --server-side --force-conflicts --prune --applyset=shop -f set.yaml
says "prune by set" 'configmap/a serverside-applied.*configmap/b pruned' k apply -n default --server-side --force-conflicts --prune --applyset=shop -f less.yaml

cat >deployment.yaml <<'END'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1
        ports: [{containerPort: 80}]
        env: [{name: A, value: a}]
END
says "a deployment" 'deployment.apps/web created' k apply -f deployment.yaml
says "again" 'deployment.apps/web unchanged' k apply -f deployment.yaml
says "set an image" 'image updated' k set image deployment/web web=nginx:2
says "set a variable" 'env updated' k set env deployment/web B=b
sed -i 's/replicas: 2/replicas: 3/' deployment.yaml
says "a three-way merge" 'configured' k apply -f deployment.yaml
prints "which takes back the image and leaves the variable" "3 nginx:1 A B" k get deployment web -o 'jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env[*].name}'
says "scale" 'deployment.apps/web scaled' k scale deployment web --replicas=5
refused "its conflict" 'conflict with "kubectl.*\.spec\.replicas' k apply --server-side --field-manager=ci -f deployment.yaml
