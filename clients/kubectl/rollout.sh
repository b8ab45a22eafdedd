#!/usr/bin/env bash
# Workloads that run for show: run, expose, set, roll out, scale, and delete with what hangs on them.
source "$(dirname "$0")/../lib.sh"
start_server --workloads simulated --simulated-pod-start 200ms

says "run a pod" 'pod/p created' k run p --image=nginx --port=80 --labels=app=p --env=A=a
works "it gets ready" k wait pod/p --for=condition=Ready --timeout=120s
says "it has a node and an address" 'p +1/1 +Running +0 .* 10\.[0-9.]+ +node-[0-9]' k get pods -o wide
says "run and expose" 'service/q created.*pod/q created|pod/q created.*service/q created' k run q --image=nginx --port=80 --expose
says "run for once" 'pod/once created' k run once --image=busybox --restart=Never -- true
works "it ends" k wait pod/once --for=jsonpath='{.status.phase}'=Succeeded --timeout=120s
says "run by a dry run" 'name: r.*containerPort: 80' k run r --image=nginx --port=80 --dry-run=client -o yaml

k create deployment web --image=nginx:1 --replicas=3 --port=80 >/dev/null
says "roll-out status" 'deployment "web" successfully rolled out' k rollout status deployment/web --timeout=120s
works "wait for a condition of a deployment" k wait deployment/web --for=condition=Available --timeout=120s
says "wait for a number" 'condition met' k wait deployment/web --for=jsonpath='{.status.readyReplicas}'=3 --timeout=120s
says "wait for all by label" '(condition met.*){3}' k wait pods -l app=web --for=condition=Ready --timeout=120s
says "expose a pod" 'service/ps exposed' k expose pod p --name=ps --port=8080 --target-port=80
says "expose a deployment" 'service/web exposed' k expose deployment web --type=LoadBalancer
works "its balancer gets an address" k wait service/web --for=jsonpath='{.status.loadBalancer.ingress[0].ip}' --timeout=120s
has_three() { [ "$(k get endpointslices -l kubernetes.io/service-name=web -o json | jq '[.items[].endpoints[]] | length')" = 3 ]; }
works "it has three end points" soon has_three
says "expose a service again" 'service/web2 exposed' k expose service web --name=web2 --port=81
refused "expose what has no selector" 'cannot be exposed|couldn.t retrieve selectors|cannot expose' k expose configmap kube-root-ca.crt --port=80

says "set an image" 'deployment.apps/web image updated' k set image deployment/web nginx=nginx:2
says "that rolls out" 'successfully rolled out' k rollout status deployment/web --timeout=60s
prints "all pods have it" "nginx:2" sh -c "'$KUBECTL' get pods -l app=web --field-selector=status.phase=Running -o 'jsonpath={range .items[*]}{.spec.containers[0].image}{\"\n\"}{end}' | sort -u"
refused "set the image of no container" 'unable to find container named "none"' k set image deployment/web none=x
says "history" 'deployment.apps/web\s+REVISION +CHANGE-CAUSE\s+1 +<none>\s+2 +<none>' k rollout history deployment/web
says "a revision" 'with revision #1.*Image:\s+nginx:1' k rollout history deployment/web --revision=1
refused "no such revision" 'unable to find the specified revision' k rollout history deployment/web --revision=9
says "a cause" 'annotated' k annotate deployment/web kubernetes.io/change-cause='two is out'
in_history() { k rollout history deployment/web | grep -qE '2 +two is out'; }
works "is in the history" soon in_history
says "undo" 'deployment.apps/web rolled back' k rollout undo deployment/web
says "undone" 'successfully rolled out' k rollout status deployment/web --timeout=60s
prints "the old image" "nginx:1" field deployment/web '.spec.template.spec.containers[0].image'
says "to a revision" 'rolled back' k rollout undo deployment/web --to-revision=2
prints "its image" "nginx:2" field deployment/web '.spec.template.spec.containers[0].image'
refused "to no revision" 'unable to find specified revision 77 in history' k rollout undo deployment/web --to-revision=77
says "undo by a dry run" 'Pod Template' k rollout undo deployment/web --dry-run=client
says "set variables" 'env updated' k set env deployment/web COLOR=red
says "list them" 'COLOR=red' k set env deployment/web --list
says "variables of a config map" 'env updated' sh -c "'$KUBECTL' create configmap c --from-literal=size=3 >/dev/null; '$KUBECTL' set env deployment/web --from=configmap/c --prefix=C_"
prints "they refer to it" c field deployment/web '.spec.template.spec.containers[0].env[?(@.name=="C_SIZE")].valueFrom.configMapKeyRef.name'
says "take one away" 'env updated' k set env deployment/web COLOR-
says "set resources" 'resource requirements updated' k set resources deployment/web -c nginx --limits=cpu=200m,memory=64Mi --requests=cpu=100m
prints "they are there" '{"limits":{"cpu":"200m","memory":"64Mi"},"requests":{"cpu":"100m"}}' field deployment/web '.spec.template.spec.containers[0].resources'
says "set the account" 'serviceaccount updated' k set serviceaccount deployment/web default
says "set the selector of a service" 'selector updated' k set selector service/ps app=q
says "restart" 'deployment.apps/web restarted' k rollout restart deployment/web
says "restarted" 'successfully rolled out' k rollout status deployment/web --timeout=60s
says "pause" 'deployment.apps/web paused' k rollout pause deployment/web
refused "pause what is paused" 'is already paused' k rollout pause deployment/web
refused "restart what is paused" "can't restart paused deployment" k rollout restart deployment/web
k set image deployment/web nginx=nginx:3 >/dev/null
refused "nothing rolls out meanwhile" 'timed out|Waiting for deployment' k rollout status deployment/web --timeout=2s
says "resume" 'deployment.apps/web resumed' k rollout resume deployment/web
refused "resume what is not paused" 'is not paused' k rollout resume deployment/web
says "then it does" 'successfully rolled out' k rollout status deployment/web --timeout=60s

says "scale" 'deployment.apps/web scaled' k scale deployment/web --replicas=1
works "scaled" k wait deployment/web --for=jsonpath='{.status.replicas}'=1 --timeout=120s
refused "scale from another number" 'Expected replicas to be 5, was 1' k scale deployment/web --current-replicas=5 --replicas=2
says "scale a set of pods" 'replicaset.apps/[a-z0-9-]+ scaled' sh -c "'$KUBECTL' scale --replicas=0 \$('$KUBECTL' get rs -l app=web -o name | head -1)"
says "autoscale" 'horizontalpodautoscaler.autoscaling/web autoscaled' k autoscale deployment web --min=1 --max=3 --cpu-percent=80
says "the autoscaler" 'web +Deployment/web +cpu: <unknown>/80% +1 +3' k get hpa
refused "autoscale twice" 'horizontalpodautoscalers.autoscaling "web" already exists' k autoscale deployment web --max=3

k create -f - >/dev/null <<'END'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "db:1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "agent:1"}]}
END
says "a stateful set rolls out" 'partitioned roll out complete|statefulset rolling update complete 2 pods' k rollout status statefulset/db --timeout=60s
says "a daemon set rolls out" 'daemon set "agent" successfully rolled out' k rollout status daemonset/agent --timeout=60s
k set image statefulset/db db=db:2 >/dev/null
k set image daemonset/agent agent=agent:2 >/dev/null
says "a stateful set's new image" 'roll out complete: 2 new pods|rolling update complete 2 pods' k rollout status statefulset/db --timeout=60s
says "a daemon set's new image" 'successfully rolled out' k rollout status daemonset/agent --timeout=60s
for one in statefulset/db daemonset/agent; do
    says "history of $one" '1 +<none>\s+2 +<none>' k rollout history "$one"
    says "undo $one" 'rolled back' k rollout undo "$one"
    works "$one is rolled back" k rollout status "$one" --timeout=60s
done
prints "the stateful set's old image" db:1 field statefulset/db '.spec.template.spec.containers[0].image'

says "delete in the foreground" 'deployment.apps "web" deleted' k delete deployment web --cascade=foreground --timeout=60s
prints "everything went first" "" k get replicasets,pods -l app=web -o name
says "delete and leave orphans" 'statefulset.apps "db" deleted' k delete statefulset db --cascade=orphan
prints "they stay, without an owner" "db-0 db-1 " k get pods -l app=db -o 'jsonpath={.items[*].metadata.name} {.items[*].metadata.ownerReferences}'
says "delete in the background" 'daemonset.apps "agent" deleted' k delete daemonset agent --cascade=background
works "its pods go later" k wait pods -l app=agent --for=delete --timeout=120s
says "delete now" 'pod "p" deleted' k delete pod p --now
says "delete by force" 'Immediate deletion does not wait.*pod "q" force deleted' k delete pod q --force
