//! Section 3: from what is declared to objects.

use crate::common::Fixture;
use crate::steps::Step::*;
use crate::steps::{GONE, check};

#[tokio::test]
async fn templates_are_as_in_3_1_and_3_2() {
    let f = Fixture::new().await;
    check(&f, &[
        ("3.1 raw items: names in braces, with and without spaces; what is unknown is empty", &[
            Declare("resources: [{rawItems: [{MAP, data: {a: '{{tenant.name}}', b: '{{ namespace }}', c: '[{{nothing}}]'}}], additionalMetadata: {labels: {'{{namespace}}': '{{tenant.name}}'}}}]"),
            Is("ConfigMap solar-b/NAME", "{data: {a: solar, b: solar-b, c: '[]'}, metadata: {labels: {solar-b: solar}}}"),
        ]),
        ("3.1 additional labels win over rendered ones", &[
            Declare("resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, labels: {a: rendered}}}], additionalMetadata: {labels: {a: added}, annotations: {b: added}}}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {labels: {a: added}, annotations: {b: added}}}"),
        ]),
        ("3.1 references are filled in", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-solar, namespace: solar-a, labels: {of: solar}}, data: {k: v}}"),
            Declare("resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: 'NAME-{{tenant.name}}', namespace: solar-a}]}]"),
            Is("ConfigMap solar-b/NAME-solar", "{data: {k: v}}"),
        ]),
        ("3.1 generators have functions, and no environment", &[
            Declare("resources: [{generators: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {a: {{ upper .tenant.metadata.name }}, id: {{ deterministicUUID \"a\" \"b\" }}}}'}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {a: SOLAR, id: '~-'}}"),
            Fails("resources: [{generators: [{template: '{{ env \"HOME\" }}'}]}]", "function \"env\" not defined"),
            Fails("resources: [{generators: [{template: '{{ expandenv \"HOME\" }}'}]}]", "function \"expandenv\" not defined"),
        ]),
        ("3.1 documents without apiVersion and kind are left out", &[
            Declare("resources: [{generators: [{template: \"a: b\\n---\\n---\\n{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}}\\n\"}]}]"),
            Says("{status: {size: 2}}"),
        ]),
        ("3.1 what cannot be decoded is shown with the numbers of its lines", &[
            Fails("resources: [{generators: [{template: \"a: b\\nc: [\\n\"}]}]", "2"),
        ]),
        ("3.1 an error of a generator says so", &[
            Fails("resources: [{generators: [{template: '{{ .tenant.metadata.name.x.y }}'}]}]", "error running generator"),
        ]),
        ("3.2 tenant, namespace, context and the parent", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-source, namespace: solar-a}, data: {k: v}}"),
            Declare("resources: [{context: {resources: [{apiVersion: v1, kind: ConfigMap, name: NAME-source, namespace: solar-a, index: maps}, {apiVersion: v1, kind: ConfigMap, name: NAME-none, index: none}]}, generators: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {tenant: \"{{ .tenant.metadata.name }}\", uid: \"{{ len .tenant.metadata.uid }}\", fields: \"{{ hasKey .tenant.metadata \"managedFields\" }}\", namespace: \"{{ .namespace.metadata.name }}\", k: \"{{ (index .maps 0).data.k }}\", none: \"{{ hasKey . \"none\" }}\", parent: \"{{ .replications.metadata.name }}\"}}'}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {tenant: solar, uid: '36', fields: 'false', namespace: solar-b, k: v, none: 'false', parent: NAME}}"),
        ]),
        ("3.2 missingKey: invalid", &[
            Declare("resources: [{generators: [{missingKey: invalid, template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {x: \"{{ .tenant.nope }}\"}}'}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {x: <no value>}}"),
        ]),
        ("3.2 missingKey: zero", &[
            Declare("resources: [{generators: [{missingKey: zero, template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {x: \"[{{ .tenant.nope }}]\"}}'}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {x: '[]'}}"),
        ]),
        ("3.2 missingKey: error", &[
            Fails("resources: [{generators: [{missingKey: error, template: '{{ .tenant.nope }}'}]}]", "map has no entry for key \"nope\""),
        ]),
        ("3.2 missingKey: something else", &[
            Refused("resources: [{generators: [{missingKey: never, template: ''}]}]", "Unsupported value: \"never\""),
        ]),
        ("3.2 no namespace with scope Tenant", &[
            Global("{scope: Tenant, resources: [{generators: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: \"NAME-{{ .tenant.metadata.name }}\", namespace: default}, data: {x: \"{{ hasKey . \"namespace\" }}\"}}'}]}]}"),
            Is("ConfigMap default/NAME-solar", "{data: {x: 'false'}}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn permits_are_rendered_as_in_3_3() {
    let f = Fixture::new().await;
    check(&f, &[
        ("3.3 targets: parameters at the root, facts of the request", &[
            Template("{resources: [{targets: [{MAP, data: {x: '{{ .x }}', by: '{{ .request.username }}', of: '{{ .request.name }}', groups: '{{ first .request.groups }}', at: '{{ .request.timestamp }}'}}]}]}"),
            Ask(", params: {x: z}"),
            Permit("{status: {phase: Requested, request: {resources: [{targets: [{data: {x: z, by: bob, of: NAME, groups: 'system:authenticated', at: ~Z}}]}]}}}"),
        ]),
        ("3.3 template: parameters and context have their own roots", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-source, namespace: solar-a}, data: {k: v}}"),
            Template("{context: {resources: [{apiVersion: v1, kind: ConfigMap, name: 'NAME-{{ .x }}', index: maps}]}, resources: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {x: \"{{ .params.x }}\", k: \"{{ (index .context.resources.maps 0).data.k }}\"}}'}]}"),
            Ask(", params: {x: source}"),
            Permit("{status: {phase: Requested, request: {resources: [{targets: [{data: {x: source, k: v}}]}]}}}"),
        ]),
        ("3.3 what is missing is an error", &[
            Template("{resources: [{targets: [{MAP, data: {x: '{{ .nope }}'}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Created, conditions: [{type: Ready, status: 'False', reason: TemplateRenderingFailed, message: ~nope}]}}"),
        ]),
        ("3.3 request is no name of a parameter", &[
            Template("{resources: [{targets: [{MAP}]}]}"),
            AskRefused(", params: {request: x}", "request"),
        ]),
        ("3.3 a parameter cannot add a field (9.14)", &[
            Template("{resources: [{targets: [{MAP, data: {x: '{{ .x }}'}}]}]}"),
            Ask(", params: {x: \"\\\"}, \\\"metadata\\\": {\\\"labels\\\": {\\\"a\\\": \\\"b\\\"}}\\n---\\nkind: Secret\"}"),
            Permit("{status: {phase: Requested, request: {resources: [{targets: [{kind: ConfigMap, data: {x: '~kind: Secret'}, metadata: {labels: {a: null}}}]}]}}}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn objects_are_copied_and_gone_through_as_in_3_4_and_3_5() {
    let f = Fixture::new().await;
    check(&f, &[
        ("3.4 a copy loses what made it a source, and what is its source's own", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-a, labels: {copy: NAME, keep: x}, annotations: {keep: w}, ownerReferences: [{apiVersion: v1, kind: Namespace, name: solar-a, uid: x}]}, data: {k: v}}"),
            Declare("resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, namespace: solar-a, selector: {matchLabels: {copy: NAME}}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}, metadata: {labels: {copy: null, keep: x}, annotations: {keep: w}, ownerReferences: null}}"),
            Is("ConfigMap solar-a/NAME", "{metadata: {labels: {copy: NAME, projectcapsule.dev/managed-by: null}}}"),
            Says("{status: {size: 1, processedItems: [{origin: replica}]}}"),
        ]),
        ("3.4 two items that find the same object copy it once", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-a, labels: {copy: NAME}}}"),
            Declare("resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, namespace: solar-a, name: NAME}, {apiVersion: v1, kind: ConfigMap, namespace: solar-a, selector: {matchLabels: {copy: NAME}}}]}]"),
            Says("{status: {size: 1}}"),
        ]),
        ("3.4 a copy follows its source", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-a}, data: {k: v}}"),
            Declare("{resyncPeriod: 1s, resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, namespace: solar-a, name: NAME}]}]}"),
            Edit("ConfigMap solar-a/NAME", "data: {k: w}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: w}}"),
        ]),
        ("3.5 a TenantResource: its tenant's namespaces that match", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{MAP}]}]"),
            Says("{status: {size: 1, processedItems: [{namespace: solar-b, tenant: solar}]}}"),
        ]),
        ("3.5 a GlobalTenantResource: the selected tenants' namespaces that match", &[
            Global("{tenantSelector: {matchLabels: {energy: renewable}}, resources: [{namespaceSelector: {matchExpressions: [{key: name, operator: In, values: [solar-a, wind-a]}]}, rawItems: [{MAP}]}]}"),
            GlobalSays("{status: {selectedTenants: [solar, wind], processedItems: [{namespace: solar-a, tenant: solar}, {namespace: wind-a, tenant: wind}]}}"),
        ]),
        ("3.5 scope Tenant: once for each, and nothing is copied", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-source, namespace: default}}"),
            Global("{scope: Tenant, tenantSelector: {matchLabels: {energy: renewable}}, resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: NAME-source, namespace: default}], rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: 'NAME-{{tenant.name}}', namespace: default}, data: {ns: '[{{namespace}}]'}}]}]}"),
            GlobalSays("{status: {size: 2, processedItems: [{name: NAME-solar, tenant: solar}, {name: NAME-wind, tenant: wind}]}}"),
            Is("ConfigMap default/NAME-wind", "{data: {ns: '[]'}}"),
        ]),
        ("3.5 scope None: once, for nobody", &[
            Global("{scope: None, resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: default}, data: {t: '[{{tenant.name}}]'}}]}]}"),
            GlobalSays("{status: {size: 1, processedItems: [{tenant: None}]}}"),
            Is("ConfigMap default/NAME", "{data: {t: '[]'}}"),
        ]),
        ("3.5 a tenant that is being deleted is neither selected nor served", &[
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: NAME, labels: {row: NAME}, finalizers: [example.com/wait]}, spec: {owners: []}}"),
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-own, labels: {capsule.clastix.io/tenant: NAME}}}"),
            Global("{tenantSelector: {matchLabels: {row: NAME}}, resources: [{rawItems: [{MAP}]}]}"),
            GlobalSays("{status: {selectedTenants: [NAME], size: 1}}"),
            Delete("capsule.clastix.io/v1beta2/Tenant NAME"),
            GlobalSays("{status: {selectedTenants: [], size: 0}}"),
            Is("ConfigMap NAME-own/NAME", GONE),
            Edit("capsule.clastix.io/v1beta2/Tenant NAME", "metadata: {finalizers: []}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn accounts_are_chosen_as_in_3_6() {
    let f = Fixture::new().await;
    check(&f, &[
        ("3.6 a TenantResource: its own account, in its namespace", &[
            Fails("{serviceAccount: {name: NAME}, resources: [{rawItems: [{MAP}]}]}", "applying of 2"),
            Says("{status: {serviceAccount: {name: NAME, namespace: solar-a}, processedItems: [{status: {message: '~system:serviceaccount:solar-a:row-'}}, {}]}}"),
        ]),
        ("3.6 a TenantResource: else the controller", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Says("{status: {serviceAccount: null}}"),
        ]),
        ("3.6 a GlobalTenantResource: its own account where it is whole", &[
            GlobalFails("{serviceAccount: {name: NAME, namespace: wind-a}, resources: [{rawItems: [{MAP}]}]}", "applying of"),
            GlobalSays("{status: {serviceAccount: {name: NAME, namespace: wind-a}}}"),
        ]),
        ("3.6 a permit of a template for all: its own account where it is whole", &[
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalResourcePermitTemplate, metadata: {name: NAME}, spec: {impersonation: {name: NAME, namespace: wind-a}, resources: [{targets: [{MAP}]}]}}"),
            Ask(", template: {kind: GlobalResourcePermitTemplate, name: NAME}"),
            Permit("{status: {phase: Failed, failure: {reason: ImpersonationFailed, message: ~wind-a/NAME not found}, request: {impersonation: {name: NAME, namespace: wind-a}}}}"),
        ]),
        ("3.6 a permit of a template for all: else the controller", &[
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalResourcePermitTemplate, metadata: {name: NAME}, spec: {impersonation: {name: NAME}, resources: [{targets: [{MAP}]}]}}"),
            Ask(", template: {kind: GlobalResourcePermitTemplate, name: NAME}"),
            Permit("{status: {phase: Requested, request: {impersonation: null}}}"),
        ]),
    ])
    .await;
    f.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner, namespace: wind-a}}").await;
    f.apply(&crate::common::tr(
        "before",
        "{resyncPeriod: 1h, resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: before}}]}]}",
    ))
    .await;
    f.ready(crate::common::TR, "solar-a", "before", "True", "").await;
    f.apply("{apiVersion: capsule.clastix.io/v1beta2, kind: CapsuleConfiguration, metadata: {name: default}, spec: {impersonation: {tenantDefaultServiceAccount: powerless, globalDefaultServiceAccount: runner, globalDefaultServiceAccountNamespace: wind-a}}}").await;
    f.apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: runner}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: runner, namespace: wind-a}]}").await;
    // 2.9: what was declared before is looked at again.
    f.until(crate::common::TR, "solar-a", "before", |o| {
        o.is_some_and(|o| o.str_at(&["status", "serviceAccount", "name"]) == Some("powerless"))
    })
    .await;
    // The names of rows are those of the table above: no row is of the same kinds as the one there.
    check(&f, &[
        ("3.6 a permit of a template for all: the global default", &[
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalResourcePermitTemplate, metadata: {name: NAME}, spec: {approvals: {auto: true}, resources: [{targets: [{MAP}]}]}}"),
            Ask(", template: {kind: GlobalResourcePermitTemplate, name: NAME}"),
            Permit("{status: {phase: Active, request: {impersonation: {name: runner, namespace: wind-a}}}}"),
        ]),
        ("3.6 a permit of a namespace's template: the default in its namespace", &[
            Template("{resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Failed, failure: {stage: Preflight, reason: ImpersonationFailed}, request: {impersonation: {name: powerless, namespace: solar-a}}}}"),
        ]),
        ("3.6 a TenantResource: the default in its namespace", &[
            Fails("resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}}]}]", "applying of"),
            Says("{status: {serviceAccount: {name: powerless, namespace: solar-a}}}"),
        ]),
        ("3.6 a GlobalTenantResource: the global default", &[
            Global("resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-g}}]}]"),
            GlobalSays("{status: {serviceAccount: {name: runner, namespace: wind-a}}}"),
        ]),
        ("3.6 an account that was chosen is used for reading too", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-source, namespace: solar-a}}"),
            Fails("resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: NAME-source, namespace: solar-a}]}]", "forbidden"),
        ]),
    ])
    .await;
}
