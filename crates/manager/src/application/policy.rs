//! The policies of an Application that say what becomes of its objects.

use std::borrow::Cow;

use object::Value;

use super::declared::bare;
use super::three_way::{Rights, Strategy};
use super::{field, names};

/// Which objects a rule is about: those that match every list that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    lists: Vec<(Field, Vec<String>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Label(&'static str),
    Kind,
    Name,
}

const FIELDS: [(&str, Field); 6] = [
    ("componentNames", Field::Label(names::COMPONENT)),
    ("componentTypes", Field::Label(names::WORKLOAD_TYPE)),
    ("oamTypes", Field::Label(names::RESOURCE_TYPE)),
    ("traitTypes", Field::Label(names::TRAIT_TYPE)),
    ("resourceTypes", Field::Kind),
    ("resourceNames", Field::Name),
];

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    ///
    /// If it selects nothing: a rule that never applies is a mistake.
    fn read(selector: Option<&Value>, path: &str) -> Result<Self, String> {
        let mut lists = Vec::new();
        for (name, field) in FIELDS {
            let given = selector.and_then(|selector| selector.get(name)).and_then(Value::as_array).unwrap_or_default();
            let mut values: Vec<String> = given.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            if name == "oamTypes" {
                // What the documentation says, and what the label says.
                values.iter_mut().filter(|value| *value == "COMPONENT").for_each(|value| "WORKLOAD".clone_into(value));
            }
            if !values.is_empty() {
                lists.push((field, values));
            }
        }
        if lists.is_empty() {
            return Err(format!("{path}.selector: an empty selector matches nothing; name what the rule is about"));
        }
        Ok(Selector { lists })
    }

    /// Whether an object is meant.
    pub fn matches(&self, object: &Value) -> bool {
        self.lists.iter().all(|(field, values)| {
            let value = match field {
                Field::Label(label) => object.label(label).unwrap_or_default(),
                Field::Kind => object.str_at(&["kind"]).unwrap_or_default(),
                Field::Name => object.name(),
            };
            !value.is_empty() && values.iter().any(|wanted| wanted == value)
        })
    }
}

/// Types of policies that need no definition.
pub(super) const BUILT_IN: [&str; 9] = [
    "apply-once",
    "garbage-collect",
    "override",
    "read-only",
    "replication",
    "resource-update",
    "shared-resource",
    "take-over",
    "topology",
];

/// When an object is collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collect {
    /// When a version no longer has it.
    #[default]
    OnUpdate,
    /// When the application is deleted.
    OnDelete,
    /// Never.
    Never,
}

/// What of its dependents a collected object takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The object itself stays, without its labels.
    Orphan,
    /// Its dependents go too.
    Cascading,
}

/// `garbage-collect`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GarbageCollect {
    /// How many revisions are kept; `None` leaves it to the flag.
    pub revision_limit: Option<usize>,
    /// Objects of earlier versions stay until their tracker is deleted by hand.
    pub keep_legacy: bool,
    /// Earlier versions are collected even if the workflow failed.
    pub continue_on_failure: bool,
    /// What depends on others goes before them.
    pub by_dependency: bool,
    pub(crate) rules: Vec<(Selector, Collect, Option<Propagation>)>,
}

/// When a rule of `apply-once` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A new version is applied.
    Update,
    /// What was applied is kept.
    Keep,
}

/// A rule of `apply-once`: the fields whose live value stays; `*` for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ApplyOnceRule {
    selector: Selector,
    paths: Vec<String>,
    affects: Option<Stage>,
}

/// All policies about objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// `garbage-collect`.
    pub collect: GarbageCollect,
    /// `apply-once` without rules: nothing is kept, only recorded.
    pub apply_once: bool,
    apply_once_rules: Vec<ApplyOnceRule>,
    read_only: Vec<Selector>,
    take_over: Vec<Selector>,
    shared: Vec<Selector>,
    updates: Vec<(Selector, Strategy)>,
}

impl Policies {
    /// Reads `spec.policies` of an application; policies of one type add up. Those of other types are not looked at.
    ///
    /// # Errors
    ///
    /// If a rule has a selector that matches nothing, or a value that is none.
    pub fn read(application: &Value) -> Result<Self, String> {
        let mut all = Policies::default();
        let mut has_apply_once = false;
        let (mut once_enabled, mut has_once_rules) = (false, false);
        let policies = application.at(&["spec", "policies"]).and_then(Value::as_array).unwrap_or_default();
        for (index, policy) in policies.iter().enumerate() {
            let name = policy.str_at(&["name"]).filter(|name| !name.is_empty());
            let path = name.map_or_else(|| format!("spec.policies[{index}]"), |name| format!("policy {name}"));
            let empty = Value::Null;
            let properties = policy.get("properties").unwrap_or(&empty);
            let flag = |key| properties.get(key).and_then(Value::as_bool).unwrap_or_default();
            let rules = properties.get("rules").and_then(Value::as_array);
            let rules = rules.unwrap_or_default().iter().enumerate().map(|(index, rule)| {
                let path = format!("{path}: rules[{index}]");
                Selector::read(rule.get("selector"), &path).map(|selector| (selector, rule, path))
            });
            match bare(policy.str_at(&["type"]).unwrap_or_default()) {
                "garbage-collect" => {
                    let collect = &mut all.collect;
                    let limit = properties.get("applicationRevisionLimit").and_then(Value::as_int);
                    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
                    collect.revision_limit = collect.revision_limit.or(limit);
                    collect.keep_legacy |= flag("keepLegacyResource");
                    collect.continue_on_failure |= flag("continueOnFailure");
                    collect.by_dependency |= properties.str_at(&["order"]) == Some("dependency");
                    for rule in rules {
                        let (selector, rule, path) = rule?;
                        let strategy = match rule.str_at(&["strategy"]).unwrap_or("onAppUpdate") {
                            "onAppUpdate" => Collect::OnUpdate,
                            "onAppDelete" => Collect::OnDelete,
                            "never" => Collect::Never,
                            other => return Err(format!("{path}.strategy: unknown strategy {other:?}")),
                        };
                        let propagation = match rule.str_at(&["propagation"]) {
                            None | Some("") => None,
                            Some("orphan") => Some(Propagation::Orphan),
                            Some("cascading") => Some(Propagation::Cascading),
                            Some(other) => return Err(format!("{path}.propagation: unknown propagation {other:?}")),
                        };
                        collect.rules.push((selector, strategy, propagation));
                    }
                }
                "apply-once" => {
                    has_apply_once = true;
                    once_enabled |= flag("enable");
                    has_once_rules |= properties.get("rules").is_some();
                    for rule in rules {
                        let (selector, rule, path) = rule?;
                        let paths = rule.at(&["strategy", "path"]).and_then(Value::as_array).unwrap_or_default();
                        let affects = match rule.str_at(&["strategy", "affect"]) {
                            None | Some("" | "always") => None,
                            Some("onUpdate") => Some(Stage::Update),
                            Some("onStateKeep") => Some(Stage::Keep),
                            Some(other) => return Err(format!("{path}.strategy.affect: unknown value {other:?}")),
                        };
                        all.apply_once_rules.push(ApplyOnceRule {
                            selector,
                            paths: paths.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                            affects,
                        });
                    }
                }
                kind @ ("read-only" | "take-over" | "shared-resource") => {
                    let selectors = match kind {
                        "read-only" => &mut all.read_only,
                        "take-over" => &mut all.take_over,
                        _ => &mut all.shared,
                    };
                    for rule in rules {
                        selectors.push(rule?.0);
                    }
                }
                "resource-update" => {
                    for rule in rules {
                        let (selector, rule, path) = rule?;
                        let fields = rule.at(&["strategy", "recreateFields"]).and_then(Value::as_array);
                        let fields = fields.unwrap_or_default().iter().filter_map(Value::as_str);
                        let replace = match rule.str_at(&["strategy", "op"]) {
                            None | Some("" | "patch") => false,
                            Some("replace") => true,
                            Some(other) => return Err(format!("{path}.strategy.op: unknown operation {other:?}")),
                        };
                        let strategy = Strategy { replace, recreate_fields: fields.map(str::to_owned).collect() };
                        all.updates.push((selector, strategy));
                    }
                }
                _ => {}
            }
        }
        let is_addon = application.label(names::ADDON).is_some();
        all.apply_once = if has_apply_once { once_enabled && !has_once_rules } else { is_addon };
        if !once_enabled {
            all.apply_once_rules.clear();
        }
        Ok(all)
    }

    /// When an object is collected.
    pub fn collects(&self, object: &Value) -> Collect {
        self.rule(object).map(|rule| rule.1).unwrap_or_default()
    }

    /// What of its dependents an object takes along; `None` leaves it to the server.
    pub fn propagation(&self, object: &Value) -> Option<Propagation> {
        self.rule(object)?.2
    }

    fn rule(&self, object: &Value) -> Option<&(Selector, Collect, Option<Propagation>)> {
        self.collect.rules.iter().find(|rule| rule.0.matches(object))
    }

    /// What may be done with a live object.
    pub fn rights(&self, object: &Value) -> Rights {
        let matches = |selectors: &[Selector]| selectors.iter().any(|selector| selector.matches(object));
        Rights {
            take_over: matches(&self.take_over),
            shared: matches(&self.shared),
            read_only: matches(&self.read_only),
        }
    }

    /// How an object is changed.
    pub fn strategy(&self, object: &Value) -> Strategy {
        self.updates.iter().find(|(selector, _)| selector.matches(object)).map(|(_, s)| s.clone()).unwrap_or_default()
    }

    /// What is applied of a rendered object at a stage: itself, with the live values that `apply-once` says; `None` if
    /// it was deleted by others, and is not to come back.
    ///
    /// # Errors
    ///
    /// If a path is not in the live object.
    pub fn once<'a>(
        &self,
        object: &'a Value,
        live: Option<&Value>,
        stage: Stage,
    ) -> Result<Option<Cow<'a, Value>>, String> {
        let matching = |rule: &&ApplyOnceRule| {
            rule.affects.is_none_or(|affects| affects == stage) && rule.selector.matches(object)
        };
        let Some(rule) = self.apply_once_rules.iter().find(matching) else { return Ok(Some(Cow::Borrowed(object))) };
        let Some(live) = live else {
            return Ok((stage == Stage::Update).then_some(Cow::Borrowed(object)));
        };
        if rule.paths.iter().any(|path| path == "*") {
            return Ok(Some(Cow::Owned(live.clone())));
        }
        let mut merged = object.clone();
        for path in &rule.paths {
            let steps = field::steps(path);
            let value =
                field::at(live, &steps).ok_or_else(|| format!("apply-once: no field {path} in the live object"))?;
            field::put(&mut merged, &steps, value.clone());
        }
        Ok(Some(Cow::Owned(merged)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn policies(policies: &str) -> Result<Policies, String> {
        Policies::read(&json::parse(format!(r#"{{"spec":{{"policies":{policies}}}}}"#).as_bytes()).unwrap_or_default())
    }

    fn object(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    const DEPLOYMENT: &str = r#"{"kind":"Deployment","metadata":{"name":"web","labels":{"app.oam.dev/component":"c","app.oam.dev/resourceType":"WORKLOAD"}},"spec":{"replicas":1}}"#;

    #[test]
    fn rules_select_by_everything_that_is_given() {
        for (selector, matches) in [
            (r#"{"resourceTypes":["Deployment"]}"#, true),
            (r#"{"resourceTypes":["Deployment"],"componentNames":["other"]}"#, false),
            (r#"{"componentNames":["x","c"],"resourceNames":["web"]}"#, true),
            (r#"{"oamTypes":["COMPONENT"]}"#, true),
            (r#"{"traitTypes":[""]}"#, false),
        ] {
            let read = policies(&format!(
                r#"[{{"type":"garbage-collect","properties":{{"rules":[{{"selector":{selector},"strategy":"never"}}]}}}}]"#
            ));
            let collects = read.unwrap_or_default().collects(&object(DEPLOYMENT));
            assert_eq!(collects == Collect::Never, matches, "{selector}");
        }
    }

    #[test]
    fn an_empty_selector_is_an_error_that_says_so() {
        for kind in ["garbage-collect", "apply-once", "read-only", "take-over", "shared-resource", "resource-update"] {
            let read = policies(&format!(
                r#"[{{"name":"p","type":"{kind}","properties":{{"rules":[{{"selector":{{}}}}]}}}}]"#
            ));
            let message = "policy p: rules[0].selector: an empty selector matches nothing; name what the rule is about";
            assert_eq!(read, Err(message.to_owned()), "{kind}");
        }
    }

    #[test]
    fn policies_of_one_type_add_up() {
        let read = policies(
            r#"[{"type":"garbage-collect","properties":{"keepLegacyResource":true,"applicationRevisionLimit":0}},
                {"type":"garbage-collect","properties":{"order":"dependency","applicationRevisionLimit":3}}]"#,
        );
        let collect = read.unwrap_or_default().collect;
        assert!(collect.keep_legacy && collect.by_dependency);
        assert_eq!(collect.revision_limit, Some(0));
    }

    #[test]
    fn apply_once_keeps_what_lives() {
        let declared = object(DEPLOYMENT);
        let rule = |affect: &str, paths: &str| {
            policies(&format!(
                r#"[{{"type":"apply-once","properties":{{"enable":true,"rules":[{{"selector":{{"resourceTypes":["Deployment"]}},"strategy":{{"path":{paths}{affect}}}}}]}}}}]"#
            ))
            .unwrap_or_default()
        };
        let live = object(r#"{"kind":"Deployment","spec":{"replicas":5,"paused":true}}"#);
        let replicas = |policies: &Policies, stage| {
            let kept = policies.once(&declared, Some(&live), stage);
            kept.ok().flatten().and_then(|kept| kept.at(&["spec", "replicas"]).and_then(Value::as_int))
        };
        let always = rule("", r#"["spec.replicas"]"#);
        assert_eq!((replicas(&always, Stage::Update), replicas(&always, Stage::Keep)), (Some(5), Some(5)));
        let keep = rule(r#","affect":"onStateKeep""#, r#"["spec.replicas"]"#);
        assert_eq!((replicas(&keep, Stage::Update), replicas(&keep, Stage::Keep)), (Some(1), Some(5)));
        assert!(!always.apply_once);
        // What others deleted comes back only with a new version.
        assert_eq!(always.once(&declared, None, Stage::Keep), Ok(None));
        assert_eq!(always.once(&declared, None, Stage::Update), Ok(Some(Cow::Owned(object(DEPLOYMENT)))));
        assert!(rule("", r#"["spec.nothing"]"#).once(&declared, Some(&live), Stage::Keep).is_err());
        let all = rule("", r#"["*"]"#).once(&declared, Some(&live), Stage::Keep);
        assert_eq!(all, Ok(Some(Cow::Owned(live.clone()))));
        let whole = policies(r#"[{"type":"apply-once","properties":{"enable":true}}]"#).unwrap_or_default();
        assert!(whole.apply_once);
    }
}
