//! What the definitions render, beside what KubeVela's make of the same parameters.

use object::{Value, json, yaml};

use super::super::declared::Component;
use super::super::render::{Context, Definitions, render};
use super::{COMPONENTS, DefinitionKind, TRAITS, all, find};

struct Own;

impl Definitions for Own {
    fn component(&self, name: &str) -> Option<&Value> {
        find(DefinitionKind::Component, name).map(AsRef::as_ref)
    }
    fn of_trait(&self, name: &str) -> Option<&Value> {
        find(DefinitionKind::Trait, name).map(AsRef::as_ref)
    }
    fn step(&self, _: &str) -> Option<&Value> {
        None
    }
    fn referred(&self, _: &str) -> &[Value] {
        &[]
    }
}

fn parse(text: &str) -> Value {
    yaml::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The objects of a component, without the metadata that every object gets.
fn rendered(component: &str) -> Result<Vec<Value>, String> {
    let context = Context { app: "app".into(), namespace: "n".into(), app_namespace: "n".into(), ..Context::default() };
    let mut objects = render(&Component::read(&parse(component)), &Own, &context, None)?;
    for object in &mut objects {
        object.remove_at(&["metadata", "namespace"]);
        let labels = object.object_entry("metadata").object_entry("labels");
        labels.retain(|key, _| !key.contains("oam.dev/"));
        if labels.is_empty() {
            object.remove_at(&["metadata", "labels"]);
        }
    }
    Ok(objects)
}

/// A workload of this name with one pod template.
fn workload(kind: &str, spec: &str, pod: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: web}}, spec: {{{spec}selector: {{matchLabels: {{app.oam.dev/component: web}}}}, template: {{metadata: {{labels: {{app.oam.dev/name: app, app.oam.dev/component: web}}}}, spec: {pod}}}}}}}"
    )
}

fn deployment(pod: &str) -> String {
    workload("Deployment", "", pod)
}

const NGINX: &str = "{containers: [{name: web, image: nginx}]}";

/// Checks that components render what is expected.
fn check(rows: &[(&str, &[String])]) {
    for (component, expected) in rows {
        let component = format!("{{name: web, {component}}}");
        let told: Vec<String> = match rendered(&component) {
            Ok(objects) => objects.iter().map(json::to_string).collect(),
            Err(error) => vec![error],
        };
        let expected: Vec<String> = expected.iter().map(|text| json::to_string(&parse(text))).collect();
        assert_eq!(told, expected, "{component}");
    }
}

#[test]
fn every_definition_is_read_and_its_schema_holds() {
    assert_eq!((COMPONENTS.len(), TRAITS.len()), (6, 19));
    for definition in all() {
        let schema = definition.at(&["spec", "schematic", "parameterSchema"]).cloned().unwrap_or(true.into());
        let checked = crate::permit::params::check_schema_at(&schema, definition.name());
        assert_eq!(checked, Ok(()), "{}", definition.name());
        assert!(definition.annotation("definition.oam.dev/description").is_some(), "{}", definition.name());
    }
}

#[test]
fn services_are_workloads_of_one_container() {
    check(&[
        ("type: webservice, properties: {image: nginx}", &[deployment(NGINX)]),
        (
            "type: webservice, properties: {image: nginx, port: 8000}",
            &[deployment("{containers: [{name: web, image: nginx, ports: [{containerPort: 8000}]}]}")],
        ),
        (
            "type: webservice, properties: {image: nginx, exposeType: NodePort, ports: [{port: 80, containerPort: 8080, expose: true, nodePort: 30080}, {port: 53, protocol: UDP}, {port: 9, name: nine}]}",
            &[
                deployment("{containers: [{name: web, image: nginx, ports: [{containerPort: 8080, name: port-8080, protocol: TCP}, {containerPort: 53, name: port-53-udp, protocol: UDP}, {containerPort: 9, name: nine, protocol: TCP}]}]}"),
                "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app.oam.dev/component: web}, type: NodePort, ports: [{name: port-8080, nodePort: 30080, port: 80, protocol: TCP, targetPort: 8080}]}}".into(),
            ],
        ),
        (
            "type: webservice, properties: {image: nginx, cmd: [a], args: [b], imagePullPolicy: Never, imagePullSecrets: [s], cpu: '1', memory: 1Gi, limit: {cpu: '2'}, env: [{name: K, value: v}], livenessProbe: {tcpSocket: {port: 1}}, hostAliases: [{ip: 1.2.3.4, hostnames: [h]}]}",
            &[deployment("{containers: [{name: web, image: nginx, command: [a], args: [b], imagePullPolicy: Never, resources: {limits: {cpu: '2', memory: 1Gi}, requests: {cpu: '1', memory: 1Gi}}, env: [{name: K, value: v}], livenessProbe: {tcpSocket: {port: 1}, failureThreshold: 3, initialDelaySeconds: 0, periodSeconds: 10, successThreshold: 1, timeoutSeconds: 1}}], imagePullSecrets: [{name: s}], hostAliases: [{ip: 1.2.3.4, hostnames: [h]}]}")],
        ),
        (
            "type: worker, properties: {image: nginx, volumes: [{name: d, mountPath: /d}, {name: p, mountPath: /p, type: pvc, claimName: c}]}",
            &[deployment("{containers: [{name: web, image: nginx, volumeMounts: [{mountPath: /d, name: d}, {mountPath: /p, name: p}]}], volumes: [{name: d, emptyDir: {medium: ''}}, {name: p, persistentVolumeClaim: {claimName: c}}]}")],
        ),
        (
            "type: statefulset, properties: {image: nginx, volumeMounts: {pvc: [{name: p, mountPath: /p, subPath: s, claimName: c}, {name: p, mountPath: /q, claimName: c}], configMap: [{name: m, mountPath: /m, cmName: x, items: [{key: k, path: p}]}], secret: [{name: s, mountPath: /s, secretName: yy}], hostPath: [{name: h, mountPath: /h, path: /}]}}",
            &[workload("StatefulSet", "", "{containers: [{name: web, image: nginx, volumeMounts: [{mountPath: /p, name: p, subPath: s}, {mountPath: /q, name: p}, {mountPath: /m, name: m}, {mountPath: /s, name: s}, {mountPath: /h, name: h}]}], volumes: [{name: p, persistentVolumeClaim: {claimName: c}}, {name: m, configMap: {defaultMode: 420, name: x, items: [{key: k, path: p, mode: 511}]}}, {name: s, secret: {defaultMode: 420, secretName: yy}}, {name: h, hostPath: {path: /}}]}")],
        ),
        ("type: daemon, properties: {image: nginx}", &[workload("DaemonSet", "", NGINX)]),
    ]);
}

#[test]
fn tasks_are_jobs() {
    let labels = "{app.oam.dev/name: app, app.oam.dev/component: web}";
    check(&[
        (
            "type: task, properties: {image: nginx, count: 2, cmd: [a], annotations: {x: 'y'}}",
            &[format!(
                "{{apiVersion: batch/v1, kind: Job, metadata: {{name: web}}, spec: {{parallelism: 2, completions: 2, template: {{metadata: {{labels: {labels}, annotations: {{x: 'y'}}}}, spec: {{restartPolicy: Never, containers: [{{name: web, image: nginx, command: [a]}}]}}}}}}}}"
            )],
        ),
        (
            "type: cron-task, properties: {image: nginx, schedule: '* * * * *', labels: {a: b}}",
            &["{apiVersion: batch/v1, kind: CronJob, metadata: {name: web}, spec: {schedule: '* * * * *', concurrencyPolicy: Allow, suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1, jobTemplate: {metadata: {labels: {a: b, app.oam.dev/name: app, app.oam.dev/component: web}}, spec: {parallelism: 1, completions: 1, backoffLimit: 6, template: {metadata: {labels: {a: b, app.oam.dev/name: app, app.oam.dev/component: web}}, spec: {restartPolicy: Never, containers: [{name: web, image: nginx}]}}}}}}".to_owned()],
        ),
    ]);
}

/// A webservice with one trait.
fn with(kind: &str, properties: &str) -> String {
    format!(
        "type: webservice, properties: {{image: nginx, env: [{{name: A, value: '1'}}, {{name: B, value: '2'}}]}}, traits: [{{type: {kind}, properties: {properties}}}]"
    )
}

#[test]
fn traits_change_pods_and_bring_objects() {
    let env = "env: [{name: A, value: '1'}, {name: B, value: '2'}]";
    let plain = format!("{{containers: [{{name: web, image: nginx, {env}}}]}}");
    let container = |more: &str| deployment(&format!("{{containers: [{{name: web, image: nginx, {env}, {more}}}]}}"));
    let both = |more: &str, rest: &str| {
        deployment(&format!("{{containers: [{{name: web, image: nginx, {env}{more}}}], {rest}}}"))
    };
    let scaling = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 10";
    let rows: Vec<(String, Vec<String>)> = vec![
        (with("scaler", "{replicas: 3}"), vec![workload("Deployment", "replicas: 3, ", &plain)]),
        (with("env", "{env: {B: '3', C: '4'}, unset: [A]}"), vec![deployment("{containers: [{name: web, image: nginx, env: [{name: B, value: '3'}, {name: C, value: '4'}]}]}")]),
        (with("env", "{containers: [{containerName: web, replace: true, env: {C: '4'}}]}"), vec![deployment("{containers: [{name: web, image: nginx, env: [{name: C, value: '4'}]}]}")]),
        (with("command", "{command: [a], addArgs: [b]}"), vec![container("command: [a], args: [b]")]),
        (with("container-image", "{image: other, imagePullPolicy: Always}"), vec![deployment(&format!("{{containers: [{{name: web, image: other, imagePullPolicy: Always, {env}}}]}}"))]),
        (with("sidecar", "{name: side, image: envoy, volumes: [{name: v, path: /v}]}"), vec![deployment(&format!("{{containers: [{{name: web, image: nginx, {env}}}, {{name: side, image: envoy, volumeMounts: [{{mountPath: /v, name: v}}]}}]}}"))]),
        (with("init-container", "{name: i, image: busybox, appMountPath: /a, initMountPath: /i}"), vec![both(", volumeMounts: [{mountPath: /a, name: workdir}]", "initContainers: [{name: i, image: busybox, imagePullPolicy: IfNotPresent, volumeMounts: [{mountPath: /i, name: workdir}]}], volumes: [{name: workdir, emptyDir: {}}]")]),
        (with("resource", "{cpu: 0.5, memory: 1Gi}"), vec![container("resources: {limits: {cpu: 0.5, memory: 1Gi}, requests: {cpu: 0.5, memory: 1Gi}}")]),
        (with("resource", "{requests: {cpu: 2}}"), vec![container("resources: {requests: {cpu: 2, memory: 2048Mi}}")]),
        (with("hostalias", "{hostAliases: [{ip: 1.1.1.1, hostnames: [a]}]}"), vec![both("", "hostAliases: [{ip: 1.1.1.1, hostnames: [a]}]")]),
        (with("service-account", "{name: sa, create: true, privileges: [{verbs: [get], apiGroups: [''], resources: [pods]}]}"), vec![
            both("", "serviceAccountName: sa"),
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: sa}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}".into(),
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: sa}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: sa}, subjects: [{kind: ServiceAccount, name: sa}]}".into(),
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa}}".into(),
        ]),
        (with("storage", "{pvc: [{name: p, mountPath: /p, resources: {requests: {storage: 1Gi}}}], configMap: [{name: m, mountPath: /m, data: {k: v}, mountToEnvs: [{envName: X, configMapKey: k}]}], secret: [{name: s, mountOnly: true, mountToEnv: {envName: YY, secretKey: k}}], emptyDir: [{name: e, mountPath: /e}]}"), vec![
            deployment("{containers: [{name: web, image: nginx, env: [{name: A, value: '1'}, {name: B, value: '2'}, {name: X, valueFrom: {configMapKeyRef: {key: k, name: m}}}, {name: YY, valueFrom: {secretKeyRef: {key: k, name: s}}}], volumeDevices: [], volumeMounts: [{mountPath: /p, name: pvc-p}, {mountPath: /m, name: configmap-m}, {mountPath: /e, name: emptydir-e}]}], volumes: [{name: pvc-p, persistentVolumeClaim: {claimName: p}}, {name: configmap-m, configMap: {defaultMode: 420, name: m}}, {name: emptydir-e, emptyDir: {medium: ''}}]}"),
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: v}}".into(),
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {accessModes: [ReadWriteOnce], volumeMode: Filesystem, resources: {requests: {storage: 1Gi}}}}".into(),
        ]),
        (with("gateway", "{domain: x.io, http: {/: 80, /api: 80}}"), vec![
            deployment(&plain),
            "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, annotations: {kubernetes.io/ingress.class: nginx}}, spec: {rules: [{host: x.io, http: {paths: [{path: /, pathType: ImplementationSpecific, backend: {service: {name: web, port: {number: 80}}}}, {path: /api, pathType: ImplementationSpecific, backend: {service: {name: web, port: {number: 80}}}}]}}]}}".into(),
            "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app.oam.dev/component: web}, ports: [{name: port-80, port: 80, targetPort: 80}]}}".into(),
        ]),
        (with("cpuscaler", "{cpuUtil: 60}"), vec![deployment(&plain), format!("{{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {{name: web}}, spec: {{{scaling}, targetCPUUtilizationPercentage: 60}}}}")]),
        (with("hpa", "{cpu: {value: 70}, mem: {}}"), vec![deployment(&plain), format!("{{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {{name: web}}, spec: {{{scaling}, metrics: [{{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 70}}}}}}, {{type: Resource, resource: {{name: memory, target: {{type: Utilization, averageUtilization: 50}}}}}}]}}}}")]),
        (with("json-patch", "{operations: [{op: add, path: /spec/replicas, value: 2}]}"), vec![workload("Deployment", "replicas: 2, ", &plain)]),
        (with("affinity", "{nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: k, values: [v]}]}]}}, tolerations: [{key: t}]}"), vec![both(
            "",
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: In, values: [v]}]}]}}}, tolerations: [{key: t, operator: Equal}]",
        )]),
        (with("json-merge-patch", "{spec: {replicas: 2, template: {spec: {containers: [{name: other, image: x}]}}}}"), vec![workload("Deployment", "replicas: 2, ", "{containers: [{name: other, image: x}]}")]),
        // What waits for its component is not there yet.
        (with("expose", "{port: [80]}"), vec![deployment(&plain)]),
    ];
    let rows: Vec<(&str, &[String])> =
        rows.iter().map(|(component, objects)| (component.as_str(), objects.as_slice())).collect();
    check(&rows);
}

#[test]
fn labels_and_annotations_go_to_pods_too() {
    let objects = rendered(
        "{name: web, type: webservice, properties: {image: nginx}, traits: [{type: labels, properties: {release: stable}}, {type: annotations, properties: {note: x}}]}",
    );
    let object = objects.unwrap_or_default().into_iter().next().unwrap_or_default();
    let pod = object.at(&["spec", "template"]).cloned().unwrap_or_default();
    for of in [&object, &pod] {
        assert_eq!((of.label("release"), of.annotation("note")), (Some("stable"), Some("x")));
    }
    let objects = rendered(
        "{name: web, type: cron-task, properties: {image: nginx, schedule: '* * * * *'}, traits: [{type: annotations, properties: {note: x}}]}",
    );
    let object = objects.unwrap_or_default().into_iter().next().unwrap_or_default();
    assert_eq!(
        object.str_at(&["spec", "jobTemplate", "spec", "template", "metadata", "annotations", "note"]),
        Some("x")
    );
}

#[test]
fn a_container_that_is_not_there_is_an_error() {
    for kind in ["env", "command", "container-image"] {
        let told = rendered(&format!(
            "{{name: web, type: webservice, properties: {{image: nginx}}, traits: [{{type: {kind}, properties: {{containers: [{{containerName: x, image: y}}]}}}}]}}"
        ));
        assert!(told.as_ref().is_err_and(|why| why.contains("index out of bounds: 0")), "{told:?}");
    }
}
