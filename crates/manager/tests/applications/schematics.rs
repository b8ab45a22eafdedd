//! Definitions with templates of our own, policies that shape applications, and service accounts that write for them.

use crate::fixture::Fixture;
use crate::script::Step::{Annotated, Create, Edit, EditStatus, Gone, Has, Phase, Ready, Says, Up};
use crate::script::{Row, play};
use manager::application::Options;
use manager::application::compression::Compression;

const WEB: &str = r#"
spec:
  schematic:
    parameterSchema:
      type: object
      required: [image]
      properties:
        image: {type: string, minLength: 1}
        replicas: {type: integer, default: 1, maximum: 5}
        expose: {type: boolean, default: false}
    template:
      output:
        apiVersion: apps/v1
        kind: Deployment
        spec:
          replicas: "{{ .parameter.replicas }}"
          paused: "{{ .parameter.paused }}"
          selector: {matchLabels: {app: "{{ .context.name }}"}}
          template:
            metadata: {labels: {app: "{{ .context.name }}"}}
            spec: {containers: [{name: main, image: "{{ .parameter.image | lower }}"}]}
      outputs:
        service:
          includeWhen: "{{ .parameter.expose }}"
          apiVersion: v1
          kind: Service
          metadata: {name: "{{ .context.name }}"}
          spec: {selector: {app: "{{ .context.name }}"}, ports: [{port: 80}]}
"#;

const CEL: &str = r#"
spec:
  schematic:
    cel:
      output:
        apiVersion: v1
        kind: ConfigMap
        data:
          where: "${context.cluster}/${context.namespace}/${context.appName}"
          sum: "${string(parameter.num + 1)}"
          none: "${parameter.?none}"
      outputs:
        more: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${context.name}-more"}, data: "${parameter.data}"}
    health:
      isHealthy: context.output.data.?approved.orValue('no') == 'yes'
      message: "context.status.healthy ? 'approved' : 'not approved by ' + parameter.by"
      details: {by: parameter.by}
"#;

const SIDECAR: &str = r#"
spec:
  schematic:
    template:
      patch: {spec: {template: {spec: {containers: [{name: side, image: "{{ .parameter.image }}"}]}}}}
      patchOutputs: {service: {metadata: {annotations: {side: car}}}}
      jsonPatch: [{op: add, path: /metadata/annotations, value: {of: "{{ .context.output.kind }}"}}]
"#;

const LATER: &str = r#"
spec:
  stage: PostDispatch
  schematic:
    cel:
      outputs:
        seen: {apiVersion: v1, kind: ConfigMap, metadata: {name: seen}, data: {ready: "${string(context.output.status.readyReplicas)}"}}
    health: {isHealthy: "context.outputs.seen.data.ready == '2'", message: "'saw ' + context.outputs.seen.data.ready"}
"#;

fn component(kind: &str, properties: &str, traits: &str) -> String {
    format!("{{components: [{{name: c, type: {kind}, properties: {properties}, traits: {traits}}}]}}")
}

fn rows() -> Vec<Row> {
    vec![
        (
            "a Go template with a schema renders with defaults, leaves out what is missing, and values keep their types",
            vec![
                Create("component/web", WEB.into()),
                Up(component("web", "{image: NGINX}", "[]")),
                Has("deployment/c", "{spec: {replicas: 1, paused: null}, metadata: {labels: {workload.oam.dev/type: web}}}".into()),
                Gone("service/c"),
                Up(component("web", "{image: nginx, replicas: 2, expose: true}", "[]")),
                Has("service/c", "{metadata: {labels: {trait.oam.dev/type: AuxiliaryWorkload, trait.oam.dev/resource: service}}}".into()),
                Has("deployment/c", "{spec: {replicas: 2}}".into()),
            ],
        ),
        (
            "properties that do not fit are told with component, definition and place, and change nothing",
            vec![
                Create("component/web", WEB.into()),
                Up(component("web", "{replicas: 9}", "[]")),
                Says("component c: definition web: properties.image: Required value; properties.replicas: does not satisfy maximum 5"),
                Gone("deployment/c"),
                Create("component/bad", "{spec: {schematic: {template: {output: {a: '{{ .parameter.x'}}}}}".into()),
                Up(component("bad", "{}", "[]")),
                Says("component c: definition bad: template: schematic.template.output.a:1: unclosed action"),
                Create("component/cue", "{spec: {schematic: {cue: {template: 'output: {}'}}}}".into()),
                Up(component("cue", "{}", "[]")),
                Says("component c: definition cue: CUE templates are not supported"),
            ],
        ),
        (
            "CEL renders values and objects, and says what is healthy; edits of that act without a new version",
            vec![
                Create("component/cel", CEL.into()),
                Up(component("cel", "{num: 4, by: me, data: {a: b}}", "[]")),
                Has("map/c", "{data: {where: local/own-2/app, sum: '5', none: null}}".into()),
                Has("map/c-more", "{data: {a: b}}".into()),
                Says("wait healthy: not approved by me"),
                Edit("map/c", "{data: {approved: 'yes'}}".into()),
                Phase("running"),
                Says("\"message\":\"approved\""),
                Says("\"details\":{\"by\":\"me\"}"),
                Edit("component/cel", "{spec: {schematic: {health: {isHealthy: 'false'}}}}".into()),
                Edit("app/app", "{metadata: {labels: {wake: up}}}".into()),
                Phase("unhealthy"),
            ],
        ),
        (
            "what is applied once has the health that its definition says, at each look",
            vec![
                Create("component/cel", CEL.into()),
                Up(component("cel", "{num: 4, by: me, data: {a: b}}", "[]").trim_end_matches('}').to_owned()
                    + ", policies: [{name: once, type: apply-once, properties: {enable: true}}]}"),
                Says("not approved by me"),
                Edit("map/c", "{data: {approved: 'yes'}}".into()),
                Phase("running"),
                Edit("map/c", "{data: {approved: 'no'}}".into()),
                Phase("unhealthy"),
                Says("not approved by me"),
                Edit("map/c", "{data: {approved: 'yes'}}".into()),
                Phase("running"),
            ],
        ),
        (
            "traits patch the workload as kubectl would, further objects by name, and by operations",
            vec![
                Create("component/web", WEB.into()),
                Create("trait/sidecar", SIDECAR.into()),
                Up(component("web", "{image: nginx, expose: true}", "[{type: sidecar, properties: {image: envoy}}]")),
                Has("deployment/c", "{metadata: {annotations: {of: Deployment}}}".into()),
                Has("service/c", "{metadata: {annotations: {side: car}}}".into()),
                Says("Ready:0/1"),
                Has("tracker/v1", "{spec: {type: versioned}}".into()),
            ],
        ),
        (
            "a trait that waits for its component is pending, then sees its live object, and has a health of its own",
            vec![
                Create("component/web", WEB.into()),
                Create("trait/later", LATER.into()),
                Up(component("web", "{image: nginx, replicas: 2}", "[{type: later}]")),
                Says("\"pending\":true"),
                Says("waiting for component healthy"),
                Gone("map/seen"),
                EditStatus("deployment/c", "{status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2}}".into()),
                Has("map/seen", "{data: {ready: '2'}, metadata: {labels: {trait.oam.dev/type: later}}}".into()),
                Phase("running"),
                Says("\"message\":\"saw 2\""),
            ],
        ),
        (
            "a step of a workflow may have a definition, and others take what it gives",
            vec![
                Create(
                    "step/note",
                    r#"{spec: {schematic: {cel: {output: {apiVersion: v1, kind: ConfigMap, metadata: {name: note}, data: {text: "${parameter.text}"}}}}}}"#.into(),
                ),
                Up(r#"{components: [{name: c, type: k8s-objects, properties: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {}}]}}], workflow: {steps: [{name: first, type: note, properties: {text: hello}, outputs: [{name: t, valueFrom: output.data.text}]}, {name: second, type: apply-component, properties: {component: c}, inputs: [{from: t, parameterKey: "objects[0].data.t"}]}]}}"#.into()),
                Has("map/note", "{data: {text: hello}}".into()),
                Has("map/c", "{data: {t: hello}}".into()),
                Ready,
            ],
        ),
        (
            "a policy of the application changes what is carried out, and no version",
            vec![
                Create(
                    "policy/labelled",
                    r#"{spec: {scope: Application, schematic: {cel: {output: {labels: {team: "${parameter.team}"}, components: "${context.appComponents.map(c, {'name': c.name, 'type': c.type, 'properties': {'objects': c.properties.objects.map(o, {'apiVersion': o.apiVersion, 'kind': o.kind, 'metadata': {'name': 'x-' + o.metadata.name}})}})}"}}}}}"#.into(),
                ),
                Up(r#"{components: [{name: c, type: k8s-objects, properties: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}}], policies: [{name: p, type: labelled, properties: {team: red}}]}"#.into()),
                Has("map/x-c", "{metadata: {labels: {team: red}}}".into()),
                Ready,
                Says("\"appliedApplicationPolicies\":[{\"applied\":true"),
                Has("app/app", "{status: {latestRevision: {name: app-v1}}}".into()),
            ],
        ),
    ]
}

/// Section 12, "service account with and without rights".
fn accounts() -> Vec<Row> {
    let maps = |name: &str| {
        format!(
            "{{components: [{{name: c, type: k8s-objects, properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}]}}}}]}}"
        )
    };
    vec![(
        "12 e2e: an application may do what its service account may",
        vec![
            Create("account/deployer", "{}".into()),
            Annotated("{app.oam.dev/service-account-name: deployer}", maps("a")),
            Says("configmaps \\\"a\\\" is forbidden: User \\\"system:serviceaccount:account-0:deployer\\\" cannot get resource"),
            Gone("map/a"),
            Create("role/maps", "{rules: [{apiGroups: [''], resources: [configmaps], verbs: ['*']}]}".into()),
            Create(
                "binding/maps",
                "{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: maps}, subjects: [{kind: ServiceAccount, name: deployer, namespace: NAMESPACE}]}".into(),
            ),
            Ready,
            Has("map/a", "{kind: ConfigMap}".into()),
        ],
    )]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schematics_of_our_own() {
    let f = Fixture::with(Options { compression: Compression::None, ..Options::default() }).await;
    play(&f, "own", rows()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_12_service_accounts() {
    play(&Fixture::with_roles(Options::default()).await, "account", accounts()).await;
}
