//! String formats, as go-openapi's `strfmt` (in the version that Kubernetes 1.33 uses) checks them.

/// Matches a regular expression of this program, compiled once.
macro_rules! regular {
    ($pattern:expr, $text:expr) => {{
        static COMPILED: std::sync::OnceLock<Option<regexp::Regexp>> = std::sync::OnceLock::new();
        COMPILED.get_or_init(|| regexp::Regexp::new($pattern).ok()).as_ref().is_some_and(|r| r.is_match($text))
    }};
}
mod email;
mod net;
mod numbers;
mod time;

pub(crate) use time::{parse_date, parse_date_time, parse_duration};

/// A format that is checked. Others may stand in a schema, and say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 24 hexadecimal digits.
    BsonObjectId,
    /// What Go's `url.ParseRequestURI` takes.
    Uri,
    /// What Go's `mail.ParseAddress` takes.
    Email,
    /// A host name, by a pattern of its own.
    Hostname,
    /// An IP address with a dot in it.
    Ipv4,
    /// An IP address with a colon in it.
    Ipv6,
    /// An address and a prefix length.
    Cidr,
    /// What Go's `net.ParseMAC` takes.
    Mac,
    /// A UUID of any version, dashes optional.
    Uuid,
    /// A UUID of version 3.
    Uuid3,
    /// A UUID of version 4.
    Uuid4,
    /// A UUID of version 5.
    Uuid5,
    /// ISBN-10 or ISBN-13.
    Isbn,
    /// ISBN-10 with its check digit.
    Isbn10,
    /// ISBN-13 with its check digit.
    Isbn13,
    /// A number of a known issuer with its check digit.
    CreditCard,
    /// A social security number of the USA.
    Ssn,
    /// Three or six hexadecimal digits, `#` optional.
    HexColor,
    /// `rgb(1, 2, 3)`
    RgbColor,
    /// Base64 in the standard alphabet, padded, not empty.
    Byte,
    /// Anything.
    Password,
    /// `2006-01-02`
    Date,
    /// A duration of Go, or amounts with units in words.
    Duration,
    /// Date and time of RFC 3339.
    DateTime,
}

impl Format {
    /// The format named so. Dashes in the name do not count. `None` for those that are not checked.
    pub fn parse(name: &str) -> Option<Self> {
        let plain: String = name.chars().filter(|c| *c != '-').collect();
        Some(match plain.as_str() {
            "bsonobjectid" => Format::BsonObjectId,
            "uri" => Format::Uri,
            "email" => Format::Email,
            "hostname" => Format::Hostname,
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "cidr" => Format::Cidr,
            "mac" => Format::Mac,
            "uuid" => Format::Uuid,
            "uuid3" => Format::Uuid3,
            "uuid4" => Format::Uuid4,
            "uuid5" => Format::Uuid5,
            "isbn" => Format::Isbn,
            "isbn10" => Format::Isbn10,
            "isbn13" => Format::Isbn13,
            "creditcard" => Format::CreditCard,
            "ssn" => Format::Ssn,
            "hexcolor" => Format::HexColor,
            "rgbcolor" => Format::RgbColor,
            "byte" => Format::Byte,
            "password" => Format::Password,
            "date" => Format::Date,
            "duration" => Format::Duration,
            "datetime" => Format::DateTime,
            _ => return None,
        })
    }

    /// Whether `text` is well-formed.
    pub fn matches(self, text: &str) -> bool {
        match self {
            Format::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Format::Uri => object::url::Url::parse_request(text).is_ok(),
            Format::Email => email::is_address(text),
            Format::Hostname => is_hostname(text),
            Format::Ipv4 => text.contains('.') && net::parse_ip(text).is_some(),
            Format::Ipv6 => text.contains(':') && net::parse_ip(text).is_some(),
            Format::Cidr => net::is_cidr(text),
            Format::Mac => net::is_mac(text),
            Format::Uuid => is_uuid(text, None),
            Format::Uuid3 => is_uuid(text, Some('3')),
            Format::Uuid4 => is_uuid(text, Some('4')),
            Format::Uuid5 => is_uuid(text, Some('5')),
            Format::Isbn => numbers::is_isbn10(text) || numbers::is_isbn13(text),
            Format::Isbn10 => numbers::is_isbn10(text),
            Format::Isbn13 => numbers::is_isbn13(text),
            Format::CreditCard => numbers::is_credit_card(text),
            Format::Ssn => text.len() == 11 && regular!(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$", text),
            Format::HexColor => regular!("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", text),
            Format::RgbColor => regular!(
                r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
                text
            ),
            Format::Byte => is_base64(text),
            Format::Password => true,
            Format::Date => parse_date(text).is_some(),
            Format::Duration => parse_duration(text).is_some(),
            Format::DateTime => time::is_date_time(text),
        }
    }
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && regular!(
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z0-9\p{S}\p{L}])(-?[a-zA-Z0-9\p{S}\p{L}]){1,62})$",
            text
        )
}

/// 8-4-4-4-12 hexadecimal digits, each dash optional. The variant digit is checked for versions 4 and 5.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    for (group, size) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((digits, tail)) = rest.split_at_checked(size) else { return false };
        let first = digits.chars().next();
        let fits = match (group, version) {
            (2, Some(_)) => first == version,
            (3, Some('4' | '5')) => first.is_some_and(|c| matches!(c.to_ascii_lowercase(), '8' | '9' | 'a' | 'b')),
            _ => true,
        };
        if !fits || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        rest = tail;
    }
    rest.is_empty()
}

/// Whole quartets of the standard alphabet; the last may be padded; at least one.
fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return false;
    }
    let data = text.trim_end_matches('=');
    text.len() - data.len() <= 2 && data.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_take_and_refuse_what_upstream_does() {
        for (format, good, bad) in [
            ("hostname", vec!["a", "a-", "a.bc", "example.com"], vec!["a.b", "1.2.3.4", "", "-a", "a_b"]),
            ("ipv4", vec!["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"], vec!["1.2.3", "1.2.3.256", "::1"]),
            ("ipv6", vec!["::1", "2001:db8::", "::ffff:1.2.3.4"], vec!["1.2.3.4", ":::", "::1%eth0"]),
            ("cidr", vec!["10.0.0.0/8", "010.0.0.0/8", "::/0"], vec!["10.0.0.0", "10.0.0.0/33"]),
            ("mac", vec!["01:23:45:67:89:ab", "01-23-45-67-89-ab", "0123.4567.89ab"], vec!["01:23:45:67:89"]),
            ("uuid", vec!["01234567-89ab-cdef-0123-456789abcdef", "0123456789ABCDEF0123456789abcdef"], vec!["abc"]),
            ("uuid4", vec!["01234567-89ab-4def-8123-456789abcdef"], vec!["01234567-89ab-4def-0123-456789abcdef"]),
            ("isbn", vec!["978-3-16-148410-0", "3836221195"], vec!["3836221194"]),
            ("creditcard", vec!["4111 1111 1111 1111"], vec!["4111111111111112"]),
            ("ssn", vec!["111-22-3333", "111 22 3333"], vec!["111223333"]),
            ("hexcolor", vec!["#fff", "abcdef"], vec!["#ffff"]),
            ("rgbcolor", vec!["rgb(1,2,3)", "rgb( 0 , 255 , 10 )"], vec!["rgb(1,2)", "rgb(256,1,1)"]),
            ("byte", vec!["aGk=", "+/8="], vec!["", "***", "_-8="]),
            ("date", vec!["2020-02-29"], vec!["2021-02-29", "2020-1-1"]),
            (
                "date-time",
                vec!["2020-01-01T00:00:00Z", "2020-01-01t00:00:00.5z", "2020-01-01T00:00:00-25:00"],
                vec!["2020-01-01"],
            ),
            ("duration", vec!["P1D", "PT1H", "1e3s", "1h1", "1 week", "1S", "1h30m"], vec!["1 month", "5", "s"]),
            ("uri", vec!["http://a/b", "/a", "mailto:x"], vec!["a", "", "http://a b"]),
            ("email", vec!["a@b", "Bob <a@b.c>"], vec!["a", "a@", "@b", "a@b, c@d"]),
            ("bsonobjectid", vec!["0123456789abcdef01234567"], vec!["0123"]),
            ("i-p-v-4", vec!["1.2.3.4"], vec!["x"]),
        ] {
            let format = Format::parse(format).unwrap();
            for text in good {
                assert!(format.matches(text), "{format:?} takes {text:?}");
            }
            for text in bad {
                assert!(!format.matches(text), "{format:?} refuses {text:?}");
            }
        }
        assert_eq!(Format::parse("int32"), None);
    }
}
