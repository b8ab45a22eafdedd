//! `stanchion check --cost`: what each rule is estimated to cost, against the two budgets, and what would make it cheaper.

use super::input::{Document, Source};
use super::place;
use crate::terminal::say;
use object::{Map, Value, json, map};
use schema::crd::{self, RuleCost};
use schema::{RULE_COST_LIMIT, SCHEMA_COST_LIMIT};

/// The costs of one definition's rules.
struct Costs<'s> {
    source: &'s Source,
    document: &'s Document,
    rules: Vec<(String, RuleCost)>,
}

/// Prints the costs of all definitions, dearest first within each.
pub fn print(sources: &[Source], as_json: bool) {
    let all: Vec<Costs<'_>> = sources.iter().flat_map(|s| s.objects.iter().filter_map(|d| costs(s, d))).collect();
    if as_json {
        let rows = all.iter().flat_map(|c| c.rules.iter().map(|(versions, rule)| value(c, versions, rule)));
        say!("{}", json::to_string(&Value::from(rows.collect::<Vec<Map>>())));
        return;
    }
    for costs in all.iter().filter(|c| !c.rules.is_empty()) {
        let total: u64 = costs.rules.iter().fold(0, |sum: u64, (_, r)| sum.saturating_add(r.total));
        let (name, share) = (costs.document.value.name(), share(total, SCHEMA_COST_LIMIT));
        say!("{name} ({}): {share} of the definition's budget", costs.source.name);
        for (versions, rule) in &costs.rules {
            text(costs, versions, rule);
        }
    }
}

fn costs<'s>(source: &'s Source, document: &'s Document) -> Option<Costs<'s>> {
    if document.value.str_at(&["kind"]) != Some("CustomResourceDefinition") {
        return None;
    }
    let mut definition = crd::decode(&document.value).ok()?.definition;
    crd::default(&mut definition);
    let mut rules: Vec<(String, RuleCost)> = crd::rule_costs(&definition)
        .into_iter()
        .flat_map(|schema| {
            let versions = schema.versions.join(", ");
            schema.rules.into_iter().map(move |rule| (versions.clone(), rule))
        })
        .collect();
    rules.sort_by_key(|(_, rule)| std::cmp::Reverse(rule.total));
    Some(Costs { source, document, rules })
}

fn text(costs: &Costs<'_>, versions: &str, rule: &RuleCost) {
    let line = place::line(costs.source, costs.document, &rule.field);
    let expression = rule.expression.split_whitespace().collect::<Vec<_>>().join(" ");
    say!("  {}:{line} ({versions}) {expression}", costs.source.name);
    let times =
        if rule.times > 1 { format!(" = {} x {} times", number(rule.once), number(rule.times)) } else { String::new() };
    say!("    cost {}{times}, {} of a rule's budget", number(rule.total), share(rule.total, RULE_COST_LIMIT));
    for list in &rule.unbounded {
        say!("    {list} has no bound: give it maxItems or maxProperties");
    }
    for assumption in &rule.assumptions {
        let bound = if assumption.bounded { "bounded" } else { "not bounded" };
        let hint = match assumption.would_fit {
            Some(limit) => format!("; {} {limit} would fit", assumption.keyword),
            None => String::new(),
        };
        say!("    {} up to {} ({} {bound}){hint}", assumption.path, number(assumption.size), assumption.keyword);
    }
}

fn value(costs: &Costs<'_>, versions: &str, rule: &RuleCost) -> Map {
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let assumptions = rule.assumptions.iter().map(|a| {
        let mut out = map! {
            "path" => a.path.as_str(), "keyword" => a.keyword, "size" => count(a.size), "bounded" => a.bounded,
        };
        if let Some(limit) = a.would_fit {
            out.insert("wouldFit", count(limit));
        }
        out
    });
    map! {
        "file" => costs.source.name.as_str(),
        "line" => place::line(costs.source, costs.document, &rule.field) as i64,
        "definition" => costs.document.value.name(),
        "versions" => versions,
        "field" => rule.field.as_str(),
        "expression" => rule.expression.as_str(),
        "once" => count(rule.once),
        "times" => count(rule.times),
        "total" => count(rule.total),
        "shareOfRuleBudget" => rule.total as f64 / RULE_COST_LIMIT as f64,
        "shareOfSchemaBudget" => rule.total as f64 / SCHEMA_COST_LIMIT as f64,
        "unbounded" => rule.unbounded.iter().map(String::as_str).collect::<Vec<_>>(),
        "assumptions" => assumptions.collect::<Vec<Map>>(),
    }
}

fn share(cost: u64, limit: u64) -> String {
    let percent = cost as f64 / limit as f64 * 100.0;
    match percent {
        p if p >= 10_000.0 => "more than 100 times".to_owned(),
        p if p < 0.01 => "under 0.01 %".to_owned(),
        p => format!("{p:.2} %"),
    }
}

/// A number with its thousands apart.
fn number(n: u64) -> String {
    if n == u64::MAX {
        return "unbounded".to_owned();
    }
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_shares_are_readable() {
        assert_eq!((number(999), number(1000), number(1234567)), ("999".into(), "1,000".into(), "1,234,567".into()));
        assert_eq!((share(5_000_000, 10_000_000), share(1, 10_000_000)), ("50.00 %".into(), "under 0.01 %".into()));
    }
}
