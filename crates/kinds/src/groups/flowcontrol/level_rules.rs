//! Checks of PriorityLevelConfigurations.

use super::mandatory;
use crate::check::{self, Errors};
use crate::read::Read;
use object::Value;
use object::field::{FieldError, Path};

const NOT_NEGATIVE: &str = "must be a non-negative integer";
/// How many bits of a request's hash choose its queues.
const HASH_BITS: u32 = 60;

pub(super) fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let kind = spec.text("type");
    if (object.name() == "exempt") != (kind == "Exempt") {
        let why = "type must be 'Exempt' if and only if name is 'exempt'";
        out.push(FieldError::invalid(&path.child("type"), kind, why));
    }
    match kind {
        "Exempt" => {
            if spec.has("limited") {
                let why = "must be nil if the type is not Limited";
                out.push(FieldError::forbidden(&path.child("limited"), why));
            }
            let (exempt, at) = (spec.sub("exempt"), path.child("exempt"));
            shares(exempt, &at, &mut out);
            percent(exempt, &at, &mut out);
        }
        "Limited" => {
            if spec.has("exempt") {
                out.push(FieldError::forbidden(&path.child("exempt"), "must be nil if the type is Limited"));
            }
            if spec.has("limited") {
                limited(spec.sub("limited"), &path.child("limited"), &mut out);
            } else {
                let why = "must not be empty when type is Limited";
                out.push(FieldError::required(&path.child("limited"), why));
            }
        }
        _ => out.push(FieldError::not_supported(&path.child("type"), kind, &["Exempt", "Limited"])),
    }
    mandatory::level(object, &path, &mut out);
    out
}

fn shares(part: &Value, path: &Path<'_>, out: &mut Errors) {
    let shares = part.int("nominalConcurrencyShares");
    if shares < 0 {
        out.push(FieldError::invalid(&path.child("nominalConcurrencyShares"), shares, NOT_NEGATIVE));
    }
}

fn percent(part: &Value, path: &Path<'_>, out: &mut Errors) {
    let percent = part.int("lendablePercent");
    if !(0..=100).contains(&percent) {
        let why = "must be between 0 and 100, inclusive";
        out.push(FieldError::invalid(&path.child("lendablePercent"), percent, why));
    }
}

fn limited(limited: &Value, path: &Path<'_>, out: &mut Errors) {
    shares(limited, path, out);
    let response = limited.sub("limitResponse");
    let at = path.child("limitResponse");
    let here = at.child("queuing");
    match (response.text("type"), response.has("queuing")) {
        ("Reject", true) => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            out.push(FieldError::forbidden(&here, why));
        }
        ("Queue", false) => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            out.push(FieldError::required(&here, why));
        }
        ("Queue", true) => queuing(response.sub("queuing"), &here, out),
        _ => check::one_of(response, "type", &["Queue", "Reject"], &at, out),
    }
    percent(limited, path, out);
    let borrowing = limited.int("borrowingLimitPercent");
    if borrowing < 0 {
        let why = format!("if specified, {NOT_NEGATIVE}");
        out.push(FieldError::invalid(&path.child("borrowingLimitPercent"), borrowing, why));
    }
}

fn queuing(queuing: &Value, path: &Path<'_>, out: &mut Errors) {
    let (length, queues, hand) = (queuing.int("queueLengthLimit"), queuing.int("queues"), queuing.int("handSize"));
    let mut odd = |key: &str, value: i64, why: &str| out.push(FieldError::invalid(&path.child(key), value, why));
    if length <= 0 {
        odd("queueLengthLimit", length, "must be positive");
    }
    if queues <= 0 {
        odd("queues", queues, "must be positive");
    } else if queues > 10_000_000 {
        odd("queues", queues, "must not be greater than 10000000");
    }
    // How many bits it takes to deal that many hands.
    let bits = (queues as f64).log2() * hand as f64;
    if hand <= 0 {
        odd("handSize", hand, "must be positive");
    } else if hand > queues {
        odd("handSize", hand, &format!("should not be greater than queues ({queues})"));
    } else if bits.ceil() > f64::from(HASH_BITS) {
        let sizes = format!("required entropy bits of deckSize {queues} and handSize {hand}");
        odd("handSize", hand, &format!("{sizes} should not be greater than {HASH_BITS}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn levels_are_limited_or_exempt() {
        let queuing = |numbers: &str| {
            format!(r#"{{"type":"Limited","limited":{{"limitResponse":{{"type":"Queue","queuing":{numbers}}}}}}}"#)
        };
        for (name, spec, expected) in [
            ("p", r#"{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}"#.to_owned(), vec![]),
            (
                "p",
                r#"{"type":"Exempt","exempt":{"nominalConcurrencyShares":-1,"lendablePercent":101}}"#.to_owned(),
                vec![
                    "spec.type: Invalid value: \"Exempt\": type must be 'Exempt' if and only if name is 'exempt'",
                    "spec.exempt.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
                    "spec.exempt.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                ],
            ),
            (
                "p",
                r#"{"type":"Limited","limited":{"borrowingLimitPercent":-1,"limitResponse":{}}}"#.to_owned(),
                vec![
                    "spec.limited.limitResponse.type: Unsupported value: \"\": supported values: \"Queue\", \"Reject\"",
                    "spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer",
                ],
            ),
            ("p", queuing(r#"{"queues":64,"handSize":10,"queueLengthLimit":1}"#), vec![]),
            (
                "p",
                queuing(r#"{"queues":64,"handSize":11,"queueLengthLimit":1}"#),
                vec![
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: 11: required entropy bits of deckSize 64 \
                     and handSize 11 should not be greater than 60",
                ],
            ),
            (
                "p",
                queuing(r#"{"queues":1,"handSize":2}"#),
                vec![
                    "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: 0: must be positive",
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: 2: should not be greater than queues (1)",
                ],
            ),
            (
                "exempt",
                r#"{"type":"Exempt","exempt":{"nominalConcurrencyShares":5,"lendablePercent":10}}"#.to_owned(),
                vec![],
            ),
        ] {
            let text = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#);
            let found = validate(&json::parse(text.as_bytes()).unwrap());
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{spec}");
        }
    }
}
