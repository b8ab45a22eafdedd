//! What pods and the templates of pods have in common: defaults, checks, resources.

mod affinity;
mod annotations;
mod containers;
mod defaults;
mod disabled;
mod downward;
mod mounts;
mod qos;
pub(crate) mod resources;
mod security;
mod spec;
mod volumes;
mod warnings;
mod windows;

pub(crate) use affinity::{node_selector, tolerations};
pub(crate) use annotations::{APP_ARMOR, SECCOMP_POD, app_armor_profile, profiles, updates as annotation_updates};
pub(crate) use containers::images_of;
pub(crate) use defaults::{default_claim_spec, default_legacy_sources, default_pod, default_template};
pub(crate) use disabled::{drop_disabled, drop_disabled_status};
pub(crate) use qos::qos_class;
pub(crate) use spec::{validate_pod, validate_template, validate_template_metadata};
pub(crate) use volumes::{TOO_LONG, csi_driver_name, one_source, shown as shown_source};
pub(crate) use warnings::{
    changed_template_warnings, fraction, name_warning, old_label, old_sources, pod_status_warnings, pod_warnings,
    pod_warnings_before, selector_terms, template_warnings, template_warnings_at, warnings_of, workload_warnings,
};
