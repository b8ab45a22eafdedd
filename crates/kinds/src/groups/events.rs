//! The resources of the group `events.k8s.io`.

use crate::resource::{Resource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["ev"],
    ..Resource::new("events.k8s.io", "Event", "events", &[Version::stored("v1", "io.k8s.api.events.v1.Event")])
}];
