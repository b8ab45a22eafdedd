//! From blocks to objects: pure functions of what was loaded.

use crate::block::{Block, Generator, Reference};
use object::{Map, Value};
use std::collections::BTreeSet;
use std::time::SystemTime;
use template::{Data, Settings, fast};

/// What a block is rendered for.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    /// The tenant's name; empty where there is none.
    pub tenant: &'a str,
    /// The namespace's name; empty where there is none.
    pub namespace: &'a str,
}

impl fast::Lookup for Names<'_> {
    fn lookup(&self, name: &str) -> Option<String> {
        match name {
            "tenant.name" => Some(self.tenant.to_owned()),
            "namespace" => Some(self.namespace.to_owned()),
            _ => None,
        }
    }
}

/// A rendered object, and the place in its parent from which it was rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The object.
    pub object: Value,
    /// For people: `0/raw-1`.
    pub origin: String,
}

/// What generators are given beside their data.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The time.
    pub now: SystemTime,
    /// The seed of random functions.
    pub seed: [u8; 32],
}

/// The raw items of a block.
pub fn raw_items(number: usize, block: &Block, names: &Names<'_>) -> Vec<Rendered> {
    let items = block.raw_items.iter().enumerate();
    items.map(|(i, item)| Rendered { object: fast::tree(item, names), origin: format!("{number}/raw-{i}") }).collect()
}

/// The objects of a generator.
///
/// # Errors
///
/// The template fails, or does not give YAML.
pub fn generator(
    place: (usize, usize),
    generator: &Generator,
    data: &Data<'_>,
    moment: &Moment,
) -> Result<Vec<Rendered>, String> {
    let settings = Settings {
        missing_key: generator.missing_key,
        hide_no_value: generator.missing_key != template::MissingKey::Invalid,
        now: moment.now,
        seed: moment.seed,
        ..Settings::default()
    };
    let (number, index) = place;
    let failed = |e: template::Error| format!("error running generator: {e}");
    let text = generator.template.render(data, &settings).map_err(failed)?;
    let objects = template::documents(&text).map_err(failed)?.into_iter().enumerate();
    Ok(objects.map(|(i, object)| Rendered { object, origin: format!("{number}/generator-{index}-{i}") }).collect())
}

/// A copy of an existing object for another namespace: without what belongs to the original, and without the labels by
/// which it was found, so that copies are not found in their turn.
pub fn copy(source: &Value, reference: &Reference) -> Value {
    let mut object = source.clone();
    object.remove_at(&["status"]);
    let mut metadata = Map::new();
    metadata.insert("name", source.name());
    for key in ["labels", "annotations"] {
        if let Some(value) = source.at(&["metadata", key]) {
            metadata.insert(key, value.clone());
        }
    }
    object.set_at(&["metadata"], metadata.into());
    for key in selector_keys(reference.selector.as_ref()) {
        object.remove_at(&["metadata", "labels", &key]);
    }
    object.remove_at(&["metadata", "annotations", LAST_APPLIED]);
    object
}

fn selector_keys(selector: Option<&Value>) -> BTreeSet<String> {
    let Some(selector) = selector else { return BTreeSet::new() };
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default();
    let keys = labels.iter().flat_map(|l| l.keys()).map(str::to_owned);
    keys.chain(expressions.iter().filter_map(|e| e.str_at(&["key"]).map(str::to_owned))).collect()
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object as templates see it: without who owns its fields and what was applied last.
pub fn sanitise(object: &mut Value) {
    object.remove_at(&["metadata", "managedFields"]);
    object.remove_at(&["metadata", "annotations", LAST_APPLIED]);
}

/// Gives an object the labels and annotations that every target of its block gets; they win.
pub fn add_metadata(object: &mut Value, block: &Block, names: &Names<'_>) {
    for (field, wanted) in [("labels", &block.labels), ("annotations", &block.annotations)] {
        for (key, value) in wanted.iter() {
            let value = fast::render(value.as_str().unwrap_or_default(), names);
            object.set_at(&["metadata", field, &fast::render(key, names)], value.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{json, yaml};

    const NAMES: Names<'static> = Names { tenant: "solar", namespace: "solar-test" };

    fn block(text: &str) -> Block {
        Block::read(&yaml::parse(text.as_bytes()).unwrap(), &Value::Null).unwrap()
    }

    fn moment() -> Moment {
        Moment { now: SystemTime::UNIX_EPOCH, seed: [0; 32] }
    }

    #[test]
    fn raw_items_know_the_tenant_and_the_namespace() {
        let b = block(
            "rawItems: [{kind: ConfigMap, metadata: {name: '{{tenant.name}}-{{ namespace }}'}, data: {'{{namespace}}': 1}}, {kind: B}]\nadditionalMetadata: {labels: {'{{tenant.name}}/x': '{{namespace}}'}}",
        );
        let mut items = raw_items(2, &b, &NAMES);
        add_metadata(&mut items[0].object, &b, &NAMES);
        assert_eq!(
            json::to_string(&items[0].object),
            r#"{"data":{"solar-test":1},"kind":"ConfigMap","metadata":{"labels":{"solar/x":"solar-test"},"name":"solar-solar-test"}}"#
        );
        assert_eq!(items[1].origin, "2/raw-1");
        // Nothing of one target reaches another.
        assert_eq!(items[1].object.at(&["metadata"]), None);
    }

    #[test]
    fn generators_give_documents_or_an_error_with_its_place() {
        let b = block(
            "generators: [{template: \"kind: A\\nmetadata: {name: '{{ .tenant.metadata.name }}'}\\n---\\nkind: B\\nx: '{{ .none }}'\\n\"}, {template: '{{ .tenant.nope.x }}', missingKey: error}, {template: 'a: [', missingKey: invalid}]",
        );
        let tenant = yaml::parse(b"metadata: {name: solar}").unwrap();
        let data = Data::Members(vec![("tenant", &tenant)]);
        let objects = generator((0, 1), &b.generators[0], &data, &moment()).unwrap();
        assert_eq!(json::to_string(&objects[0].object), r#"{"kind":"A","metadata":{"name":"solar"}}"#);
        assert_eq!((objects[1].origin.as_str(), objects[1].object.str_at(&["x"])), ("0/generator-1-1", Some("")));
        let error = generator((0, 0), &b.generators[1], &data, &moment()).unwrap_err();
        assert!(error.starts_with("error running generator: template: generators[1]:1:"), "{error}");
        assert!(generator((0, 0), &b.generators[2], &data, &moment()).is_err());
    }

    #[test]
    fn a_copy_is_an_object_of_its_own() {
        let source = yaml::parse(
            b"{apiVersion: v1, kind: Secret, data: {a: b}, status: {x: 1}, metadata: {name: s, namespace: src, uid: u, resourceVersion: '1', ownerReferences: [{}], labels: {copy: 'yes', keep: me}, annotations: {kubectl.kubernetes.io/last-applied-configuration: x, keep: me}}}",
        )
        .unwrap();
        let reference =
            Reference::read(&yaml::parse(b"{kind: Secret, selector: {matchLabels: {copy: 'yes'}}}").unwrap()).unwrap();
        assert_eq!(
            json::to_string(&copy(&source, &reference)),
            r#"{"apiVersion":"v1","data":{"a":"b"},"kind":"Secret","metadata":{"annotations":{"keep":"me"},"labels":{"keep":"me"},"name":"s"}}"#
        );
    }
}
