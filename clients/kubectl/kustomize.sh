#!/usr/bin/env bash
# Many objects at once: kustomizations, apply --prune by list and by set, replace --force, folders, server-side diff of them.
source "$(dirname "$0")/../lib.sh"
start_server
cd "$work"

mkdir -p base over
cat >base/kustomization.yaml <<'END'
resources: [deployment.yaml]
configMapGenerator:
- name: settings
  literals: [color=red]
END
cat >base/deployment.yaml <<'END'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx, envFrom: [{configMapRef: {name: settings}}]}]
END
cat >over/kustomization.yaml <<'END'
namespace: shop
namePrefix: my-
resources: [../base, namespace.yaml]
images: [{name: nginx, newTag: "2"}]
labels: [{pairs: {team: a}}]
patches:
- target: {kind: Deployment}
  patch: '[{"op": "replace", "path": "/spec/replicas", "value": 3}]'
END
printf 'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n' >over/namespace.yaml
says "build" 'image: nginx:2' k kustomize over
says "apply -k" 'namespace/shop created.*configmap/my-settings-[a-z0-9]+ created.*deployment.apps/my-web created' k apply -k over
says "again" 'namespace/shop unchanged.*configmap/my-settings-[a-z0-9]+ unchanged.*deployment.apps/my-web unchanged' k apply -k over
works "no difference" k diff -k over
prints "patched, named, labelled" "3 nginx:2 a" k get deployment -n shop my-web -o 'jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image} {.metadata.labels.team}'
prints "the generated name is referred to" "$(k get configmaps -n shop -l team=a -o 'jsonpath={.items[0].metadata.name}')" k get deployment -n shop my-web -o 'jsonpath={.spec.template.spec.containers[0].envFrom[0].configMapRef.name}'
sed -i 's/color=red/color=blue/' base/kustomization.yaml
refused "a difference" '\+  color: blue.*\+ +name: my-settings-' k diff -k over
says "the changed one has another name" 'configmap/my-settings-[a-z0-9]+ created.*deployment.apps/my-web configured' k apply -k over
says "and the old one is pruned" 'configmap/my-settings-[a-z0-9]+ pruned' k apply -k over --prune -l team=a --prune-allowlist=core/v1/ConfigMap
says "get -k" 'deployment.apps/my-web' k get -k over
# The namespace may end before the others are asked for.
says "delete -k" 'namespace "shop" deleted' k delete -k over --ignore-not-found --timeout=120s

# one NAME...: config maps of a set.
one() {
    local name
    for name in "$@"; do
        printf -- '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {set: s}}\ndata: {k: v}\n' "$name"
    done
}
one a b c | k apply -f - >/dev/null
k create configmap other >/dev/null
k label configmap other set=s >/dev/null
says "prune by list, dry" 'configmap/c pruned \(server dry run\)' sh -c "$(declare -f one); one a b | '$KUBECTL' apply --dry-run=server --prune -l set=s --prune-allowlist=core/v1/ConfigMap -f -"
says "prune by list" 'configmap/a unchanged.*configmap/b unchanged.*configmap/c pruned' sh -c "$(declare -f one); one a b | '$KUBECTL' apply --prune -l set=s --prune-allowlist=core/v1/ConfigMap -f -"
works "what was not applied stays" k get configmap other
export KUBECTL_APPLYSET=true
says "a set, without knowing of it" 'configmap/x serverside-applied.*configmap/z serverside-applied' sh -c "$(declare -f one); one x z | '$KUBECTL' apply -n default --server-side --prune --applyset=mine -f -"
says "its parent knows the kinds" 'ConfigMap' k get secret mine -o 'jsonpath={.metadata.annotations.applyset\.kubernetes\.io/contains-group-kinds}'
says "its members have its label" 'configmap/x\s+configmap/z' k get configmaps -o name -l "applyset.kubernetes.io/part-of=$(k get secret mine -o 'jsonpath={.metadata.labels.applyset\.kubernetes\.io/id}')"
says "prune by set, dry" 'configmap/z pruned \(server dry run\)' sh -c "$(declare -f one); one x | '$KUBECTL' apply -n default --dry-run=server --server-side --prune --applyset=mine -f -"
says "prune by set" 'configmap/x serverside-applied.*configmap/z pruned' sh -c "$(declare -f one); one x | '$KUBECTL' apply -n default --server-side --prune --applyset=mine -f -"
says "a set with a parent of another kind" 'configmap/u serverside-applied' sh -c "$(declare -f one); one u | '$KUBECTL' apply -n default --server-side --prune --applyset=configmaps/holder -f -"

before=$(field configmap/a .metadata.uid)
one a >a.yaml
says "replace by force" 'configmap "a" deleted.*configmap/a replaced' k replace --force -f a.yaml
refused "it is another" other sh -c "[ '$before' != \"\$('$KUBECTL' get configmap a -o 'jsonpath={.metadata.uid}')\" ] && echo other && exit 1"
mkdir -p many/deep
one m >many/m.yaml
one o >many/deep/o.yaml
says "a folder" 'configmap/m created\s*$' k apply -f many
says "with what is below it" 'configmap/o created' k apply -R -f many
works "no difference in a folder" k diff -R -f many
sed -i 's/k: v/k: w/' many/deep/o.yaml
refused "one on the server's side" '\+  k: w' k diff --server-side --force-conflicts -R -f many
says "several files" 'configmap/m unchanged.*configmap/o configured' k apply -f many/m.yaml -f many/deep/o.yaml
says "edit what was applied last" 'configmap/o edited' env KUBE_EDITOR="sed -i s/'k: w'/'k: x'/" "$KUBECTL" apply edit-last-applied configmap/o
says "it is kept" 'k: x' k apply view-last-applied configmap/o
says "set what was applied last" 'configmap/o configured' k apply set-last-applied -f many/deep/o.yaml
says "create and save" 'created' k create --save-config -f - <<'END'
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "saved"}}
END
works "what was saved" k apply view-last-applied configmap/saved

says "label by file" 'configmap/m labeled' k label -f many/m.yaml x=y
says "label by selector" 'configmap/m labeled' k label configmaps -l x=y z=1
says "list the labels" 'z=1' k label configmap m --list
says "annotate all" 'configmap/saved annotated' k annotate configmaps --all note=x
says "annotate if the version is" 'annotated' k annotate configmap m note=y --overwrite --resource-version="$(field configmap/m .metadata.resourceVersion)"
refused "not if it is another" 'the object has been modified|Conflict' k annotate configmap m note=z --overwrite --resource-version=1
says "patch from a file" 'patched' sh -c "printf 'data: {k: patched}' >p.yaml; '$KUBECTL' patch configmap m --patch-file p.yaml"
says "patch on the client's side" 'k: local' k patch -f many/m.yaml --local -p '{"data": {"k": "local"}}' -o yaml
k create deployment d --image=x >/dev/null
says "patch a status" 'deployment.apps/d patched' k patch deployment d --subresource=status --type=merge -p '{"status":{"replicas":4}}'
prints "it is there" 4 k get deployment d --subresource=status -o 'jsonpath={.status.replicas}'
says "patch a scale" 'patched' k patch deployment d --subresource=scale --type=merge -p '{"spec":{"replicas":2}}'
says "a scale as a table" 'NAME +DESIRED +AVAILABLE +AGE\s+d +2 +4' k get deployment d --subresource=scale
prints "it is scaled" 2 field deployment/d .spec.replicas
says "replace a status" 'replaced' sh -c "'$KUBECTL' get deployment d -o json | jq '.status.replicas = 5 | .spec.replicas = 9' | '$KUBECTL' replace --subresource=status -f -"
prints "only that" "5 2" k get deployment d -o 'jsonpath={.status.replicas} {.spec.replicas}'
