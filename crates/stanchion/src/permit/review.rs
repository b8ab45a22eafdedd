//! What a permit's snapshot would change in the cluster.

use super::diff;
use crate::cluster::Failure;
use crate::terminal::{Colour, Style};
use client::{Client, Patch, PatchParams};
use manager::permit::Phase;
use manager::permit::record::phase;
use object::{Value, json};

/// What only the server writes; nobody reviews it.
const SERVERS: [&str; 6] = ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"];

/// The rendered objects of a permit, and how the cluster's differ from them.
pub async fn snapshot(client: &Client, permit: &Value, show_secrets: bool, style: Style) -> Result<String, Failure> {
    let blocks = list(permit, &["status", "request", "resources"]);
    let mut out = String::new();
    let mut counts = [0usize; 3];
    for (i, block) in blocks.iter().enumerate() {
        out += &format!("\n{}\n", style.paint(Colour::Bold, &format!("Block {i}: {}", policy(block))));
        if let Some(condition) = block.str_at(&["policy", "condition"]) {
            out += &format!("  only if {condition}\n");
        }
        for target in list(block, &["targets"]) {
            let (kind, told) = compare(client, permit, target, block, show_secrets, style).await?;
            if let Some(count) = counts.get_mut(kind as usize) {
                *count += 1;
            }
            out += &told;
        }
    }
    if blocks.is_empty() {
        return Ok("\nThere is no snapshot yet.\n".to_owned());
    }
    let [create, change, same] = counts;
    out += &format!("\n{create} to create, {change} to change, {same} as they are\n");
    Ok(out)
}

/// What becomes of a target.
#[derive(Clone, Copy)]
enum Effect {
    Create,
    Change,
    Same,
}

async fn compare(
    client: &Client,
    permit: &Value,
    target: &Value,
    block: &Value,
    show_secrets: bool,
    style: Style,
) -> Result<(Effect, String), Failure> {
    let (api_version, kind) = (text(target, "apiVersion"), text(target, "kind"));
    let title = |what: &str, colour| {
        let place = if target.namespace().is_empty() { String::new() } else { format!("{}/", target.namespace()) };
        format!("{} {kind} {place}{}\n", style.paint(colour, what), target.name())
    };
    let Some(resource) = client.resource_of(api_version, kind).await? else {
        let why = format!("  the server has no kind {kind} in {api_version}\n");
        return Ok((
            Effect::Create,
            title("create", Colour::Green) + &why + &diff::lines("", &shown(target, None, show_secrets), style),
        ));
    };
    let api = client.api(&resource);
    let namespace = if resource.namespaced { target.namespace() } else { "" };
    let live = match api.find(namespace, target.name()).await {
        Ok(live) => live,
        Err(error) if error.is_forbidden() => {
            let why = format!("  what is there cannot be read: {error}\n");
            return Ok((
                Effect::Change,
                title("apply", Colour::Yellow) + &why + &diff::lines("", &shown(target, None, show_secrets), style),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let Some(live) = live else {
        return Ok((
            Effect::Create,
            title("create", Colour::Green) + &diff::lines("", &shown(target, None, show_secrets), style),
        ));
    };
    let force = block.at(&["policy", "force"]).and_then(Value::as_bool).unwrap_or(false);
    let manager = format!("projectcapsule.dev/resource/resourcepermit/{}", permit.meta_str("uid"));
    let apply = Patch::Apply { object: target.clone(), manager, force };
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    let mut note = String::new();
    let then = match api.patch(namespace, target.name(), &apply, &params).await {
        Ok(then) => then,
        // Reviewers need not have the rights of the account that applies.
        Err(error) => {
            if !error.is_forbidden() {
                note = format!("  {}\n", style.paint(Colour::Red, &error.to_string()));
            }
            let mut then = live.clone();
            overlay(&mut then, target);
            then
        }
    };
    if block.str_at(&["policy", "creation"]) != Some("Merge") && phase(permit) != Phase::Active {
        note += "  it is there already, and the policy is to create it\n";
    }
    let told = diff::lines(&shown(&live, Some(&then), show_secrets), &shown(&then, Some(&live), show_secrets), style);
    Ok(if told.is_empty() {
        (Effect::Same, title("as it is", Colour::Cyan) + &note)
    } else {
        (Effect::Change, title("change", Colour::Yellow) + &note + &told)
    })
}

/// Puts what an object says over another.
fn overlay(onto: &mut Value, from: &Value) {
    match (onto, from) {
        (Value::Object(onto), Value::Object(from)) => {
            for (key, value) in from.iter() {
                match onto.get_mut(key) {
                    Some(member) => overlay(member, value),
                    None => drop(onto.insert(key, value.clone())),
                }
            }
        }
        (onto, from) => *onto = from.clone(),
    }
}

/// An object as YAML without what the server writes. What a secret holds is only told apart from what `other` holds.
fn shown(object: &Value, other: Option<&Value>, show_secrets: bool) -> String {
    let mut object = object.clone();
    for key in SERVERS {
        object.remove_at(&["metadata", key]);
    }
    object.remove_at(&["status"]);
    if !show_secrets && object.str_at(&["kind"]) == Some("Secret") {
        for part in ["data", "stringData"] {
            let known = other.and_then(|o| o.get(part));
            let held = object.get_mut(part).and_then(Value::as_object_mut);
            for (key, value) in held.into_iter().flat_map(|held| held.iter_mut()) {
                let differs = known.is_some_and(|k| k.get(key) != Some(&*value));
                *value = if differs { format!("*** ({})", digest(value)) } else { "***".to_owned() }.into();
            }
        }
    }
    template::yaml::to_string(&object)
}

/// Says only whether two values are the same.
fn digest(value: &Value) -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::sync::LazyLock;
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = KEY.build_hasher();
    hasher.write(json::to_string(value).as_bytes());
    format!("{:08x}", hasher.finish() >> 32)
}

fn policy(block: &Value) -> String {
    let or = |key: &str, default: &str| block.str_at(&["policy", key]).unwrap_or(default).to_owned();
    let is = |key: &str, default: bool| block.at(&["policy", key]).and_then(Value::as_bool).unwrap_or(default);
    let creation = if or("creation", "Owner") == "Merge" { "may be there already" } else { "must not be there yet" };
    let deletion = if or("deletion", "Remove") == "Orphan" { "left behind" } else { "removed at the end" };
    let protect = if is("protect", true) { ", protected" } else { "" };
    let force = if is("force", false) { ", taking fields from others" } else { "" };
    format!("{creation}, {deletion}{protect}{force}")
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.str_at(&[key]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    fn read(text: &str) -> Value {
        yaml::parse(text.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn secrets_are_told_apart_but_not_shown() {
        let (a, b) =
            (read("{kind: Secret, data: {x: YQ==, y: Yg==}}"), read("{kind: Secret, data: {x: YQ==, y: Yw==}}"));
        let (old, new) = (shown(&a, Some(&b), false), shown(&b, Some(&a), false));
        assert!(old.contains("  x: '***'\n") || old.contains("  x: \"***\"\n") || old.contains("  x: ***\n"), "{old}");
        assert_ne!(old, new);
        assert!(!old.contains("YQ==") && !new.contains("Yw=="));
        assert!(shown(&a, None, true).contains("YQ=="));
    }

    #[test]
    fn what_a_target_says_is_put_over_what_is_there() {
        let mut live = read("{a: {b: 1, c: 2}, d: [1]}");
        overlay(&mut live, &read("{a: {b: 3}, d: [2], e: 4}"));
        assert_eq!(live, read("{a: {b: 3, c: 2}, d: [2], e: 4}"));
    }
}
