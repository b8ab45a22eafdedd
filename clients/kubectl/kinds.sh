#!/usr/bin/env bash
# The built-in kinds, made by kubectl's own commands (from 1.32 on in protobuf).
source "$(dirname "$0")/../lib.sh"
start_server

says "a job" 'job.batch/j created' k create job j --image=x -- true
prints "which selects by its uid" "$(field job/j .metadata.uid)" field job/j '.spec.selector.matchLabels.batch\.kubernetes\.io/controller-uid'
prints "its command" '["true"]' field job/j '.spec.template.spec.containers[0].command'
says "a cron job" 'cronjob.batch/c created' k create cronjob c --image=x --schedule='*/5 * * * *'
says "its columns" 'c +\*/5 \* \* \* \* +<none> +False +0 +<none>' k get cronjobs
says "a job of a cron job" 'job.batch/k created' k create job k --from=cronjob/c
says "a deployment" 'deployment.apps/d created' k create deployment d --image=nginx --replicas=2 --port=80
prints "the port's defaults" '[{"containerPort":80,"protocol":"TCP"}]' field deployment/d '.spec.template.spec.containers[0].ports'
says "a service for it" 'service/d exposed' k expose deployment d
says "a service's address" 'ClusterIP +10\.' k get service d
says "an ingress" 'ingress.networking.k8s.io/i created' k create ingress i '--rule=a.example.com/x*=d:80,tls=cert'
says "its columns" 'i +<none> +a.example.com +80, 443' k get ingress
says "an autoscaler" 'autoscaled' k autoscale deployment d --min=1 --max=3
says "a restart" 'deployment.apps/d restarted' k rollout restart deployment d
says "a pause" 'deployment.apps/d paused' k rollout pause deployment d
says "an image" 'image updated' k set image deployment/d nginx=nginx:2
says "resources" 'resource requirements updated' k set resources deployment/d --limits=cpu=200m,memory=64Mi
prints "in canonical form" '{"cpu":"200m","memory":"64Mi"}' field deployment/d '.spec.template.spec.containers[0].resources.limits'
says "a quota" 'resourcequota/q created' k create quota q --hard=pods=10,requests.cpu=2
says "a disruption budget" 'poddisruptionbudget.policy/p created' k create poddisruptionbudget p --selector=app=d --min-available=50%
prints "a percentage stays one" 50% field poddisruptionbudget/p .spec.minAvailable
says "a priority class" 'priorityclass.scheduling.k8s.io/high created' k create priorityclass high --value=5
says "a TLS secret is checked" 'docker.*created' k create secret docker-registry docker --docker-server=r --docker-username=u --docker-password=p
says "a service account" 'serviceaccount/sa created' k create serviceaccount sa
says "its token" '^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\s*$' k create token sa
jq -n --arg config "$(k config view --raw --minify -o json)" --arg token "$(k create token sa)" \
    '$config | fromjson | .users[0].user = {token: $token}' >"$work/sa"
says "which says who one is" 'system:serviceaccount:default:sa' k --kubeconfig "$work/sa" auth whoami
says "roles brought into line" 'reconciled' k auth reconcile -f - <<'END'
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: default}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
END
says "a node" 'node/n created' k create -f - <<'END'
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
END
says "a node set aside" 'node/n cordoned' k cordon n
says "a node emptied" 'node/n drained' k drain n
says "a taint" 'node/n tainted' k taint node n a=b:NoSchedule
says "everything" 'service/d.*deployment.apps/d.*cronjob.batch/c.*job.batch/j' k get all
