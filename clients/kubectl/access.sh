#!/usr/bin/env bash
# Who one is, what one may do, and what a server without nodes cannot do.
source "$(dirname "$0")/../lib.sh"
printf 'secret-token,jane,7,"dev,ops"\n' >"$work/tokens"
start_server --token-auth-file "$work/tokens"

says "who am I" 'Username +[a-z:-]+.*Groups +.*system:masters' k auth whoami
jane=(k --kubeconfig "$work/jane")
k config view --raw --minify >"$work/jane"
"$KUBECTL" --kubeconfig "$work/jane" config unset users >/dev/null
user=$("$KUBECTL" --kubeconfig "$work/jane" config view -o 'jsonpath={.contexts[0].context.user}')
"$KUBECTL" --kubeconfig "$work/jane" config set-credentials "$user" --token=secret-token >/dev/null
says "who is Jane" 'Username +jane\s+UID +7\s+Groups +\[dev ops system:authenticated\]' "${jane[@]}" auth whoami
"$KUBECTL" --kubeconfig "$work/wrong" config view >/dev/null
sed 's/secret-token/other/' "$work/jane" >"$work/wrong"
refused "a token that nobody has" 'Unauthorized|must be logged in' k --kubeconfig "$work/wrong" get configmaps
prints "may I" yes k auth can-i create configmaps
says "what may I" 'Resources.*Verbs' k auth can-i --list
refused "may another" '^no\s' k auth can-i get secrets --as=jane
says "as another" 'Username +eve' k auth whoami --as=eve
refused "logs of a pod that is not there" 'pods "p" not found' k logs p
refused "exec into a pod that is not there" 'pods "p" not found' k exec p -- true
says "a pod" 'pod/p created' k run p --image=nginx
says "stays pending" 'p +0/1 +Pending' k get pods
prints "there are no logs of it" "" k logs p
refused "exec is refused clearly" 'pod p does not have a host assigned' k exec p -- true
refused "port-forward is refused clearly" 'rror' k port-forward p 8080:80
says "events" 'No resources found' k get events
says "a deployment" 'deployment.apps/d created' k create deployment d --image=nginx --replicas=2
says "roles" 'rolebinding.rbac.authorization.k8s.io/b created' sh -c "'$KUBECTL' create role r --verb=get,list --resource=configmaps && '$KUBECTL' create rolebinding b --role=r --user=jane"
prints "now another may" yes k auth can-i get configmaps --as=jane
says "and does" 'No resources found' "${jane[@]}" get configmaps --field-selector metadata.name=none
refused "but not more" 'Error from server \(Forbidden\): secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "default"' "${jane[@]}" get secrets
says "describe a role" 'configmaps +\[\] +\[\] +\[get list\]' k describe role r
says "describe a deployment" 'Name: +d\s.*Replicas: +2 desired' k describe deployment d
says "describe a pod" 'Status: +Pending' k describe pod p
says "delete a pod" 'pod "p" deleted' k delete pod p --timeout=120s
