//! Helpers for the cells of tables.

use crate::read::Read;
use jiff::Timestamp;
use object::{Map, Value};

/// The row of kinds that show only `Name` and `Age`.
pub fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), age(object, now)]
}

/// The row of kinds without columns of their own.
pub fn name_and_creation(object: &Value, _: Timestamp) -> Vec<Value> {
    vec![object.name().into(), object.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default()]
}

/// How long ago an object was created, `<unknown>` where that is not known.
pub fn age(object: &Value, now: Timestamp) -> Value {
    since(object.at(&["metadata", "creationTimestamp"]), now).into()
}

/// How long ago a time was, as people read it; `<unknown>` where there is none.
pub fn since(time: Option<&Value>, now: Timestamp) -> String {
    match time.and_then(Value::as_str).and_then(|s| s.parse::<Timestamp>().ok()) {
        Some(then) => human(now.as_second() - then.as_second()),
        None => "<unknown>".to_owned(),
    }
}

/// A duration in seconds as `kubectl get` shows it: two units at most, fewer the longer it is.
///
/// ```
/// # use kinds::table::human;
/// assert_eq!([human(1), human(125), human(3600), human(86400 * 3)], ["1s", "2m5s", "60m", "3d"]);
/// ```
pub fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let two = |a: i64, au: &str, b: i64, bu: &str| if b == 0 { format!("{a}{au}") } else { format!("{a}{au}{b}{bu}") };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// The names of a template's containers, `a,b`.
pub(crate) fn container_names(template: &Value) -> Value {
    joined(template, "name")
}

/// The images of a template's containers, `a,b`.
pub(crate) fn images(template: &Value) -> Value {
    joined(template, "image")
}

fn joined(template: &Value, key: &str) -> Value {
    let names: Vec<&str> = template.sub("spec").list("containers").iter().map(|c| c.text(key)).collect();
    names.join(",").into()
}

/// What stands for labels, or a selector, of which there are none.
pub(crate) const NONE: &str = "<none>";

/// Labels as people write them, `a=b,c=d`; `<none>` where there are none.
pub(crate) fn labels(labels: &Map) -> String {
    if labels.is_empty() {
        return NONE.to_owned();
    }
    let pairs: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
    pairs.join(",")
}

/// A label selector as people write it, `a=b,c in (d,e)`, in the order of its keys; `<none>` where it is empty.
pub(crate) fn selector(selector: &Value) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector.members("matchLabels").iter() {
        parts.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector.list("matchExpressions") {
        let key = expression.text("key");
        let mut values = expression.strings("values");
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression.text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        parts.push((key, text));
    }
    if parts.is_empty() {
        return NONE.to_owned();
    }
    parts.sort_by_key(|(key, _)| *key);
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

/// A label selector as Go's generated `String` prints it, `nil` where there is none: so it stands in events, and in the rows
/// of bindings of policies.
pub fn go_selector(selector: &Value) -> String {
    if selector.is_null() {
        return "nil".to_owned();
    }
    let labels = selector.members("matchLabels").iter();
    let labels: String = labels.map(|(k, v)| format!("{k}: {},", v.as_str().unwrap_or_default())).collect();
    let terms = selector.list("matchExpressions").iter().map(|term| {
        let (key, operator, values) = (term.text("key"), term.text("operator"), term.strings("values"));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
    });
    let terms: String = terms.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )
}

/// The addresses of a load balancer, `a,b`, each once and in the order of their text.
pub(crate) fn load_balancer(status: &Value) -> String {
    let mut out = std::collections::BTreeSet::new();
    for ingress in status.list("ingress") {
        let address = if ingress.text("ip").is_empty() { ingress.text("hostname") } else { ingress.text("ip") };
        if !address.is_empty() {
            out.insert(address);
        }
    }
    out.into_iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_shown_as_go_does() {
        let selector = object::json::parse(
            br#"{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"a","operator":"In","values":["x","y"]}]}"#,
        )
        .unwrap();
        assert_eq!(
            go_selector(&selector),
            "&LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:a,Operator:In,Values:[x y],},},}"
        );
    }
}
