#!/usr/bin/env bash
# Certificates, tokens and rights: certificate approve and deny, create token, auth can-i, whoami and reconcile.
source "$(dirname "$0")/../lib.sh"
start_server

request() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -subj "/O=dev/O=ops/CN=$1" -out "$work/$1.csr" 2>/dev/null
    jq -n --arg name "$1" --arg request "$(base64 -w0 "$work/$1.csr")" --arg usage "${2:-client auth}" '{
        apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: {name: $name},
        spec: {request: $request, signerName: "kubernetes.io/kube-apiserver-client", usages: [$usage]}}' | k create -f - >/dev/null
}
request jane
request eve
says "requests are pending" 'eve .*kubernetes-admin .*Pending\s+jane .*Pending' k get csr
says "approve" 'certificatesigningrequest.certificates.k8s.io/jane approved' k certificate approve jane
says "deny" 'certificatesigningrequest.certificates.k8s.io/eve denied' k certificate deny eve
refused "nothing is both" 'already Approved' k certificate deny jane
refused "nor the other way" 'already Denied' k certificate approve eve
says "as the list says" 'eve .*Denied\s+jane .*Approved' k get csr
prints "who said so" KubectlApprove field csr/jane '.status.conditions[0].reason'
says "describe" 'Requesting User: +kubernetes-admin.*Status: +Approved.*Common Name: +jane' k describe csr jane
refused "a request that is none" 'spec.request: Invalid value' sh -c "'$KUBECTL' get csr jane -o json | jq '.spec.request = \"eA==\" | .metadata = {name: \"x\"}' | '$KUBECTL' create -f -"
works "what is approved is signed" k wait csr/jane --for=jsonpath='{.status.certificate}' --timeout=20s
field csr/jane '.status.certificate' | base64 -d >"$work/jane.crt"
says "for whom it was asked" 'subject=.*CN ?= ?jane' openssl x509 -in "$work/jane.crt" -noout -subject
says "for a year" 'Certificate will not expire' openssl x509 -in "$work/jane.crt" -noout -checkend 31500000
k config view --raw --minify >"$work/jane"
KUBECONFIG="$work/jane" "$KUBECTL" config set-credentials jane --client-certificate="$work/jane.crt" --client-key="$work/jane.key" --embed-certs >/dev/null
KUBECONFIG="$work/jane" "$KUBECTL" config set-context --current --user=jane >/dev/null
says "and is who it says" 'Username +jane.*Groups +\[dev ops system:authenticated\]' k --kubeconfig "$work/jane" auth whoami
request tls "server auth"
k certificate approve tls >/dev/null
works "what a signer does not sign fails" k wait csr/tls --for=condition=Failed --timeout=20s
prints "and says why" "invalid usage for client certificate: server auth" field csr/tls '.status.conditions[?(@.type=="Failed")].message'

k create serviceaccount robot >/dev/null
# claims FLAG...: what a token of the account says.
claims() { k create token robot "$@" | cut -d. -f2 | tr '_-' '/+' | sed 's/$/===/' | base64 -di 2>/dev/null || true; }
says "a token's subject" '"sub":"system:serviceaccount:default:robot"' claims
says "its audience" '"aud":\["shop"\]' claims --audience=shop
prints "its duration" 1200 sh -c "printf '%s' '$(claims --duration=20m)' | jq '.exp - .iat'"
k create secret generic s >/dev/null
says "bound to an object" '"secret":\{"name":"s"' claims --bound-object-kind=Secret --bound-object-name=s
refused "bound to what is not there" 'secrets "none" not found' k create token robot --bound-object-kind=Secret --bound-object-name=none
refused "too short" 'may not specify a duration (less|shorter) than 10 minutes' k create token robot --duration=1m
refused "of no account" 'serviceaccounts "none" not found' k create token none
says "as JSON" '"kind": "TokenRequest"' k create token robot -o json

jq -n --arg config "$(k config view --raw --minify -o json)" --arg token "$(k create token robot)" \
    '$config | fromjson | .users[0].user = {token: $token}' >"$work/robot"
robot=(k --kubeconfig "$work/robot")
says "who is it" 'Username +system:serviceaccount:default:robot.*Groups +\[system:serviceaccounts system:serviceaccounts:default system:authenticated\]' "${robot[@]}" auth whoami
prints "whoami in JSON" system:serviceaccount:default:robot sh -c "'$KUBECTL' --kubeconfig '$work/robot' auth whoami -o json | jq -r .status.userInfo.username"
refused "it may nothing" 'configmaps is forbidden: User "system:serviceaccount:default:robot" cannot list resource "configmaps"' "${robot[@]}" get configmaps
says "roles are reconciled" 'role.rbac.authorization.k8s.io/r reconciled.*rolebinding.rbac.authorization.k8s.io/r reconciled' k auth reconcile -f - <<'END'
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: default}
rules: [{apiGroups: [""], resources: [configmaps, pods/log], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: r, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: ServiceAccount, name: robot, namespace: default}]
END
works "now it may" "${robot[@]}" get configmaps
prints "can it" yes "${robot[@]}" auth can-i list configmaps
prints "can it in a subresource" yes "${robot[@]}" auth can-i get pods --subresource=log
refused "can it not" '^no\s' "${robot[@]}" auth can-i delete configmaps
refused "can it elsewhere" '^no\s' "${robot[@]}" auth can-i list configmaps -n kube-system
refused "can it on every namespace" '^no\s' "${robot[@]}" auth can-i list configmaps -A
works "quietly" "${robot[@]}" auth can-i list configmaps -q
says "can it see the health" '^yes' "${robot[@]}" auth can-i get /healthz
says "everything it can" 'configmaps +\[\] +\[\] +\[get list\].*\[/healthz\]' "${robot[@]}" auth can-i --list
says "can another" '^yes' k auth can-i list configmaps --as=system:serviceaccount:default:robot
says "reconciling adds" 'Role.*reconciled|reconciled' k auth reconcile -f - <<'END'
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: default}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
END
prints "and takes nothing away" '["configmaps","pods/log","secrets"]' sh -c "'$KUBECTL' get role r -o json | jq -c '[.rules[].resources[]] | sort'"
says "unless asked to" 'reconciled' k auth reconcile --remove-extra-permissions -f - <<'END'
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: default}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
END
prints "then it does" '["secrets"]' sh -c "'$KUBECTL' get role r -o json | jq -c '[.rules[].resources[]] | sort'"
says "a role of the cluster" 'clusterrole.rbac.authorization.k8s.io/reader created' k create clusterrole reader --verb=get --resource=nodes,pods/status --non-resource-url=/metrics
says "aggregated roles" 'clusterrole.rbac.authorization.k8s.io/all created' k create clusterrole all --aggregation-rule=team=a
says "bound" 'clusterrolebinding.rbac.authorization.k8s.io/reader created' k create clusterrolebinding reader --clusterrole=reader --serviceaccount=default:robot --group=dev
says "set a subject" 'subjects updated' k set subject clusterrolebinding/reader --user=eve
prints "can Eve" yes k auth can-i get /metrics --as=eve
says "impersonate a group" 'Groups +\[dev system:authenticated\]' k auth whoami --as=x --as-group=dev
says "impersonate a uid" 'UID +77' k auth whoami --as=x --as-uid=77
