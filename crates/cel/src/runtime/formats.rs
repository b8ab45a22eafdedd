//! The named formats of Kubernetes: `format.dns1123Label().validate(text)`.

use std::any::Any;

use super::url::Url;
use crate::value::{Error, List, Opaque, Result, Timestamp, Value};

const UUID_PATTERN: &str = "^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
const DATE_TIME_PATTERN: &str = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";

const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
    must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation \
    is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS_1035_MESSAGE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
    with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used \
    for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_NAME_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and \
    end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', \
    '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
    regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// A named format: type `kubernetes.NamedFormat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

impl Format {
    /// The format of a name.
    pub(crate) fn named(name: &str) -> Option<Format> {
        Some(match name {
            "dns1123Label" => Format::Dns1123Label,
            "dns1123Subdomain" => Format::Dns1123Subdomain,
            "dns1035Label" => Format::Dns1035Label,
            "qualifiedName" => Format::QualifiedName,
            "dns1123LabelPrefix" => Format::Dns1123LabelPrefix,
            "dns1123SubdomainPrefix" => Format::Dns1123SubdomainPrefix,
            "dns1035LabelPrefix" => Format::Dns1035LabelPrefix,
            "labelValue" => Format::LabelValue,
            "uri" => Format::Uri,
            "uuid" => Format::Uuid,
            "byte" => Format::Byte,
            "date" => Format::Date,
            "datetime" => Format::DateTime,
            _ => return None,
        })
    }

    /// The length of the regular expression that run-time costs count for `validate`.
    pub(crate) fn regex_size(self) -> u64 {
        match self {
            Format::Dns1123Label | Format::Dns1035Label | Format::Dns1123LabelPrefix | Format::Dns1035LabelPrefix => 30,
            Format::Dns1123Subdomain | Format::Dns1123SubdomainPrefix | Format::QualifiedName => 60,
            Format::LabelValue => 40,
            Format::Uri => 1103,
            Format::Uuid => UUID_PATTERN.len() as u64,
            Format::Byte => 84,
            Format::Date | Format::DateTime => DATE_TIME_PATTERN.len() as u64,
        }
    }

    /// What is wrong with `text`; empty if nothing is.
    fn check(self, text: &str) -> Vec<String> {
        let one = |valid: bool, message: &str| if valid { Vec::new() } else { vec![message.to_owned()] };
        match self {
            Format::Dns1123Label => check_label(text),
            Format::Dns1123LabelPrefix => check_label(&mask_trailing_dash(text)),
            Format::Dns1123Subdomain => check_subdomain(text),
            Format::Dns1123SubdomainPrefix => check_subdomain(&mask_trailing_dash(text)),
            Format::Dns1035Label => check_dns_1035(text),
            Format::Dns1035LabelPrefix => check_dns_1035(&mask_trailing_dash(text)),
            Format::QualifiedName => check_qualified_name(text),
            Format::LabelValue => {
                let mut errors = Vec::new();
                check_length(text, 63, &mut errors);
                if !text.is_empty() && !is_name(text) {
                    errors.push(LABEL_VALUE_MESSAGE.to_owned());
                }
                errors
            }
            Format::Uri => Url::parse(text).err().into_iter().collect(),
            Format::Uuid => one(is_uuid(text), "does not match the UUID format"),
            Format::Byte => one(is_base64(text), "invalid base64"),
            Format::Date => one(is_date(text), "invalid date"),
            Format::DateTime => one(is_date_time(text), "invalid datetime"),
        }
    }
}

/// A name that is a prefix of generated names may end in a dash.
fn mask_trailing_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(head) if !head.is_empty() => {
            let mut masked = head.to_owned();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => text.to_owned(),
    }
}

fn check_length(text: &str, limit: usize, errors: &mut Vec<String>) {
    if text.len() > limit {
        errors.push(format!("must be no more than {limit} characters"));
    }
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| is_lower_alphanumeric(*b))
        && bytes.last().is_some_and(|b| is_lower_alphanumeric(*b))
        && bytes.iter().all(|b| is_lower_alphanumeric(*b) || *b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn check_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    check_length(text, 63, &mut errors);
    if !is_label(text) {
        errors.push(if is_subdomain(text) { "must not contain dots" } else { LABEL_MESSAGE }.to_owned());
    }
    errors
}

fn check_subdomain(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    check_length(text, 253, &mut errors);
    if !is_subdomain(text) {
        errors.push(SUBDOMAIN_MESSAGE.to_owned());
    }
    errors
}

fn check_dns_1035(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    check_length(text, 63, &mut errors);
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        errors.push(DNS_1035_MESSAGE.to_owned());
    }
    errors
}

fn check_qualified_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a qualified name {QUALIFIED_NAME_MESSAGE} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(check_subdomain(prefix).into_iter().map(|message| format!("prefix part {message}")));
            }
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 characters".to_owned());
    }
    if !is_name(name) {
        errors.push(format!("name part {QUALIFIED_NAME_MESSAGE}"));
    }
    errors
}

fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (index, length) in [8usize, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((group, tail)) = rest.split_at_checked(length) else { return false };
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = tail;
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    let digits = text.len() - padding;
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && text.bytes().take(digits).all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && Timestamp::parse(&format!("{text}T00:00:00Z")).is_some()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

/// [`DATE_TIME_PATTERN`], with hours to 23 and minutes and seconds to 59.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let Some((clock, rest)) = bytes.split_at_checked(8) else { return false };
    let two = |at: usize, max: &[u8]| {
        clock.get(at..at + 2).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit) && digits <= max)
    };
    if !(two(0, b"23") && two(3, b"59") && two(6, b"59") && clock[2] == b':' && clock[5] == b':') {
        return false;
    }
    let is_zone = |zone: &[u8]| match zone {
        b"z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    };
    if is_zone(rest) {
        return true;
    }
    // The fraction is any one character and digits.
    let Some(first) = text.get(8..).and_then(|rest| rest.chars().next()) else { return false };
    let fraction = rest.get(first.len_utf8()..).unwrap_or_default();
    let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
    first != '\n' && digits > 0 && is_zone(fraction.get(digits..).unwrap_or_default())
}

impl Opaque for Format {
    fn type_name(&self) -> &'static str {
        "kubernetes.NamedFormat"
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `format.named(name)`
pub(crate) fn named<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(name)] => Ok(match Format::named(name) {
            Some(format) => Value::some(Value::opaque(format)),
            None => Value::Optional(None),
        }),
        _ => Err(Error::mismatch()),
    }
}

/// `format.validate(text)`
pub(crate) fn validate<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [format, Value::String(text)] = args else { return Err(Error::mismatch()) };
    let format: &Format = format.downcast().ok_or_else(Error::mismatch)?;
    let errors: Vec<Value<'_>> = format.check(text).into_iter().map(Value::shared).collect();
    Ok(if errors.is_empty() { Value::Optional(None) } else { Value::some(Value::List(List::new(errors))) })
}

macro_rules! constants {
    ($($name:ident $format:ident;)*) => {
        $(
        /// The format of the same name.
        pub(crate) fn $name<'a>(_: &[Value<'a>]) -> Result<Value<'a>> {
            Ok(Value::opaque(Format::$format))
        })*
    };
}

constants! {
    dns1123_label Dns1123Label;
    dns1123_subdomain Dns1123Subdomain;
    dns1035_label Dns1035Label;
    qualified_name QualifiedName;
    dns1123_label_prefix Dns1123LabelPrefix;
    dns1123_subdomain_prefix Dns1123SubdomainPrefix;
    dns1035_label_prefix Dns1035LabelPrefix;
    label_value LabelValue;
    uri Uri;
    uuid Uuid;
    byte Byte;
    date Date;
    date_time DateTime;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_say_what_is_wrong() {
        let long = "x".repeat(64);
        for (format, text, errors) in [
            (Format::Dns1123Label, "a", vec![]),
            (Format::Dns1123Label, "a.b", vec!["must not contain dots"]),
            (Format::Dns1123Label, "A", vec![LABEL_MESSAGE]),
            (Format::Dns1123Label, &long, vec!["must be no more than 63 characters"]),
            (Format::Dns1123LabelPrefix, "A-", vec![]),
            (Format::Dns1123LabelPrefix, "é-", vec![]),
            (Format::Dns1123SubdomainPrefix, "a.b-", vec![]),
            (Format::Dns1123SubdomainPrefix, "a.", vec![SUBDOMAIN_MESSAGE]),
            (Format::Dns1035Label, "1", vec![DNS_1035_MESSAGE]),
            (Format::QualifiedName, "/a", vec!["prefix part must be non-empty"]),
            (Format::LabelValue, "", vec![]),
            (Format::LabelValue, "-a", vec![LABEL_VALUE_MESSAGE]),
            (Format::Uri, "a", vec!["parse \"a\": invalid URI for request"]),
            (Format::Uuid, "123e4567e89b12d3a456426614174000", vec![]),
            (Format::Uuid, "x", vec!["does not match the UUID format"]),
            (Format::Byte, "aGVsbG8=", vec![]),
            (Format::Byte, "", vec!["invalid base64"]),
            (Format::Date, "1999-1-1", vec!["invalid date"]),
            (Format::DateTime, "1999-12-31T00:00:00+01:00", vec![]),
            (Format::DateTime, "1999-12-31t00:00:00x5z", vec![]),
            (Format::DateTime, "1999-12-31 00:00:00Z", vec!["invalid datetime"]),
        ] {
            assert_eq!(format.check(text), errors, "{format:?} {text}");
        }
    }
}
