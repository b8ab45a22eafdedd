//! What becomes of targets, against the real server.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, Recorded, config_map, map, parent, permit, run};
use keeper::{Creation, Deletion, Extent, Policy, tracking};
use object::json;
use std::sync::Arc;

const OWNER: Policy = Policy { creation: Creation::Owner, protect: false, force: false, deletion: Deletion::Remove };
const MERGE: Policy = Policy { creation: Creation::Merge, ..OWNER };
const ORPHAN: Policy = Policy { deletion: Deletion::Orphan, ..OWNER };

#[tokio::test]
async fn what_is_declared_is_made_changed_and_deleted() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    f.run(&p, &recorded, vec![map("a", r#"{"k":"1","l":"1"}"#, Policy::default())]).await;
    assert_eq!(f.data("a").await, r#"{"k":"1","l":"1"}"#);
    let live = f.live("a").await.unwrap();
    for (label, value) in [
        (tracking::CREATED_BY, "replications"),
        (tracking::MANAGED_BY, "replications"),
        (tracking::PROTECTED_BY, "replications"),
        ("protection.projectcapsule.dev/replications", "true"),
    ] {
        assert_eq!(live.label(label), Some(value), "{label}");
    }
    assert_eq!(recorded.state("a"), (true, Some(true), String::new()));
    f.run(&p, &recorded, vec![map("a", r#"{"k":"2"}"#, OWNER)]).await;
    assert_eq!(f.data("a").await, r#"{"k":"2"}"#);
    assert_eq!(f.live("a").await.unwrap().label(tracking::PROTECTED_BY), None);
    let again = f.run(&p, &recorded, vec![map("a", r#"{"k":"2"}"#, OWNER)]).await;
    assert_eq!((again.writes, again.is_changed), (0, false));
    let gone = f.run(&p, &recorded, vec![]).await;
    assert_eq!((f.data("a").await.as_str(), gone.items.len(), f.keeper.objects()), ("", 0, 0));
}

#[tokio::test]
async fn a_foreign_object_is_adopted_only_by_merge_and_survives() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    f.foreign("a", r#"{"theirs":"1"}"#).await;
    let refused = f.run(&p, &recorded, vec![map("a", r#"{"ours":"1"}"#, OWNER)]).await;
    let message = "object (v1/ConfigMap default/a) exists and cannot be adopted";
    assert_eq!((refused.apply_failures, refused.writes), (1, 0));
    assert_eq!(recorded.state("a"), (false, Some(false), message.to_owned()));
    // Letting go of what never was ours touches nothing.
    let version = f.live("a").await.unwrap().meta_str("resourceVersion").to_owned();
    f.run(&p, &recorded, vec![]).await;
    assert_eq!(f.live("a").await.unwrap().meta_str("resourceVersion"), version);

    f.run(&p, &recorded, vec![map("a", r#"{"ours":"1"}"#, MERGE)]).await;
    assert_eq!(f.data("a").await, r#"{"ours":"1","theirs":"1"}"#);
    assert_eq!(recorded.state("a"), (false, Some(true), String::new()));
    // A later switch to Owner does not make an adopted object a created one.
    f.run(&p, &recorded, vec![map("a", r#"{"ours":"2"}"#, OWNER)]).await;
    assert_eq!(recorded.state("a"), (false, Some(true), String::new()));
    f.run(&p, &recorded, vec![]).await;
    assert_eq!(f.data("a").await, r#"{"theirs":"1"}"#);
    assert_eq!(f.live("a").await.unwrap().at(&["metadata", "labels"]), None);
}

#[tokio::test]
async fn an_orphan_keeps_its_fields_and_loses_its_marks() {
    let f = Fixture::new().await;
    for (name, foreign) in [("made", false), ("adopted", true)] {
        let (p, recorded) = (parent("p"), Recorded::default());
        if foreign {
            f.foreign(name, r#"{"theirs":"1"}"#).await;
        }
        let policy = Policy { creation: Creation::Merge, protect: true, ..ORPHAN };
        f.run(&p, &recorded, vec![map(name, r#"{"ours":"1"}"#, policy)]).await;
        f.run(&p, &recorded, vec![]).await;
        assert!(f.data(name).await.contains(r#""ours":"1""#), "{name}");
        let labels = f.live(name).await.unwrap().at(&["metadata", "labels"]).map(json::to_string);
        assert_eq!(labels.unwrap_or("{}".into()), "{}", "{name}");
        assert_eq!(recorded.items(), []);
    }
}

#[tokio::test]
async fn deletion_follows_the_policy_that_was_carried_out_last() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    f.run(&p, &recorded, vec![map("a", r#"{"k":"1"}"#, OWNER)]).await;
    f.run(&p, &recorded, vec![map("a", r#"{"k":"1"}"#, ORPHAN)]).await;
    f.run(&p, &recorded, vec![]).await;
    assert_eq!(f.data("a").await, r#"{"k":"1"}"#);
}

#[tokio::test]
async fn a_replacement_made_by_others_is_left_alone() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    f.run(&p, &recorded, vec![map("a", r#"{"k":"1"}"#, OWNER)]).await;
    f.delete("a").await;
    f.foreign("a", r#"{"theirs":"1"}"#).await;
    f.run(&p, &recorded, vec![]).await;
    assert_eq!(f.data("a").await, r#"{"theirs":"1"}"#);
}

#[tokio::test]
async fn what_others_delete_or_edit_is_put_back_and_what_others_apply_is_a_conflict() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    let desired = || vec![map("a", r#"{"k":"1"}"#, OWNER)];
    f.run(&p, &recorded, desired()).await;
    f.delete("a").await;
    f.run(&p, &recorded, desired()).await;
    assert_eq!(f.data("a").await, r#"{"k":"1"}"#);
    f.edit("a", r#"{"data":{"k":"2","theirs":"1"},"metadata":{"labels":{"projectcapsule.dev/managed-by":"me"}}}"#)
        .await;
    f.run(&p, &recorded, desired()).await;
    assert_eq!(f.data("a").await, r#"{"k":"1","theirs":"1"}"#);
    assert_eq!(f.live("a").await.unwrap().label(tracking::MANAGED_BY), Some("replications"));

    let apply = client::Patch::Apply { object: config_map("a", r#"{"k":"3"}"#), manager: "gitops".into(), force: true };
    let maps = f.client.api(&client::resources::CONFIG_MAPS);
    maps.patch("default", "a", &apply, &client::PatchParams::default()).await.unwrap();
    let outcome = f.run(&p, &recorded, desired()).await;
    assert_eq!((outcome.apply_failures, f.data("a").await.as_str()), (1, r#"{"k":"3","theirs":"1"}"#));
    let (created, ready, message) = recorded.state("a");
    assert!(created && ready == Some(false) && message.contains(r#"conflict with "gitops""#), "{message}");
    let forced = Policy { force: true, ..OWNER };
    f.run(&p, &recorded, vec![map("a", r#"{"k":"1"}"#, forced)]).await;
    assert_eq!(f.data("a").await, r#"{"k":"1","theirs":"1"}"#);
}

#[tokio::test]
async fn parents_share_an_object_and_the_last_one_out_takes_it_away() {
    let f = Fixture::new().await;
    let (first, second) = ((parent("first"), Recorded::default()), (parent("second"), Recorded::default()));
    f.run(&first.0, &first.1, vec![map("a", r#"{"x":"1"}"#, OWNER)]).await;
    // Ownership is the parent's, not the family's.
    f.run(&second.0, &second.1, vec![map("a", r#"{"y":"1"}"#, OWNER)]).await;
    assert_eq!(second.1.state("a").1, Some(false));
    f.run(&second.0, &second.1, vec![map("a", r#"{"y":"1"}"#, MERGE)]).await;
    assert_eq!((f.data("a").await.as_str(), second.1.state("a").0), (r#"{"x":"1","y":"1"}"#, false));
    // The creator leaves first: the object stays, and is deleted by the one who is left.
    let uid = f.live("a").await.unwrap().meta_str("uid").to_owned();
    f.run(&first.0, &first.1, vec![]).await;
    let live = f.live("a").await.unwrap();
    assert_eq!((f.data("a").await.as_str(), live.meta_str("uid")), (r#"{"y":"1"}"#, uid.as_str()));
    assert_eq!(live.label(tracking::MANAGED_BY), Some("replications"));
    f.run(&second.0, &second.1, vec![map("a", r#"{"y":"1"}"#, MERGE)]).await;
    f.run(&second.0, &second.1, vec![]).await;
    assert_eq!(f.data("a").await, "");
}

#[tokio::test]
async fn the_last_of_those_who_adopted_takes_only_the_marks_away() {
    let f = Fixture::new().await;
    f.foreign("a", r#"{"theirs":"1"}"#).await;
    let (first, second) = ((parent("first"), Recorded::default()), (permit("second"), Recorded::default()));
    let policy = Policy { protect: true, ..MERGE };
    f.run(&first.0, &first.1, vec![map("a", r#"{"x":"1"}"#, policy)]).await;
    f.run(&second.0, &second.1, vec![map("a", r#"{"y":"1"}"#, policy)]).await;
    f.run(&first.0, &first.1, vec![]).await;
    let live = f.live("a").await.unwrap();
    assert_eq!(f.data("a").await, r#"{"theirs":"1","y":"1"}"#);
    assert_eq!(live.label(tracking::PROTECTED_BY), Some("resource-permit"));
    assert_eq!(live.label("protection.projectcapsule.dev/replications"), None);
    assert_eq!(live.label("protection.projectcapsule.dev/resource-permit"), Some("true"));
    assert_eq!(live.annotation(tracking::SERVICE_ACCOUNT), Some("system:serviceaccount:default:runner"));
    f.run(&second.0, &second.1, vec![]).await;
    let live = f.live("a").await.unwrap();
    assert_eq!(f.data("a").await, r#"{"theirs":"1"}"#);
    assert_eq!((live.at(&["metadata", "labels"]), live.at(&["metadata", "annotations"])), (None, None));
}

#[tokio::test]
async fn an_object_that_moves_to_another_parent_is_handed_over() {
    let f = Fixture::new().await;
    let (first, second) = ((parent("first"), Recorded::default()), (parent("second"), Recorded::default()));
    f.run(&first.0, &first.1, vec![map("a", r#"{"k":"1"}"#, OWNER)]).await;
    let uid = f.live("a").await.unwrap().meta_str("uid").to_owned();
    f.run(&second.0, &second.1, vec![map("a", r#"{"k":"2"}"#, OWNER)]).await;
    // The first lets go, but waits for the second, who is told.
    let waiting = f.run(&first.0, &first.1, vec![]).await;
    assert!(waiting.retry_after.is_some() && waiting.items.len() == 1 && waiting.release_failures == 0);
    let drift = f.keeper.drifted().await;
    assert_eq!((&*drift.parent, drift.objects.len()), ("second", 1));
    f.run(&second.0, &second.1, vec![map("a", r#"{"k":"2"}"#, OWNER)]).await;
    assert_eq!(second.1.state("a"), (true, Some(true), String::new()));
    f.run(&first.0, &first.1, vec![]).await;
    assert_eq!((first.1.items().len(), f.data("a").await.as_str()), (0, r#"{"k":"2"}"#));
    assert_eq!(f.live("a").await.unwrap().meta_str("uid"), uid);
    f.run(&second.0, &second.1, vec![]).await;
    assert_eq!(f.data("a").await, "");
}

#[tokio::test]
async fn what_moves_within_its_parent_or_to_another_tenant_is_never_deleted() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    f.run(&p, &recorded, vec![map("a", r#"{"k":"1"}"#, OWNER), map("b", r#"{"k":"1"}"#, OWNER)]).await;
    let uid = f.live("a").await.unwrap().meta_str("uid").to_owned();
    let mut moved = map("a", r#"{"k":"2"}"#, OWNER);
    moved.origin = "3/raw-7".into();
    f.run(&p, &recorded, vec![moved]).await;
    let mut tenant = map("a", r#"{"k":"3"}"#, OWNER);
    tenant.tenant = "u".into();
    f.run(&p, &recorded, vec![tenant]).await;
    assert_eq!(f.live("a").await.unwrap().meta_str("uid"), uid);
    assert_eq!((f.data("a").await.as_str(), f.data("b").await.as_str()), (r#"{"k":"3"}"#, ""));
    assert_eq!(recorded.items().len(), 1);
    assert_eq!(recorded.state("a"), (true, Some(true), String::new()));
    let entries = f.live("a").await.unwrap();
    let managers = entries.at(&["metadata", "managedFields"]).unwrap().as_array().unwrap().len();
    assert_eq!(managers, 1, "{}", json::to_string(&entries));
}

#[tokio::test]
async fn two_items_of_one_parent_each_own_their_part() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    let raw = map("a", r#"{"raw":"1"}"#, MERGE);
    let mut generated = map("a", r#"{"generated":"1"}"#, MERGE);
    generated.origin = "0/generator-0-0".into();
    f.run(&p, &recorded, vec![raw.clone(), generated.clone()]).await;
    assert_eq!(f.data("a").await, r#"{"generated":"1","raw":"1"}"#);
    f.run(&p, &recorded, vec![generated]).await;
    assert_eq!(f.data("a").await, r#"{"generated":"1"}"#);
    f.run(&p, &recorded, vec![]).await;
    assert_eq!(f.data("a").await, "");
}

#[tokio::test]
async fn a_cluster_scoped_object_of_many_namespaces_is_one_target() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    let role = |namespace: &str| {
        let mut desired = map("a", "{}", OWNER);
        let text = format!(
            r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{{"name":"a","namespace":"{namespace}"}},"rules":[]}}"#
        );
        desired.object = json::parse(text.as_bytes()).unwrap();
        desired
    };
    f.run(&p, &recorded, vec![role("x"), role("y")]).await;
    assert_eq!(recorded.items().len(), 1);
    assert!(recorded.items()[0].state.cluster_scoped);
    f.run(&p, &recorded, vec![role("y")]).await;
    assert_eq!(recorded.state("a"), (true, Some(true), String::new()));
    let roles =
        f.client.api(&client::Resource::known("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false));
    assert!(roles.find("", "a").await.unwrap().is_some());
}

#[tokio::test]
async fn rendered_marks_are_taken_out() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    let mut forged = map("a", r#"{"k":"1"}"#, MERGE);
    forged.object.set_at(&["metadata", "labels", tracking::CREATED_BY], "resource-permit".into());
    forged.object.set_at(&["metadata", "labels", "mine"], "1".into());
    forged.object.set_at(&["metadata", "uid"], "x".into());
    f.foreign("a", r#"{"theirs":"1"}"#).await;
    f.run(&p, &recorded, vec![forged]).await;
    let live = f.live("a").await.unwrap();
    assert_eq!(recorded.state("a"), (false, Some(true), String::new()));
    assert_eq!((live.label(tracking::CREATED_BY), live.label("mine")), (None, Some("1")));
}

#[tokio::test]
async fn a_condition_decides_for_each_target() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    let absent: keeper::Condition = Arc::new(|live| Ok(live.is_none()));
    let when = |condition: &keeper::Condition, data: &str, policy: Policy| {
        let mut desired = map("a", data, policy);
        desired.condition = Some(condition.clone());
        vec![desired]
    };
    f.run(&p, &recorded, when(&absent, r#"{"k":"1"}"#, OWNER)).await;
    assert_eq!(f.data("a").await, r#"{"k":"1"}"#);
    let applied = recorded.items()[0].state.last_apply.clone();
    // Skipped: the content stays, the policy is carried out.
    let skipped = f.run(&p, &recorded, when(&absent, r#"{"k":"2"}"#, Policy { protect: true, ..ORPHAN })).await;
    assert_eq!((f.data("a").await.as_str(), skipped.writes), (r#"{"k":"1"}"#, 1));
    assert_eq!(f.live("a").await.unwrap().label(tracking::PROTECTED_BY), Some("replications"));
    assert_eq!(recorded.state("a"), (true, Some(true), "ConditionNotMet: apply skipped".to_owned()));
    assert_eq!(recorded.items()[0].state.last_apply, applied);
    assert_eq!(recorded.items()[0].state.policy.unwrap().deletion, Deletion::Orphan);
    let skipped = f.run(&p, &recorded, when(&absent, r#"{"k":"2"}"#, Policy { protect: true, ..ORPHAN })).await;
    assert_eq!((skipped.writes, skipped.is_changed), (0, false));
    f.run(&p, &recorded, when(&absent, r#"{"k":"2"}"#, OWNER)).await;
    assert_eq!(f.live("a").await.unwrap().label(tracking::PROTECTED_BY), None);
    // An error is told without its text, which could hold what the object holds.
    let failing: keeper::Condition = Arc::new(|_| Err("secret".into()));
    let failed = f.run(&p, &recorded, when(&failing, r#"{"k":"2"}"#, OWNER)).await;
    let message = "ConditionEvaluationFailed: expression could not be evaluated";
    assert_eq!((failed.writes, recorded.state("a")), (0, (true, Some(false), message.to_owned())));
    // What is not ours is not even looked at twice.
    f.foreign("b", "{}").await;
    let mut foreign = when(&absent, "{}", OWNER);
    foreign[0].object = config_map("b", "{}");
    let other = (parent("other"), Recorded::default());
    f.run(&other.0, &other.1, foreign).await;
    assert_eq!(other.1.state("b"), (false, Some(true), "ConditionNotMet: apply skipped".to_owned()));
    assert_eq!((other.1.items()[0].state.policy, other.1.items()[0].state.last_apply.clone()), (None, None));
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_finds_the_same_faults() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    f.foreign("a", "{}").await;
    let desired = vec![map("a", "{}", OWNER), map("b", r#"{"k":"1"}"#, OWNER), map("c", r#"{"k":1}"#, OWNER)];
    let outcome = run(&f.keeper, &f.client, &p, &recorded, desired, Extent::DryRun).await.unwrap();
    assert_eq!((outcome.apply_failures, *recorded.records.lock(), f.keeper.objects()), (2, 0, 0));
    assert_eq!(f.data("b").await, "");
    assert!(outcome.items.iter().any(|item| item.identity.name == "b" && item.state.created));
}

#[tokio::test]
async fn one_bad_target_stops_no_other_and_a_part_releases_nothing() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    let mut unknown = map("x", "{}", OWNER);
    unknown.object.set_at(&["kind"], "Nothing".into());
    let mut nowhere = map("y", "{}", OWNER);
    nowhere.object.set_at(&["metadata", "namespace"], "nowhere".into());
    let outcome = f.run(&p, &recorded, vec![unknown, nowhere, map("a", "{}", OWNER)]).await;
    // A namespace that is not there is no fault of the target.
    assert_eq!((outcome.apply_failures, outcome.items.len()), (1, 2));
    let message = r#"applying object failed: no matches for kind "Nothing" in version "v1""#;
    assert_eq!(recorded.state("x").2, message);
    assert_eq!(recorded.state("a").1, Some(true));
    let part = vec![map("b", "{}", OWNER)];
    run(&f.keeper, &f.client, &p, &recorded, part, Extent::Part).await.unwrap();
    assert_eq!((recorded.items().len(), f.data("a").await.as_str(), f.data("b").await.as_str()), (3, "{}", "{}"));
}

#[tokio::test]
async fn an_object_with_finalizers_is_kept_in_the_inventory_until_it_is_gone() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    let mut desired = map("a", "{}", OWNER);
    desired.object = json::parse(
        br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","finalizers":["x.io/wait"]}}"#,
    )
    .unwrap();
    f.run(&p, &recorded, vec![desired]).await;
    for _ in 0..2 {
        let outcome = f.run(&p, &recorded, vec![]).await;
        assert!(outcome.retry_after.is_some());
        assert_eq!(recorded.state("a"), (true, None, "waiting for resource deletion".to_owned()));
    }
    f.edit("a", r#"{"metadata":{"finalizers":null}}"#).await;
    f.run(&p, &recorded, vec![]).await;
    assert_eq!(recorded.items(), []);
}
