//! The query of a URL.

use percent_encoding::percent_decode_str;

/// The parameters of a URL, in order, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query; what cannot be decoded is kept as far as it can.
    pub fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|p| !p.is_empty());
        Query(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(key), decode(value))
                })
                .collect(),
        )
    }

    /// The first value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// All values of a parameter.
    pub fn all<'q>(&'q self, key: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// A boolean as upstream reads it: anything is true but `false` and `0`; missing and, of those given, an empty
    /// one is true as well.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|v| !v.eq_ignore_ascii_case("false") && v != "0")
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn decode(text: &str) -> String {
    if text.contains('+') { percent_decoded(&text.replace('+', " ")) } else { percent_decoded(text) }
}

/// A part of a URL with its percent encoding undone; most have none.
pub(super) fn percent_decoded(text: &str) -> String {
    if text.contains('%') { percent_decode_str(text).decode_utf8_lossy().into_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_true_unless_false() {
        for (query, want) in [
            ("w=true", true),
            ("w=maybe", true),
            ("w=", true),
            ("w", true),
            ("w=false", false),
            ("w=0", false),
            ("", false),
        ] {
            assert_eq!(Query::parse(Some(query)).flag("w"), want, "{query}");
        }
    }

    #[test]
    fn values_are_decoded() {
        let query = Query::parse(Some("a=x%2Cy+z&a=2&b"));
        assert_eq!(query.get("a"), Some("x,y z"));
        assert_eq!(query.all("a").count(), 2);
        assert_eq!(query.get("b"), Some(""));
    }
}
