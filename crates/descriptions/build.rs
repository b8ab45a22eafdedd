//! Takes the texts out of the generated types of `k8s-openapi` and packs them: one text of lines, compressed.
//!
//! A line `NAME` and a tab begins a definition, with its text; a line of a tab, a field's name, a tab and its text follows
//! for each of its fields.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut generator = SchemaGenerator::default();
    add_all(&mut generator);
    let mut text = String::new();
    for (name, schema) in generator.take_definitions(true) {
        let description = |v: &k8s_openapi::serde_json::Value| -> String {
            let words = v.get("description").and_then(|d| d.as_str()).unwrap_or_default();
            // A text is one line of the packed form.
            words.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', " ")
        };
        writeln!(text, "{name}\t{}", description(&schema)).expect("memory can be written to");
        for (field, schema) in schema.get("properties").and_then(|p| p.as_object()).into_iter().flatten() {
            writeln!(text, "\t{field}\t{}", description(schema)).expect("memory can be written to");
        }
    }
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(text.as_bytes()).expect("memory can be written to");
    let packed = packed.finish().expect("memory can be written to");
    let place = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to write")).join("texts.zlib");
    fs::write(place, packed).expect("the folder for output can be written to");
}

/// Adds a type and all that it is made of.
fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

macro_rules! add {
    ($generator:ident, $($module:path: $($kind:ident)+;)+) => {
        $({
            use $module as module;
            $(add::<module::$kind>($generator);)+
        })+
    };
}

/// The kinds that are in nobody else.
fn add_all(generator: &mut SchemaGenerator) {
    add!(
        generator,
        k8s_openapi::api::admissionregistration::v1: MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration;
        k8s_openapi::api::apps::v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        k8s_openapi::api::authentication::v1: SelfSubjectReview TokenRequest TokenReview;
        k8s_openapi::api::authorization::v1: LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview;
        k8s_openapi::api::autoscaling::v1: HorizontalPodAutoscaler Scale;
        k8s_openapi::api::autoscaling::v2: HorizontalPodAutoscaler;
        k8s_openapi::api::batch::v1: CronJob Job;
        k8s_openapi::api::certificates::v1: CertificateSigningRequest;
        k8s_openapi::api::coordination::v1: Lease;
        k8s_openapi::api::core::v1: Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount;
        k8s_openapi::api::discovery::v1: EndpointSlice;
        k8s_openapi::api::events::v1: Event;
        k8s_openapi::api::flowcontrol::v1: FlowSchema PriorityLevelConfiguration;
        k8s_openapi::api::networking::v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
        k8s_openapi::api::node::v1: RuntimeClass;
        k8s_openapi::api::policy::v1: Eviction PodDisruptionBudget;
        k8s_openapi::api::rbac::v1: ClusterRole ClusterRoleBinding Role RoleBinding;
        k8s_openapi::api::scheduling::v1: PriorityClass;
        k8s_openapi::api::storage::v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment;
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1: CustomResourceDefinition;
        k8s_openapi::apimachinery::pkg::apis::meta::v1: APIGroup APIVersions DeleteOptions Status APIGroupList APIResourceList;
        k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1: APIService;
    );
}
