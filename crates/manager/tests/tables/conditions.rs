//! Section 4: conditions decide whether a target is written.

use crate::common::Fixture;
use crate::steps::Step::*;
use crate::steps::{GONE, check};

#[tokio::test]
async fn outcomes_are_as_in_4() {
    let f = Fixture::new().await;
    check(&f, &[
        ("4 omitted: ordinary", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {}, rawItems: [{MAP}]}]"),
            Says("{status: {processedItems: [{status: {status: 'True', message: null, lastApply: ~T}}]}}"),
        ]),
        ("4 true: applied, and the policy is recorded without the condition", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null || true'}, rawItems: [{MAP, data: {k: v}}]}]"),
            Says("{status: {processedItems: [{status: {status: 'True', created: true, lastApply: ~T, policy: {creation: Owner, condition: null}}}]}}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}, metadata: {labels: {projectcapsule.dev/created-by: replications}}}"),
        ]),
        ("4 false, ours: content stays, protection follows the policy", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null'}, rawItems: [{MAP, data: {k: v}}]}]"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null', protect: false, deletion: Orphan}, rawItems: [{MAP, data: {k: w}}]}]"),
            Says("{status: {processedItems: [{status: {status: 'True', message: 'ConditionNotMet: apply skipped', lastApply: ~T, policy: {protect: false, deletion: Orphan}}}]}}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}, metadata: {labels: {projectcapsule.dev/protected-by: null, projectcapsule.dev/managed-by: replications}}}"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null', protect: true}, rawItems: [{MAP, data: {k: w}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}, metadata: {labels: {projectcapsule.dev/protected-by: replications, protection.projectcapsule.dev/replications: 'true'}}}"),
        ]),
        ("4 false, ours, nothing to change: no write", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null'}, rawItems: [{MAP, data: {k: v}}]}]"),
            Note("ConfigMap solar-b/NAME"),
            Declare("{resyncPeriod: 1s, resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null'}, rawItems: [{MAP, data: {k: w}}]}]}"),
            Wait,
            Still("ConfigMap solar-b/NAME", "{data: {k: v}}"),
        ]),
        ("4 false, absent: nothing at all", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object != null'}, rawItems: [{MAP}]}]"),
            Says("{status: {processedItems: [{status: {status: 'True', message: 'ConditionNotMet: apply skipped', lastApply: null, policy: null}}]}}"),
            Is("ConfigMap solar-b/NAME", GONE),
        ]),
        ("4 false, not ours: no adoption, no mark", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {a: b}}"),
            Note("ConfigMap solar-b/NAME"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge, condition: 'object == null'}, rawItems: [{MAP, data: {k: v}}]}]"),
            Says("{status: {processedItems: [{status: {status: 'True', message: 'ConditionNotMet: apply skipped', lastApply: null, policy: null}}]}}"),
            Still("ConfigMap solar-b/NAME", "{metadata: {labels: null}}"),
        ]),
        ("4 syntax: denied with its path", &[
            Refused("resources: [{policy: {condition: 'object =='}, rawItems: []}]", "spec.resources[0].policy.condition"),
        ]),
        ("4 type: denied", &[
            Refused("resources: [{}, {policy: {condition: '1'}, rawItems: []}]", "spec.resources[1].policy.condition"),
        ]),
        ("4 blank: denied", &[
            Refused("resources: [{policy: {condition: '  '}, rawItems: []}]", "spec.resources[0].policy.condition"),
        ]),
        ("4 no self, no parameters", &[
            Refused("resources: [{policy: {condition: 'self.x == 1'}, rawItems: []}]", "undeclared reference to 'self'"),
        ]),
        ("4 an error at run time: no write, no word of what the object holds", &[
            Foreign("{apiVersion: v1, kind: Secret, metadata: {name: NAME, namespace: solar-b}, stringData: {k: hush}}"),
            Fails("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge, condition: 'int(object.data.k) > 1'}, rawItems: [{apiVersion: v1, kind: Secret, metadata: {name: NAME}}]}]", "applying of 1"),
            Says("{status: {processedItems: [{status: {status: 'False', message: 'ConditionEvaluationFailed: expression could not be evaluated', policy: null}}]}}"),
        ]),
        ("4 a target that cannot be read is not absent", &[
            Foreign("{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: solar-a}}"),
            Fails("{serviceAccount: {name: NAME}, resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null'}, rawItems: [{MAP}]}]}", "applying of 1"),
            Says("{status: {processedItems: [{status: {status: 'False', message: '~reading condition target'}}]}}"),
        ]),
        ("4 protection that cannot be changed on a skipped target", &[
            Foreign("{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: solar-a}}"),
            Foreign("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME-reader}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]}"),
            Foreign("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NAME-reader}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAME-reader}, subjects: [{kind: ServiceAccount, name: NAME, namespace: solar-a}]}"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null'}, rawItems: [{MAP}]}]"),
            Fails("{serviceAccount: {name: NAME}, resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null', protect: false}, rawItems: [{MAP}]}]}", "applying of 1"),
            Says("{status: {processedItems: [{status: {status: 'False', message: '~reconciling skipped target policy', policy: {protect: true}}}]}}"),
        ]),
    ])
    .await;
    let of_length = async |length: usize| {
        let condition = format!("{:length$}", "true");
        let spec = format!("resources: [{{policy: {{condition: '{condition}'}}, rawItems: []}}]");
        f.try_apply(&crate::common::tr("long", &spec)).await
    };
    of_length(4096).await.unwrap();
    let error = of_length(4097).await.unwrap_err().to_string();
    assert!(error.contains("spec.resources[0].policy.condition"), "{error}");
}

#[tokio::test]
async fn conditions_and_the_rest_go_together_as_in_4() {
    let f = Fixture::new().await;
    check(&f, &[
        ("4 pruning does not ask the condition", &[
            Declare("resources: [{policy: {condition: 'object == null'}, rawItems: [{MAP}]}]"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", GONE),
        ]),
        ("4 deletion changed while skipped counts", &[
            Declare("resources: [{policy: {condition: 'object == null'}, rawItems: [{MAP}]}]"),
            Declare("resources: [{policy: {condition: 'object == null', deletion: Orphan}, rawItems: [{MAP}]}]"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", "{metadata: {labels: null}}"),
        ]),
        ("4 without the condition everything is ordinary again", &[
            Declare("resources: [{policy: {condition: 'object == null'}, rawItems: [{MAP, data: {k: v}}]}]"),
            Declare("resources: [{policy: {}, rawItems: [{MAP, data: {k: w}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {k: w}}"),
        ]),
        ("4 protect off while skipped, but another still shares it", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null'}, rawItems: [{MAP, data: {k: v}}]}]"),
            Global("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {x: z}}]}]"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null', protect: false}, rawItems: [{MAP, data: {k: v}}]}]"),
            Says("{status: {processedItems: [{status: {policy: {protect: false}}}]}}"),
            Is("ConfigMap solar-b/NAME", "{metadata: {labels: {projectcapsule.dev/protected-by: replications}}}"),
        ]),
        ("4 an apply that leaves fields out takes them away", &[
            Declare("resources: [{policy: {condition: 'object == null || size(object.data) < 2'}, rawItems: [{MAP, data: {k: v}}]}]"),
            Declare("resources: [{policy: {condition: 'object == null || size(object.data) < 2'}, rawItems: [{MAP, data: {l: v}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {k: null, l: v}}"),
        ]),
        ("4 each target of a block by itself", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {a: b}}"),
            Declare("resources: [{policy: {condition: 'object == null'}, rawItems: [{MAP}]}]"),
            Says("{status: {processedItems: [{namespace: solar-a, status: {lastApply: ~T}}, {namespace: solar-b, status: {lastApply: null, message: 'ConditionNotMet: apply skipped'}}]}}"),
        ]),
        ("4 a refresh by time", &[
            Declare("{resyncPeriod: 1s, resources: [{policy: {condition: \"object == null || now >= timestamp(object.metadata.annotations['keys.example.org/rotated-at']) + duration('1h')\"}, generators: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, annotations: {keys.example.org/rotated-at: \"{{ now | date \"2006-01-02T15:04:05Z07:00\" }}\"}}, data: {key: \"{{ randAlphaNum 20 }}\"}}'}]}]}"),
            Note("ConfigMap solar-b/NAME"),
            Wait,
            Still("ConfigMap solar-b/NAME", "{}"),
            Edit("ConfigMap solar-b/NAME", "metadata: {annotations: {keys.example.org/rotated-at: '2020-01-01T00:00:00+00:00'}}"),
            Is("ConfigMap solar-b/NAME", "{metadata: {annotations: {keys.example.org/rotated-at: ~Z}}}"),
        ]),
        ("4 a permit all of whose targets are skipped still becomes active", &[
            Template("{approvals: {auto: true}, resources: [{policy: {condition: 'object != null'}, targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active, processedItems: [{status: {status: 'True', message: 'ConditionNotMet: apply skipped'}}]}}"),
            Is("ConfigMap solar-a/NAME", GONE),
        ]),
        ("4 a false condition hides no error of rendering", &[
            Fails("resources: [{policy: {condition: 'false'}, generators: [{template: '{{ fail \"no\" }}'}]}]", "error running generator"),
        ]),
    ])
    .await;
}
