#!/usr/bin/env bash
# Nodes that are there for show: cordon, drain, taint; and what needs real ones is refused in words that say why.
source "$(dirname "$0")/../lib.sh"
start_server --workloads simulated --simulated-pod-start 200ms

has_nodes() { [ "$(k get nodes -o name | wc -l)" = 3 ]; }
works "there are three nodes" soon has_nodes
says "they are ready" 'node-1 +Ready.*node-2 +Ready.*node-3 +Ready' k get nodes
says "describe a node" 'Name: +node-1.*KubeletReady.*Capacity:.*Allocated resources' k describe node node-1
k create deployment web --image=nginx --replicas=4 >/dev/null
k run single --image=nginx --overrides='{"spec": {"nodeName": "node-1"}}' >/dev/null
works "pods run" k rollout status deployment/web --timeout=120s
works "a single one too" k wait pod/single --for=condition=Ready --timeout=120s

says "cordon" 'node/node-1 cordoned' k cordon node-1
says "cordon again" 'node/node-1 already cordoned' k cordon node-1
says "it takes no pods" 'node-1 +Ready,SchedulingDisabled' k get nodes
refused "drain leaves pods that nobody makes again" 'cannot delete Pods that declare no controller \(use --force to override\): default/single' k drain node-1
says "drain by force" 'pod/single evicted.*node/node-1 drained' k drain node-1 --force --timeout=60s
prints "nothing is left there" "" k get pods -o name --field-selector=spec.nodeName=node-1
works "the others are elsewhere" k rollout status deployment/web --timeout=120s
says "uncordon" 'node/node-1 uncordoned' k uncordon node-1
says "uncordon again" 'node/node-1 already uncordoned' k uncordon node-1

says "a budget" 'poddisruptionbudget.policy/web created' k create poddisruptionbudget web --selector=app=web --min-available=4
is_counted() { [ "$(field pdb/web .status.currentHealthy)" = 4 ]; }
works "it counts" soon is_counted
refused "a drain keeps to it" "Cannot evict pod as it would violate the pod.s disruption budget" k drain node-2 node-3 --timeout=6s
k scale deployment/web --replicas=6 >/dev/null
k rollout status deployment/web --timeout=120s >/dev/null
is_loose() { [ "$(field pdb/web .status.disruptionsAllowed)" = 2 ]; }
works "more pods loosen it" soon is_loose
says "then the drain ends" 'node/node-2 drained' k drain node-2 --timeout=60s
k uncordon node-2 node-3 >/dev/null

says "taint" 'node/node-3 tainted' k taint node node-3 kind=slow:NoSchedule
refused "taint again" 'already has kind taint\(s\) with same effect\(s\) and --overwrite is false' k taint node node-3 kind=slow:NoSchedule
says "taint anew" 'node/node-3 modified' k taint node node-3 kind=slower:NoSchedule --overwrite
prints "the taint" '[{"effect":"NoSchedule","key":"kind","value":"slower"}]' sh -c "'$KUBECTL' get node node-3 -o json | jq -cS .spec.taints"
refused "a taint that cannot be" 'invalid taint effect: Never|invalid taint spec' k taint node node-3 kind=x:Never
says "take it off" 'node/node-3 untainted' k taint node node-3 kind-
refused "which is not there" 'taint "kind" not found' k taint node node-3 kind-
says "taint nodes by label" 'node/node-1 tainted.*node/node-2 tainted.*node/node-3 tainted' k taint node -l kubernetes.io/os=linux only=big:NoSchedule
k run waits --image=nginx >/dev/null
works "nobody runs what does not tolerate it" k wait pod/waits --for=jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}'=Unschedulable --timeout=120s
says "and an event says why" 'FailedScheduling.*untolerated taint' k events --for pod/waits
k taint node --all only- >/dev/null
works "it runs without" k wait pod/waits --for=condition=Ready --timeout=120s

says "events" 'Scheduled +Pod/waits.*Successfully assigned default/waits to node-' k events
says "events of one type" 'LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\s+.* Warning +FailedScheduling' k events --types=Warning
says "events in all namespaces" 'NAMESPACE +LAST SEEN' k events -A
says "events in JSON" 'EventList|"kind": "Event"' k events --for pod/waits -o json
before=$(watchers events)
k get events --watch-only -o name >"$work/events" 2>/dev/null &
soon watched events "$before"
k run seen --image=nginx >/dev/null
works "events are watched" soon grep -q event/seen "$work/events"
says "describe shows events" 'Events:.*Successfully assigned default/seen' sh -c "'$KUBECTL' wait pod/seen --for=condition=Ready >/dev/null; '$KUBECTL' describe pod seen"

no_nodes='this server connects to no nodes'
refused "logs" "Get \"https://node-[1-3]:10250/containerLogs/default/seen/seen\".*$no_nodes" k logs seen
refused "logs that follow" "$no_nodes" k logs -f seen --tail=5 --timestamps
refused "logs of a deployment" "$no_nodes" k logs deployment/web
refused "logs of the last run" 'previous terminated container "seen" in pod "seen" not found|connects to no nodes' k logs seen --previous
refused "logs of no container" 'container none is not valid for pod seen' k logs seen -c none
refused "exec" "$no_nodes" k exec seen -- true
refused "exec in a deployment" "$no_nodes" k exec deployment/web -- true
refused "exec in no container" 'container none is not valid for pod seen|container not found' k exec seen -c none -- true
refused "attach" "$no_nodes" k attach seen
refused "port-forward" "$no_nodes" k port-forward pod/seen :80
refused "copy from a pod" "$no_nodes" k cp seen:/etc/hosts "$work/hosts"
refused "copy into a pod" "$no_nodes" k cp "$work/events" seen:/tmp/x
refused "run and attach" "$no_nodes" timeout 30 "$KUBECTL" run -i --rm shell --image=busybox --restart=Never --overrides='{"metadata": {"annotations": {"simulated.stanchion.dev/run-for": "1m"}}}' -- sh
refused "top of pods" 'Metrics API not available' k top pods
refused "top of nodes" 'Metrics API not available' k top nodes
works "debug adds a container" k debug seen --image=busybox --container=debugger
works "which runs" k wait pod/seen --for=jsonpath='{.status.ephemeralContainerStatuses[0].state.running}' --timeout=120s
refused "debug and attach" "$no_nodes" timeout 30 "$KUBECTL" debug -i seen --image=busybox --container=second
works "debug a copy" k debug seen --image=busybox --copy-to=copy --container=debugger
works "the copy runs" k wait pod/copy --for=condition=Ready --timeout=120s
says "debug a node" 'Creating debugging pod node-debugger-node-1-[a-z0-9]+ with container debugger on node node-1' k debug node/node-1 --image=busybox
refused "debug no node" 'nodes "none" not found' k debug node/none --image=busybox
k proxy --port=0 >"$work/proxy" 2>&1 &
works "a proxy starts" soon grep -q 'Starting to serve on 127.0.0.1:' "$work/proxy"
says "and hands requests on" '"gitVersion": ?"v1\.33' python3 -c '
import sys, urllib.request
print(urllib.request.urlopen("http://" + sys.argv[1] + "/version").read().decode())' "$(sed 's/.* on //' "$work/proxy")"
says "delete a node" 'node "node-3" deleted' k delete node node-3
