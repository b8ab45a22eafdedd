//! The rules for names, and the sentences that say how a name breaks them (apimachinery's `validation` package).
//!
//! Each check gives the list of complaints; an empty list means the name is good.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const QUALIFIED_TEXT: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// `must be no more than MAX characters`
pub fn max_length_text(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// A sentence with examples and the regular expression behind it, put together as upstream does.
pub fn pattern_text(text: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{text} (regex used for validation is '{pattern}')");
    }
    let quoted: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{text} (e.g. {}regex used for validation is '{pattern}')", quoted.join(" or "))
}

fn is_label(s: &str) -> bool {
    is_alphanumeric_run(s, |b| b.is_ascii_lowercase() || b.is_ascii_digit(), |b| b == b'-')
}

fn is_subdomain(s: &str) -> bool {
    s.split('.').all(is_label)
}

/// Whether `s` is not empty, starts and ends with an `edge` byte and holds only `edge` and `inner` bytes.
fn is_alphanumeric_run(s: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = s.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => edge(first) && edge(last) && bytes.iter().all(|&b| edge(b) || inner(b)),
        _ => false,
    }
}

fn is_qualified_part(s: &str) -> bool {
    is_alphanumeric_run(s, |b| b.is_ascii_alphanumeric(), |b| matches!(b, b'-' | b'_' | b'.'))
}

/// A DNS label of RFC 1123: at most 63 characters, lower case, no dots.
pub fn dns1123_label(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    if s.len() > 63 {
        out.push(max_length_text(63));
    }
    if !is_label(s) {
        out.push(if is_subdomain(s) {
            "must not contain dots".to_owned()
        } else {
            let text = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
            pattern_text(text, LABEL, &["my-name", "123-abc"])
        });
    }
    out
}

/// A DNS subdomain of RFC 1123: at most 253 characters, labels joined by dots.
pub fn dns1123_subdomain(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    if s.len() > 253 {
        out.push(max_length_text(253));
    }
    if !is_subdomain(s) {
        let text = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        out.push(pattern_text(text, SUBDOMAIN, &["example.com"]));
    }
    out
}

/// A DNS label of RFC 1035: like RFC 1123's, but starting with a letter.
pub fn dns1035_label(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    if s.len() > 63 {
        out.push(max_length_text(63));
    }
    if !is_label(s) || !s.as_bytes()[0].is_ascii_lowercase() {
        let text = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
        out.push(pattern_text(text, DNS1035, &["my-name", "abc-123"]));
    }
    out
}

/// A qualified name: `[prefix/]name`, the key of a label or annotation.
pub fn qualified_name(s: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let mut out = Vec::new();
    let parts: Vec<&str> = s.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                out.push("prefix part must be non-empty".to_owned());
            } else {
                out.extend(dns1123_subdomain(prefix).into_iter().map(|m| format!("prefix part {m}")));
            }
            name
        }
        _ => {
            let text = pattern_text(QUALIFIED_TEXT, QUALIFIED, &examples);
            return vec![format!(
                "a qualified name {text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        out.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        out.push(format!("name part {}", max_length_text(63)));
    }
    if !is_qualified_part(name) {
        out.push(format!("name part {}", pattern_text(QUALIFIED_TEXT, QUALIFIED, &examples)));
    }
    out
}

/// The value of a label: empty, or at most 63 characters.
pub fn label_value(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    if s.len() > 63 {
        out.push(max_length_text(63));
    }
    if !s.is_empty() && !is_qualified_part(s) {
        let text = format!(
            "a valid label must be an empty string or consist of {}",
            &QUALIFIED_TEXT["must consist of ".len()..]
        );
        out.push(pattern_text(&text, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    out
}

/// A name that may stand in a path: neither `.` nor `..`, without `/` and `%`.
pub fn path_segment(s: &str) -> Vec<String> {
    if s == "." || s == ".." {
        return vec![format!("may not be '{s}'")];
    }
    ["/", "%"].iter().filter(|c| s.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// A check of names, as kinds choose one.
pub type NameCheck = fn(&str) -> Vec<String>;

/// Applies `check` to a `generateName`: a trailing dash is taken for the random part that will follow it.
pub fn generate_name(prefix: &str, check: NameCheck) -> Vec<String> {
    match prefix.strip_suffix('-') {
        // Upstream replaces the last two bytes by an `a`, whatever the first of them is.
        Some(rest) if !rest.is_empty() => {
            let end = rest.char_indices().next_back().map_or(0, |(i, _)| i);
            check(&format!("{}a", &rest[..end]))
        }
        _ => check(prefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_bring_no_complaints() {
        assert!(dns1123_label("a-1").is_empty());
        assert!(dns1123_subdomain("a.b-1.c").is_empty());
        assert!(dns1035_label("a-1").is_empty());
        assert!(qualified_name("example.com/My_Name.1").is_empty());
        assert!(label_value("").is_empty() && label_value("A_b.c").is_empty());
        assert!(generate_name("abc-", dns1123_label).is_empty());
    }

    #[test]
    fn complaints_are_upstreams() {
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(
            dns1123_label("A"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
        assert!(dns1035_label("1a")[0].starts_with("a DNS-1035 label must consist"));
        assert!(dns1035_label("")[0].starts_with("a DNS-1035 label must consist"));
        assert_eq!(qualified_name("/b"), ["prefix part must be non-empty"]);
        assert!(qualified_name("a/b/c")[0].ends_with("(e.g. 'example.com/MyName')"));
        assert_eq!(qualified_name("").len(), 2);
        assert!(label_value("-x")[0].starts_with("a valid label must be an empty string or consist of alphanumeric"));
        assert_eq!(path_segment("a/b%c"), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(path_segment(".."), ["may not be '..'"]);
    }
}
