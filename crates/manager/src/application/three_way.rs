//! Client-side three-way apply: what was applied last, what is declared now, and what lives make the patch.

use client::Patch;
use kinds::{Definition, PatchSchema};
use object::{Map, Value, json, map};
use patch::strategic::{Error as StrategicError, Member, Schema, Shape};

use super::{names, order};

const KUBECTL_LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What brings a live object to what is declared.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It is made.
    Create(Value),
    /// It is patched.
    Patch(Patch),
    /// It is replaced, at the version that was read.
    Replace(Value),
    /// It is deleted, and made again.
    Recreate(Value),
    /// Nothing.
    None,
}

/// How an existing object is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strategy {
    /// It is replaced rather than patched.
    pub replace: bool,
    /// Fields (paths with dots) that cannot be changed: when they differ, the object is deleted and made again.
    pub recreate_fields: Vec<String>,
}

/// What brings `live` to `desired`.
///
/// Fields that others set and that never were applied stay; what was applied and is no longer declared goes, keys of
/// ConfigMaps and Secrets too. An object that is as declared causes no request. `declared` is recorded as what was applied:
/// mostly `desired` itself, but not where that has values of the live object in it.
///
/// # Errors
///
/// If the object does not fit its kind, or a field of `recreate_fields` is on neither side.
pub fn change(live: Option<&Value>, desired: &Value, declared: &Value, strategy: &Strategy) -> Result<Change, String> {
    let mut modified = desired.clone();
    let recorded = recorded(declared);
    if let Some(recorded) = &recorded {
        modified.set_at(&["metadata", "annotations", names::LAST_APPLIED], json::to_string(recorded).into());
    }
    let Some(live) = live else { return Ok(Change::Create(modified)) };
    for field in &strategy.recreate_fields {
        let path: Vec<&str> = field.split('.').collect();
        match (live.at(&path), desired.at(&path)) {
            (Some(old), Some(new)) if old == new => {}
            (Some(_), Some(_)) => return Ok(Change::Recreate(modified)),
            _ => return Err(format!("cannot compare field {field}: no such field")),
        }
    }
    let is_service = live.str_at(&["kind"]) == Some("Service") && live.str_at(&["apiVersion"]) == Some("v1");
    if strategy.replace && !is_service {
        modified.set_at(&["metadata", "resourceVersion"], live.meta_str("resourceVersion").into());
        return Ok(Change::Replace(modified));
    }
    let original = original(live);
    let empty = Map::new();
    let original = original.as_ref().and_then(Value::as_object).unwrap_or(&empty);
    let (Some(modified), Some(current)) = (modified.as_object(), live.as_object()) else {
        return Err("the object is no object".to_owned());
    };
    let (patch, is_strategic) = match definition(desired) {
        Some(definition) => {
            let schema = Type::of(definition);
            let patch = patch::strategic::three_way(original, modified, current, &schema, true);
            let patch = patch.map_err(|error| error.message)?;
            // A list to which others added comes with its order alone, which changes nothing.
            let is_idle = !patch.is_empty()
                && patch::strategic::apply(current.clone(), patch.clone(), &schema).is_ok_and(|same| same == *current);
            (if is_idle { Map::new() } else { patch }, true)
        }
        None => (patch::merge::three_way(original, modified, current), false),
    };
    if patch.is_empty() {
        return Ok(Change::None);
    }
    for fixed in [&["apiVersion"][..], &["kind"], &["metadata", "name"]] {
        let value = Value::Object(patch.clone());
        if !is_strategic && value.at(fixed).is_some() {
            return Err(format!("precondition failed: {} may not be changed", fixed.join(".")));
        }
    }
    let patch = Value::Object(patch);
    Ok(Change::Patch(if is_strategic { Patch::Strategic(patch) } else { Patch::Merge(patch) }))
}

/// What is recorded of what is applied; `None` if the object asks for nothing to be recorded. Of ConfigMaps and Secrets
/// only the keys are recorded: they tell what to take away, and nothing secret.
fn recorded(desired: &Value) -> Option<Value> {
    if matches!(desired.annotation(names::LAST_APPLIED), Some("-" | "skip")) {
        return None;
    }
    let mut recorded = desired.clone();
    recorded.remove_at(&["metadata", "annotations", names::LAST_APPLIED]);
    if desired.str_at(&["apiVersion"]) == Some("v1")
        && matches!(desired.str_at(&["kind"]), Some("ConfigMap" | "Secret"))
    {
        for field in ["data", "binaryData", "stringData"] {
            if let Some(data) = recorded.get_mut(field).and_then(Value::as_object_mut) {
                data.values_mut().for_each(|value| *value = "".into());
            }
        }
    }
    Some(recorded)
}

/// What was applied last, as the live object says; what `kubectl apply` recorded counts where nothing else does.
fn original(live: &Value) -> Option<Value> {
    let text = live.annotation(names::LAST_APPLIED).or_else(|| live.annotation(KUBECTL_LAST_APPLIED))?;
    let mut original = json::parse(text.as_bytes()).ok()?;
    // stringData becomes data.
    if let Some(Value::Object(keys)) = original.remove_at(&["stringData"]) {
        let data = original.object_entry("data");
        for key in keys.keys() {
            data.insert(key, "");
        }
    }
    Some(original)
}

fn definition(object: &Value) -> Option<&'static Definition> {
    let api_version = object.str_at(&["apiVersion"])?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    kinds::find_kind(group, version, object.str_at(&["kind"])?)?.1.definition()
}

/// A place in a built-in type, for the strategic merge.
struct Type(Option<PatchSchema>);

impl Type {
    fn of(definition: &'static Definition) -> Self {
        Type(Some(PatchSchema::of(definition)))
    }
}

impl Schema for Type {
    fn member(&self, name: &str, shape: Shape) -> Result<Member<Self>, StrategicError> {
        let field = self.0.and_then(|place| place.field(name));
        let Some(field) = field else {
            // What the type does not know is merged as it stands; the server says what it thinks of it.
            return Ok(Member { schema: Type(None), strategy: String::new(), merge_key: String::new() });
        };
        let schema = if shape == Shape::List { field.item() } else { field };
        Ok(Member {
            schema: Type(Some(schema)),
            strategy: field.strategy().to_owned(),
            merge_key: field.merge_key().to_owned(),
        })
    }

    fn go_kind(&self) -> &str {
        "struct"
    }
}

/// An object with a patch laid over it as kubectl does: lists of built-in kinds are merged by their keys.
///
/// # Errors
///
/// If the patch does not fit the object's kind.
pub(super) fn patched(object: Value, patch: Value) -> Result<Value, String> {
    let Some(definition) = definition(&object) else { return Ok(patch::merge::apply(object, patch)) };
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else {
        return Err("neither object nor patch may be anything but an object".to_owned());
    };
    let before = Value::Object(object.clone());
    let merged = patch::strategic::apply(object, patch, &Type::of(definition)).map_err(|error| error.message)?;
    let mut merged = Value::Object(merged);
    order::keep(&before, &mut merged);
    Ok(merged)
}

/// Who may write a live object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// An object that belongs to nobody may be adopted.
    pub take_over: bool,
    /// Several applications may share the object.
    pub shared: bool,
    /// The object is only looked at.
    pub read_only: bool,
}

/// What an application may do with an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// Write it; with this annotation of those who share it, if any.
    Write(Option<String>),
    /// Only put the annotation of those who share it right.
    Join(String),
    /// Nothing: it is only looked at.
    Look,
}

/// Whether the application `owner` (`NAMESPACE/NAME`) may write `live`, which `described` names as errors do.
///
/// # Errors
///
/// If the object is somebody else's; in the words of the original.
pub fn access(live: Option<&Value>, owner: &str, rights: Rights, described: &str) -> Result<Access, String> {
    let Some(live) = live else {
        return match rights {
            Rights { read_only: true, .. } => Err(format!("{described} is marked as read-only but does not exist")),
            Rights { shared: true, .. } => Ok(Access::Write(Some(owner.to_owned()))),
            _ => Ok(Access::Write(None)),
        };
    };
    if rights.read_only {
        return Ok(Access::Look);
    }
    let holder = owner_of(live);
    let shared_by = live.annotation(names::SHARED_BY).filter(|sharers| !sharers.is_empty());
    let joined = || {
        let mut sharers: Vec<&str> = shared_by.into_iter().flat_map(|sharers| sharers.split(',')).collect();
        if !sharers.contains(&owner) {
            sharers.push(owner);
        }
        sharers.join(",")
    };
    match holder {
        Some(holder) if holder == owner => Ok(Access::Write(rights.shared.then(joined))),
        Some(_) if rights.shared && shared_by.is_some() => Ok(Access::Join(joined())),
        Some(holder) if rights.shared => Err(format!("application is controlled by {holder} but is not sharable")),
        Some(holder) => Err(format!("existing object {described} is managed by other application {holder}")),
        // What has no version is made up by the server that answers.
        None if rights.take_over || live.meta_str("resourceVersion").is_empty() => {
            Ok(Access::Write(rights.shared.then(joined)))
        }
        None => Err(format!("{described} exists but not managed by any application now")),
    }
}

/// The application that owns an object, as `NAMESPACE/NAME`.
pub fn owner_of(object: &Value) -> Option<String> {
    let (namespace, name) = (object.label(names::APP_NAMESPACE)?, object.label(names::APP_NAME)?);
    (!namespace.is_empty() && !name.is_empty()).then(|| format!("{namespace}/{name}"))
}

/// The patch that lets go of an object that others share: the annotation without `owner`, and the first of those who
/// remain as the new owner. `None` if nobody remains.
pub fn leave(live: &Value, owner: &str) -> Option<Value> {
    let sharers = live.annotation(names::SHARED_BY)?;
    let remaining: Vec<&str> = sharers.split(',').filter(|sharer| *sharer != owner && !sharer.is_empty()).collect();
    let (namespace, name) = remaining.first()?.split_once('/')?;
    let mut metadata = map! {
        "resourceVersion" => live.meta_str("resourceVersion"),
        "annotations" => map! { names::SHARED_BY => remaining.join(",") },
    };
    if owner_of(live).is_none_or(|holder| holder == owner) {
        metadata.insert("labels", map! { names::APP_NAMESPACE => namespace, names::APP_NAME => name });
    }
    Some(map! { "metadata" => metadata }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    fn live(desired: &str, extra: &str) -> Value {
        let Ok(Change::Create(made)) = change(None, &parse(desired), &parse(desired), &Strategy::default()) else {
            return Value::Null;
        };
        patch::merge::apply(made, parse(extra))
    }

    fn patch_of(live: &Value, desired: &str) -> String {
        match change(Some(live), &parse(desired), &parse(desired), &Strategy::default()) {
            Ok(Change::Patch(Patch::Strategic(mut patch) | Patch::Merge(mut patch))) => {
                patch.remove_at(&["metadata", "annotations", names::LAST_APPLIED]);
                for path in [&["metadata", "annotations"][..], &["metadata"]] {
                    if patch.at(path).and_then(Value::as_object).is_some_and(Map::is_empty) {
                        patch.remove_at(path);
                    }
                }
                json::to_string(&patch)
            }
            Ok(Change::None) => "none".to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_others_set_stays_and_what_is_no_longer_declared_goes() {
        const MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","l":"1"}}"#;
        const FOO: &str = r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"l":[1,2],"a":1}}"#;
        for (before, others, after, expected) in [
            (MAP, "{}", MAP, "none"),
            (MAP, r#"{"data":{"theirs":"1"},"metadata":{"labels":{"x":"y"}}}"#, MAP, "none"),
            (MAP, r#"{"data":{"k":"2"}}"#, MAP, r#"{"data":{"k":"1"}}"#),
            (
                MAP,
                "{}",
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}}"#,
                r#"{"data":{"l":null}}"#,
            ),
            (FOO, r#"{"spec":{"theirs":1}}"#, FOO, "none"),
            (
                FOO,
                r#"{"spec":{"theirs":1}}"#,
                r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"l":[1]}}"#,
                r#"{"spec":{"a":null,"l":[1]}}"#,
            ),
        ] {
            assert_eq!(patch_of(&live(before, others), after), expected, "{before} {others} {after}");
        }
    }

    #[test]
    fn lists_of_built_in_kinds_are_merged_by_their_keys() {
        let deployment = |containers: &str| {
            format!(
                r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"a"}},"spec":{{"template":{{"spec":{{"containers":{containers}}}}}}}}}"#
            )
        };
        let before = deployment(r#"[{"name":"a","image":"a:1"},{"name":"b","image":"b:1"}]"#);
        let mut live = live(&before, "{}");
        let injected = deployment(
            r#"[{"name":"a","image":"a:1","imagePullPolicy":"Always"},{"name":"b","image":"b:1"},{"name":"side","image":"s"}]"#,
        );
        live.set_at(&["spec"], parse(&injected).get("spec").cloned().unwrap_or_default());
        assert_eq!(patch_of(&live, &before), "none");
        let patch = patch_of(&live, &deployment(r#"[{"name":"a","image":"a:2"}]"#));
        assert!(patch.contains(r#"{"image":"a:2","name":"a"}"#), "{patch}");
        assert!(patch.contains(r#"{"$patch":"delete","name":"b"}"#), "{patch}");
        assert!(!patch.contains(r#""name":"side","$patch""#), "{patch}");
    }

    #[test]
    fn secrets_are_not_in_the_record() {
        let secret = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"k":"c2VjcmV0"}}"#;
        let live = live(secret, "{}");
        assert!(!live.annotation(names::LAST_APPLIED).unwrap_or_default().contains("c2VjcmV0"));
        let skipping = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","annotations":{"app.oam.dev/last-applied-configuration":"skip"}}}"#;
        let Ok(Change::Create(made)) = change(None, &parse(skipping), &parse(skipping), &Strategy::default()) else {
            panic!()
        };
        assert_eq!(made.annotation(names::LAST_APPLIED), Some("skip"));
    }

    #[test]
    fn what_cannot_be_changed_is_made_again_or_replaced() {
        let before = r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"size":1}}"#;
        let after = before.replace("\"size\":1", "\"size\":2");
        let live = live(before, r#"{"metadata":{"resourceVersion":"7"}}"#);
        let recreate = Strategy { recreate_fields: vec!["spec.size".into()], ..Strategy::default() };
        assert_eq!(change(Some(&live), &parse(before), &parse(before), &recreate), Ok(Change::None));
        assert!(matches!(change(Some(&live), &parse(&after), &parse(&after), &recreate), Ok(Change::Recreate(_))));
        let missing = Strategy { recreate_fields: vec!["spec.nothing".into()], ..Strategy::default() };
        assert!(change(Some(&live), &parse(before), &parse(before), &missing).is_err());
        let replace = Strategy { replace: true, ..Strategy::default() };
        let Ok(Change::Replace(replaced)) = change(Some(&live), &parse(&after), &parse(&after), &replace) else {
            panic!()
        };
        assert_eq!(replaced.meta_str("resourceVersion"), "7");
    }

    #[test]
    fn an_object_is_written_by_its_owner_only() {
        let owned = |holder: &str, shared_by: &str| {
            let (namespace, name) = holder.split_once('/').unwrap_or(("", ""));
            parse(&format!(
                r#"{{"metadata":{{"resourceVersion":"1","labels":{{"app.oam.dev/namespace":"{namespace}","app.oam.dev/name":"{name}"}},"annotations":{{"app.oam.dev/shared-by":"{shared_by}"}}}}}}"#
            ))
        };
        let none = Rights::default();
        let shared = Rights { shared: true, ..none };
        let take_over = Rights { take_over: true, ..none };
        let look = Rights { read_only: true, ..none };
        let write = |sharers: Option<&str>| Ok(Access::Write(sharers.map(str::to_owned)));
        for (live, rights, expected) in [
            (None, none, write(None)),
            (None, shared, write(Some("n/me"))),
            (None, look, Err("ConfigMap n/a is marked as read-only but does not exist".to_owned())),
            (Some(owned("n/me", "")), none, write(None)),
            (Some(owned("n/me", "n/x")), shared, write(Some("n/x,n/me"))),
            (Some(owned("", "")), none, Err("ConfigMap n/a exists but not managed by any application now".to_owned())),
            (Some(owned("", "")), take_over, write(None)),
            (Some(owned("", "")), look, Ok(Access::Look)),
            (
                Some(owned("n/x", "")),
                none,
                Err("existing object ConfigMap n/a is managed by other application n/x".to_owned()),
            ),
            (Some(owned("n/x", "")), shared, Err("application is controlled by n/x but is not sharable".to_owned())),
            (Some(owned("n/x", "n/x")), shared, Ok(Access::Join("n/x,n/me".to_owned()))),
        ] {
            assert_eq!(access(live.as_ref(), "n/me", rights, "ConfigMap n/a"), expected, "{live:?} {rights:?}");
        }
        let left = leave(&owned("n/me", "n/me,m/x"), "n/me").unwrap_or_default();
        assert_eq!(left.str_at(&["metadata", "labels", names::APP_NAME]), Some("x"));
        assert_eq!(leave(&owned("n/me", "n/me"), "n/me"), None);
    }
}
