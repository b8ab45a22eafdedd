#!/usr/bin/env bash
# Helm: a chart with a definition, an object of it, hooks and a test, through its whole life.
source "$(dirname "$0")/../lib.sh"
: "${HELM:=$("$clients/install/helm" 3)}"
start_server
cd "$work"
helm() { "$HELM" "$@"; }
gear() { field gear/r .spec.teeth; }

works "a chart is scaffolded" helm create shop
mkdir shop/crds
cat >shop/crds/gears.yaml <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: gears, singular: gear, kind: Gear}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {teeth: {type: integer, minimum: 1}}}
YAML
cat >shop/templates/gear.yaml <<'YAML'
apiVersion: shop.example.com/v1
kind: Gear
metadata: {name: "{{ .Release.Name }}"}
spec: {teeth: {{ .Values.teeth | default 3 }}}
YAML
cat >shop/templates/before.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: "{{ .Release.Name }}-before"
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
data: {revision: "{{ .Release.Revision }}"}
YAML
cat >shop/templates/known.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-known"}
data:
  gears: '{{ .Capabilities.APIVersions.Has "shop.example.com/v1/Gear" }}'
  minor: '{{ .Capabilities.KubeVersion.Minor }}'
  found: '{{ dig "metadata" "name" "" (lookup "v1" "Namespace" "" "default") }}'
YAML

says "the linter has nothing against it" '0 chart\(s\) failed' helm lint shop
says "install" 'STATUS: deployed' helm install r shop
prints "the definition comes before its object" 3 gear
prints "what charts ask of the cluster is answered" "true 33 default" \
    k get cm r-known -o 'jsonpath={.data.gears} {.data.minor} {.data.found}'
prints "the hook ran" 1 field cm/r-before .data.revision
refused "a second install of the name" 'cannot re-?use a name' helm install r shop
says "upgrade" 'has been upgraded' helm upgrade r shop --set teeth=5 --set replicaCount=2
prints "the upgrade changed the object" 5 gear
prints "and the deployment" 2 field deployment/r-shop .spec.replicas
prints "the hook ran again" 2 field cm/r-before .data.revision
refused "an upgrade that the schema forbids" 'teeth' helm upgrade r shop --set teeth=-1
prints "which changed nothing" 5 gear
says "history" 'superseded.*deployed.*failed' helm history r
says "rollback" 'Rollback was a success' helm rollback r 1
prints "brings the object back" 3 gear
works "somebody changes an object" k scale deployment r-shop --replicas=7
# Helm 4 applies on the server's side and tells of the conflict; Helm 3 overwrites.
force=()
if helm version --short | grep -q '^v4'; then
    refused "an upgrade conflicts with that" 'conflict with "kubectl".*spec.replicas' helm upgrade r shop --set replicaCount=4
    force=(--force-conflicts)
fi
says "an upgrade puts it back" 'has been upgraded' helm upgrade r shop --set replicaCount=4 "${force[@]}"
prints "and is so" 4 field deployment/r-shop .spec.replicas
says "list" 'r[[:space:]]+default' helm list --all-namespaces
says "the manifest is kept" 'kind: Gear' helm get manifest r
says "install with an own namespace" 'STATUS: deployed' helm install s shop --namespace other --create-namespace
says "dry run on the server" 'kind: Gear' helm install t shop --dry-run=server --namespace other
says "uninstall" 'uninstalled' helm uninstall r
refused "its objects are gone" NotFound k get gear r
prints "the other release is not touched" 3 k get gear s -n other -o 'jsonpath={.spec.teeth}'
says "an upgrade that installs" 'does not exist. Installing' helm upgrade --install r shop
says "uninstall and keep the history" 'uninstalled' helm uninstall r --keep-history
says "the history is there" 'uninstalled' helm history r
