//! Label and field selectors: parsed once, matched often. Error texts are apimachinery's.

use crate::field::{FieldError, Path, aggregate};
use crate::{Map, Value, go, names};

/// A label selector: all its requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// What must hold of its value.
    pub condition: Condition,
}

/// What a requirement asks of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The label is there with one of these values.
    In(Vec<String>),
    /// The label is missing or has none of these values.
    NotIn(Vec<String>),
    /// The label is there.
    Exists,
    /// The label is missing.
    Missing,
    /// The label is an integer above this.
    Above(i64),
    /// The label is an integer below this.
    Below(i64),
}

impl Labels {
    /// Reads the text form: `a=b,c in (d,e),!f`.
    pub fn parse(text: &str) -> Result<Self, String> {
        Parser { tokens: tokens(text), at: 0 }.selector().map(Labels)
    }

    /// Reads the object form (`matchLabels`, `matchExpressions`), which matches everything when empty. Its types are
    /// right; an unknown operator is told as upstream does.
    pub fn from_object(selector: &Value) -> Result<Self, String> {
        let mut out = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).iter().flat_map(|m| m.iter()) {
            let values = vec![value.as_str().unwrap_or_default().to_owned()];
            out.push(Requirement { key: key.to_owned(), condition: Condition::In(values) });
        }
        for term in selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default() {
            let text = |key: &str| term.get(key).and_then(Value::as_str).unwrap_or_default();
            let values: Vec<String> = term
                .get("values")
                .and_then(Value::as_array)
                .unwrap_or_default()
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            let condition = match text("operator") {
                "In" => Condition::In(values),
                "NotIn" => Condition::NotIn(values),
                "Exists" => Condition::Exists,
                "DoesNotExist" => Condition::Missing,
                other => return Err(format!("{} is not a valid label selector operator", go::quote(other))),
            };
            out.push(Requirement { key: text("key").to_owned(), condition });
        }
        Ok(Labels(out))
    }

    /// Whether every object matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The requirements.
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether these labels satisfy all requirements.
    pub fn matches(&self, labels: Option<&Map>) -> bool {
        self.0.iter().all(|r| r.matches(labels.and_then(|l| l.get(&r.key)).and_then(Value::as_str)))
    }

    /// Whether the labels of an object satisfy all requirements.
    pub fn matches_object(&self, object: &Value) -> bool {
        self.is_empty() || self.matches(object.at(&["metadata", "labels"]).and_then(Value::as_object))
    }
}

impl Requirement {
    /// Whether the label with this value (none: missing) satisfies the requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|v| v.parse::<i64>().ok());
        match &self.condition {
            Condition::In(values) => value.is_some_and(|v| values.iter().any(|x| x == v)),
            Condition::NotIn(values) => value.is_none_or(|v| values.iter().all(|x| x != v)),
            Condition::Exists => value.is_some(),
            Condition::Missing => value.is_none(),
            Condition::Above(limit) => number().is_some_and(|n| n > *limit),
            Condition::Below(limit) => number().is_some_and(|n| n < *limit),
        }
    }

    fn new(key: String, operator: &str, mut values: Vec<String>) -> Result<Self, String> {
        values.sort();
        values.dedup();
        let mut errors = Vec::new();
        let path = Path::ROOT.child("values");
        let numeric = matches!(operator, "gt" | "lt");
        for (i, value) in values.iter().enumerate() {
            let path = path.index(i);
            if numeric && value.parse::<i64>().is_err() {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(&path, value, why));
            }
            let complaints = names::label_value(value);
            if !complaints.is_empty() {
                errors.push(FieldError::invalid(&path.key(&key), value, complaints.join("; ")));
            }
        }
        if !errors.is_empty() {
            return Err(aggregate(&errors));
        }
        let number = values.first().and_then(|v| v.parse().ok()).unwrap_or_default();
        let condition = match operator {
            "notin" | "!=" => Condition::NotIn(values),
            "exists" => Condition::Exists,
            "!" => Condition::Missing,
            "gt" => Condition::Above(number),
            "lt" => Condition::Below(number),
            _ => Condition::In(values),
        };
        Ok(Requirement { key, condition })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Open,
    Close,
    Comma,
    Not,
    /// `=`, `==`, `!=`, `gt`, `lt`
    Operator,
    /// `in`, `notin`: words where a value or key may stand, operators elsewhere.
    Set,
    Word,
    Bad,
}

struct Token {
    kind: Kind,
    text: String,
}

fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let special = |b: u8| matches!(b, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<');
    let space = |b: u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        if space(bytes[at]) {
            at += 1;
        } else if special(bytes[at]) {
            // The longest operator at this place: two characters for `==` and `!=`.
            let two = bytes.get(at..at + 2).unwrap_or_default();
            at += if two == b"==" || two == b"!=" { 2 } else { 1 };
            let text = &text[start..at];
            let kind = match text {
                "(" => Kind::Open,
                ")" => Kind::Close,
                "," => Kind::Comma,
                "!" => Kind::Not,
                "=" | "==" | "!=" | ">" | "<" => Kind::Operator,
                _ => Kind::Bad,
            };
            out.push(Token { kind, text: text.to_owned() });
        } else {
            while at < bytes.len() && !special(bytes[at]) && !space(bytes[at]) {
                at += 1;
            }
            let text = &text[start..at];
            let kind = if matches!(text, "in" | "notin") { Kind::Set } else { Kind::Word };
            out.push(Token { kind, text: text.to_owned() });
        }
    }
    out.push(Token { kind: Kind::End, text: String::new() });
    out
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn raw(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    /// The next token where keys and values are expected: `in` is a word there.
    fn peek(&self) -> (Kind, &str) {
        let token = self.raw();
        (if token.kind == Kind::Set { Kind::Word } else { token.kind }, &token.text)
    }

    fn next(&mut self) -> (Kind, String) {
        let (kind, text) = self.peek();
        let out = (kind, text.to_owned());
        self.at += 1;
        out
    }

    fn selector(mut self) -> Result<Vec<Requirement>, String> {
        let mut out = Vec::new();
        loop {
            match self.peek() {
                (Kind::Word | Kind::Not, _) => {
                    let requirement = self.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?;
                    out.push(requirement);
                    match self.next() {
                        (Kind::End, _) => break,
                        (Kind::Comma, _) => match self.peek() {
                            (Kind::Word | Kind::Not, _) => {}
                            (_, text) => return Err(format!("found '{text}', expected: identifier after ','")),
                        },
                        (_, text) => return Err(format!("found '{text}', expected: ',' or 'end of string'")),
                    }
                }
                (Kind::End, _) => break,
                (_, text) => return Err(format!("found '{text}', expected: !, identifier, or 'end of string'")),
            }
        }
        out.sort_by(|a: &Requirement, b: &Requirement| a.key.cmp(&b.key));
        Ok(out)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut kind, mut key) = self.next();
        let negated = kind == Kind::Not;
        if negated {
            (kind, key) = self.next();
        }
        if kind != Kind::Word {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let complaints = names::qualified_name(&key);
        if !complaints.is_empty() {
            return Err(FieldError::invalid(&Path::ROOT, &key, complaints.join("; ")).to_string());
        }
        if negated {
            return Requirement::new(key, "!", Vec::new());
        }
        if matches!(self.peek().0, Kind::End | Kind::Comma) {
            return Requirement::new(key, "exists", Vec::new());
        }
        let operator = self.operator()?;
        let values = if matches!(operator.as_str(), "in" | "notin") { self.values()? } else { vec![self.value()?] };
        Requirement::new(key, &operator, values)
    }

    fn operator(&mut self) -> Result<String, String> {
        let token = self.raw();
        let operator = match (token.kind, token.text.as_str()) {
            (Kind::Operator, ">") => "gt",
            (Kind::Operator, "<") => "lt",
            (Kind::Operator | Kind::Set, text) => text,
            (_, text) => return Err(format!("found '{text}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let operator = operator.to_owned();
        self.at += 1;
        Ok(operator)
    }

    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            (Kind::End | Kind::Comma, _) => Ok(String::new()),
            (Kind::Word, _) => Ok(self.next().1),
            (_, text) => Err(format!("found '{text}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            (Kind::Open, _) => {}
            (_, text) => return Err(format!("found '{text}' expected: '('")),
        }
        match self.peek() {
            (Kind::Word | Kind::Comma, _) => {
                let values = self.identifiers()?;
                match self.next() {
                    (Kind::Close, _) => Ok(values),
                    (_, text) => Err(format!("found '{text}', expected: ')'")),
                }
            }
            // Upstream takes `()` for the empty value, not for no values.
            (Kind::Close, _) => {
                self.at += 1;
                Ok(vec![String::new()])
            }
            (_, text) => Err(format!("found '{text}', expected: ',', ')' or identifier")),
        }
    }

    /// Words and commas up to the closing bracket; a comma without a word beside it stands for an empty value.
    fn identifiers(&mut self) -> Result<Vec<String>, String> {
        let mut out = Vec::new();
        loop {
            match self.next() {
                (Kind::Word, word) => {
                    out.push(word);
                    match self.peek() {
                        (Kind::Comma, _) => {}
                        (Kind::Close, _) => return Ok(out),
                        (_, text) => return Err(format!("found '{text}', expected: ',' or ')'")),
                    }
                }
                (Kind::Comma, _) => {
                    if out.is_empty() {
                        out.push(String::new());
                    }
                    match self.peek().0 {
                        Kind::Close => {
                            out.push(String::new());
                            return Ok(out);
                        }
                        Kind::Comma => {
                            self.at += 1;
                            out.push(String::new());
                        }
                        _ => {}
                    }
                }
                (_, text) => return Err(format!("found '{text}', expected: ',', or identifier")),
            }
        }
    }
}

/// A field selector: all its terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<FieldTerm>);

/// One term of a field selector: a field equals, or does not equal, a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field, for example `metadata.name`.
    pub field: String,
    /// The value; an absent field counts as empty.
    pub value: String,
    /// Whether the field must have the value, or must not.
    pub equal: bool,
}

impl Fields {
    /// Reads the text form: `metadata.name=a,status.phase!=Running`; `\` escapes `,`, `=` and itself in values.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut out = Vec::new();
        let mut parts = split_terms(text);
        parts.sort_unstable();
        for part in parts.into_iter().filter(|p| !p.is_empty()) {
            let Some((field, operator, value)) = split_term(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            let value = unescape(value)?;
            out.push(FieldTerm { field: field.to_owned(), value, equal: operator != "!=" });
        }
        Ok(Fields(out))
    }

    /// Whether every object matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The terms.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.0
    }

    /// The value that a field must have, if the selector says so.
    pub fn required(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|t| t.equal && t.field == field).map(|t| t.value.as_str())
    }

    /// Whether all terms hold; `get` gives the text of a field (empty where it is absent).
    pub fn matches<'a>(&self, get: impl Fn(&str) -> std::borrow::Cow<'a, str>) -> bool {
        self.0.iter().all(|t| (get(&t.field) == t.value.as_str()) == t.equal)
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                out.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

fn split_term(term: &str) -> Option<(&str, &str, &str)> {
    term.char_indices().find_map(|(i, _)| {
        let operator = ["!=", "==", "="].into_iter().find(|op| term[i..].starts_with(op))?;
        Some((&term[..i], operator, &term[i + operator.len()..]))
    })
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {}", c as u32)),
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_match_as_written() {
        let labels = crate::map! { "a" => "1", "env" => "prod", "empty" => "" };
        for (selector, expected) in [
            ("", true),
            ("a", true),
            ("!a", false),
            ("!b", true),
            ("a=1", true),
            ("a==1,env!=dev", true),
            ("a in (1,2), env notin (prod)", false),
            ("b notin (x)", true),
            ("a>0", true),
            ("a<1", false),
            ("env>0", false),
            ("in=in", false),
            ("a in (,1)", true),
            ("b=", false),
            ("empty in ()", true),
        ] {
            assert_eq!(Labels::parse(selector).unwrap().matches(Some(&labels)), expected, "{selector}");
        }
    }

    #[test]
    fn label_selector_errors_are_upstreams() {
        for (selector, error) in [
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            (
                "a>x",
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ] {
            assert_eq!(Labels::parse(selector).unwrap_err(), error, "{selector}");
        }
        assert!(
            Labels::parse("a=-bad")
                .unwrap_err()
                .starts_with("unable to parse requirement: values[0][a]: Invalid value: \"-bad\": a valid label")
        );
        assert!(
            Labels::parse("x/y/z")
                .unwrap_err()
                .starts_with("unable to parse requirement: <nil>: Invalid value: \"x/y/z\": a qualified name")
        );
    }

    #[test]
    fn field_selectors_parse_and_match() {
        let fields = Fields::parse(r"metadata.name=a\,b,status.phase!=Running").unwrap();
        assert_eq!(fields.required("metadata.name"), Some("a,b"));
        assert!(fields.matches(|f| if f == "metadata.name" { "a,b".into() } else { "".into() }));
        assert_eq!(Fields::parse("nonsense").unwrap_err(), "invalid selector: 'nonsense'; can't understand 'nonsense'");
    }
}
