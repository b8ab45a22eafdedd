use super::*;

/// Config maps and namespaces, as their keys are stored.
fn ty(kind: &str) -> Arc<Type> {
    let (prefix, namespaced) = match kind {
        "ConfigMap" => ("/registry/configmaps/", true),
        _ => ("/registry/nodes/", false),
    };
    Arc::new(Type { api_version: "v1".to_owned(), kind: kind.to_owned(), prefix: prefix.to_owned(), namespaced })
}

fn uid(text: &str) -> Uid {
    Uid::new(text)
}

fn reference(kind: &str, name: &str, blocks: bool) -> Reference {
    let (kind, api_version, name) = (kind.to_owned(), "v1".to_owned(), name.to_owned());
    Reference { kind, api_version, uid: uid(&format!("u-{name}")), name, blocks }
}

/// An object whose uid is `u-NAME`; owners are config maps, `!` after the name says that they wait for it.
fn seen(place: &str, owners: &[&str]) -> Seen {
    let name = place.rsplit('/').next().unwrap();
    let owners = owners.iter().map(|o| reference("ConfigMap", o.trim_end_matches('!'), o.ends_with('!')));
    let kind = if place.contains('/') { "ConfigMap" } else { "Node" };
    let ty = ty(kind);
    let key = format!("{}{place}", ty.prefix).into();
    Seen { uid: uid(&format!("u-{name}")), ty, key, owners: owners.collect(), deletion: Deletion::default() }
}

fn foreground(mut seen: Seen) -> Seen {
    seen.deletion = Deletion { began: true, orphans: false, foreground: true };
    seen
}

fn uids(names: &[&str]) -> Vec<Uid> {
    names.iter().map(|n| uid(&format!("u-{n}"))).collect()
}

fn absent(place: &str) -> Coordinates {
    let (namespace, name) = place.split_once('/').unwrap();
    reference("ConfigMap", name, false).coordinates(namespace)
}

#[test]
fn dependents_are_looked_at_when_their_owner_is_gone() {
    let mut graph = Graph::default();
    assert_eq!(graph.seen(seen("n/a", &[])), Effects::default());
    assert_eq!(graph.seen(seen("n/b", &["a"])), Effects::default());
    assert_eq!(graph.gone(&uid("u-a")).look, uids(&["b"]));
    assert!(graph.is_absent(&reference("ConfigMap", "a", false), "n"));
    assert!(!graph.is_absent(&reference("ConfigMap", "a", false), "other"));
    assert_eq!(graph.gone(&uid("u-b")), Effects::default());
    assert!(graph.nodes.is_empty());
}

#[test]
fn an_owner_that_was_only_heard_of_is_looked_for() {
    let mut graph = Graph::default();
    assert_eq!(graph.seen(seen("n/b", &["a"])).look_soon, uids(&["a"]));
    assert!(graph.item(&uid("u-a")).unwrap().virtual_);
    assert_eq!(graph.absent(absent("n/a")).look, uids(&["b"]));
    assert!(graph.item(&uid("u-a")).is_none());
}

#[test]
fn an_owner_that_comes_after_its_dependent_is_no_surprise() {
    let mut graph = Graph::default();
    graph.seen(seen("n/b", &["a"]));
    assert_eq!(graph.seen(seen("n/a", &[])), Effects::default());
    assert!(!graph.item(&uid("u-a")).unwrap().virtual_);
}

#[test]
fn owners_in_other_namespaces_are_reported_whoever_comes_first() {
    let mut graph = Graph::default();
    graph.seen(seen("far/a", &[]));
    let effects = graph.seen(seen("n/b", &["a"]));
    assert_eq!((effects.look, effects.reports.len()), (uids(&["b"]), 1));
    let (dependent, owner) = &effects.reports[0];
    assert_eq!(dependent.to_string(), "[v1/ConfigMap, namespace: n, name: b, uid: u-b]");
    assert_eq!(owner.to_string(), "[v1/ConfigMap, namespace: n, name: a, uid: u-a]");
    let mut graph = Graph::default();
    graph.seen(seen("n/b", &["a"]));
    let effects = graph.seen(seen("far/a", &[]));
    assert_eq!((effects.look, effects.reports.len()), (uids(&["b"]), 1));
}

#[test]
fn owners_of_another_kind_make_their_dependents_be_looked_at() {
    let mut graph = Graph::default();
    graph.seen(seen("a", &[]));
    assert_eq!(graph.seen(seen("n/b", &["a"])).look, uids(&["b"]));
    // Only those who meant the place where nothing is are wrong.
    assert_eq!(graph.absent(absent("n/a")).look, uids(&["b"]));
    assert!(graph.item(&uid("u-a")).is_some());
}

#[test]
fn dependents_that_disagree_make_all_places_be_looked_at() {
    let mut graph = Graph::default();
    graph.seen(seen("m/b", &["a"]));
    assert_eq!(graph.seen(seen("n/c", &["a"])).look, uids(&["c"]));
    let effects = graph.absent(absent("m/a"));
    assert_eq!((effects.look, effects.look_later), (uids(&["b"]), uids(&["a"])));
    assert_eq!(graph.item(&uid("u-a")).unwrap().coordinates, absent("n/a"));
}

#[test]
fn an_owner_in_foreground_deletion_waits_for_those_that_block_it() {
    let mut graph = Graph::default();
    graph.seen(seen("n/a", &[]));
    graph.seen(seen("n/b", &["a!"]));
    graph.seen(seen("n/c", &["a"]));
    let effects = graph.seen(foreground(seen("n/a", &[])));
    assert_eq!(effects.look, uids(&["b", "c", "a"]));
    assert_eq!(graph.waits(&uid("u-a")), Waiting::For(uids(&["b"])));
    // Nobody is looked at twice without a reason.
    assert_eq!(graph.waits(&uid("u-a")), Waiting::For(Vec::new()));
    assert_eq!(graph.gone(&uid("u-b")).look, uids(&["a"]));
    // One that does not block is only to be looked at before its owner is gone.
    assert_eq!(graph.waits(&uid("u-a")), Waiting::For(Vec::new()));
    assert_eq!(graph.looked(&uid("u-c")).look, uids(&["a"]));
    assert_eq!(graph.waits(&uid("u-a")), Waiting::Done);
}

#[test]
fn a_late_dependent_waits_until_its_owner_is_looked_at() {
    let mut graph = Graph::default();
    graph.seen(seen("n/a", &[]));
    graph.seen(seen("n/b", &["a!"]));
    graph.seen(foreground(seen("n/a", &[])));
    graph.waits(&uid("u-a"));
    assert_eq!(graph.seen(seen("n/late", &["a!"])), Effects::default());
    assert_eq!(graph.gone(&uid("u-b")).look, uids(&["a"]));
    assert_eq!(graph.waits(&uid("u-a")), Waiting::For(uids(&["late"])));
}

#[test]
fn owners_that_are_blocked_no_more_are_looked_at() {
    let mut graph = Graph::default();
    graph.seen(seen("n/a", &[]));
    graph.seen(seen("n/b", &["a!"]));
    assert_eq!(graph.seen(seen("n/b", &["a"])).look, uids(&["a"]));
    assert_eq!(graph.seen(seen("n/b", &["a!"])), Effects::default());
    assert_eq!(graph.seen(seen("n/b", &[])).look, uids(&["a"]));
    assert_eq!(graph.gone(&uid("u-a")), Effects::default());
}

#[test]
fn an_object_may_own_itself() {
    let mut graph = Graph::default();
    assert_eq!(graph.seen(seen("n/a", &["a!"])), Effects::default());
    graph.seen(foreground(seen("n/a", &["a!"])));
    assert_eq!(graph.dependents_state(&uid("u-a")), (true, true));
    graph.waits(&uid("u-a"));
    assert_eq!(graph.waits(&uid("u-a")), Waiting::For(Vec::new()));
    graph.gone(&uid("u-a"));
    assert!(graph.item(&uid("u-a")).is_none());
}

#[test]
fn orphaning_begins_once() {
    let mut graph = Graph::default();
    let orphaning = || {
        let mut object = seen("n/a", &[]);
        object.deletion = Deletion { began: true, orphans: true, foreground: false };
        object
    };
    assert_eq!(graph.seen(orphaning()).orphan, uids(&["a"]));
    assert_eq!(graph.seen(orphaning()), Effects::default());
}
