//! Checking a value against a schema's keywords, as kube-openapi's validators do, with their sentences.

mod correlate;
mod numbers;

pub(crate) use correlate::Pair;

use crate::format::Format;
use crate::structural::{Additional, Fact, Node, Pattern, Type};
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, json};
use std::cell::Cell;
use std::fmt;

/// Checks `value` against `node`. `prefix` goes before the field of each error; the sentences start below it.
///
/// `old` is what the value takes the place of: errors of parts that did not change are dropped.
pub(crate) fn check(node: &Node, value: &Value, old: Option<&Value>, prefix: &Path<'_>) -> Vec<FieldError> {
    let checker = Checker { prefix, int_or_string: "integer,string", room: Cell::new(MAX_TEXT) };
    let pair = old.map(|old| Pair { node, old });
    without_silent(checker.ratcheted(node, value, pair, &Place::Root).errors)
}

/// Checks a default. Upstream forgets then that an int-or-string has types.
pub(crate) fn check_default(node: &Node, value: &Value, prefix: &Path<'_>) -> Vec<FieldError> {
    let checker = Checker { prefix, int_or_string: "", room: Cell::new(MAX_TEXT) };
    without_silent(checker.value(node, value, None, &Place::Root).errors)
}

/// Leaves out the errors for whose texts there was no room.
fn without_silent(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    if errors.len() > 1 && errors.iter().any(|error| !error.is_silent()) {
        errors.retain(|error| !error.is_silent());
    }
    errors
}

/// An error without a text, which stands for one that there was no room for.
trait Silent {
    fn silent() -> Self;
    fn is_silent(&self) -> bool;
}

impl Silent for FieldError {
    fn silent() -> Self {
        FieldError::invalid(&Path::ROOT, Shown::raw(""), "")
    }

    fn is_silent(&self) -> bool {
        self.detail.is_empty() && self.value.as_ref().is_some_and(|shown| *shown == Shown::raw(""))
    }
}

/// What a check found.
#[derive(Default)]
struct Verdict {
    errors: Vec<FieldError>,
    /// How many checks passed, counted as upstream does: of the branches of `anyOf` and `oneOf` that fail, the one
    /// with the most is reported.
    matches: usize,
}

impl Verdict {
    fn merge(&mut self, other: Verdict) {
        self.errors.extend(other.errors);
        self.matches += other.matches;
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Where a value stands, as the validators spell it.
enum Place<'p> {
    Root,
    Property(&'p Place<'p>, &'p str),
    /// A member that only `additionalProperties` describes. At the root its name starts with a dot.
    Additional(&'p Place<'p>, &'p str),
    Index(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Property(Place::Root, name) => f.write_str(name),
            Place::Property(parent, name) | Place::Additional(parent, name) => write!(f, "{parent}.{name}"),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Checker<'c> {
    prefix: &'c Path<'c>,
    /// The types of an int-or-string.
    int_or_string: &'static str,
    /// How many bytes of texts may still be made.
    room: Cell<usize>,
}

/// The most bytes that the texts of one check may take together, those of branches that do not matter in the end
/// included. Upstream knows no such limit; beyond it errors only count.
const MAX_TEXT: usize = 16 << 20;

/// The most bytes of a value that an error shows. Values of other than a huge size are shown as they are.
const MAX_SHOWN: usize = 64 << 10;

impl Checker<'_> {
    /// Checks a value, and forgets its errors where it is what it was.
    fn ratcheted(&self, node: &Node, value: &Value, pair: Option<Pair<'_>>, place: &Place<'_>) -> Verdict {
        let mut verdict = self.value(node, value, pair, place);
        if !verdict.is_valid() && pair.is_some_and(|pair| pair.is_equal(value)) {
            verdict.errors.clear();
        }
        verdict
    }

    fn value(&self, node: &Node, value: &Value, pair: Option<Pair<'_>>, place: &Place<'_>) -> Verdict {
        let mut verdict = Verdict::default();
        if value.is_null() {
            self.types(node, value, place, &mut verdict);
            self.enumeration(node, value, place, &mut verdict);
            return verdict;
        }
        let format = node.facts().iter().find_map(|f| match f {
            Fact::Format(Some(format), name) => Some((*format, &**name)),
            _ => None,
        });
        if node.typ().is_some() || node.int_or_string() && !self.int_or_string.is_empty() || format.is_some() {
            self.types(node, value, place, &mut verdict);
            verdict.matches += 1;
        }
        self.junctors(node, value, place, &mut verdict);
        match value {
            Value::String(text) => {
                self.string(node, text, place, &mut verdict);
                verdict.matches += 1;
                if let Some((format, name)) = format {
                    self.format(format, name, text, place, &mut verdict);
                    verdict.matches += 1;
                }
            }
            Value::Int(_) | Value::Float(_) => {
                self.number(node, value, place, &mut verdict);
                verdict.matches += 2;
            }
            Value::Array(items) => {
                self.array(node, items, pair, place, &mut verdict);
                verdict.matches += 2;
            }
            Value::Object(members) => {
                self.object(node, members, pair, place, &mut verdict);
                verdict.matches += 1;
            }
            Value::Null | Value::Bool(_) => {}
        }
        self.enumeration(node, value, place, &mut verdict);
        // For the common check, and for the whole.
        verdict.matches += 2;
        verdict
    }

    fn types(&self, node: &Node, value: &Value, place: &Place<'_>, verdict: &mut Verdict) {
        let wanted = if node.int_or_string() { self.int_or_string } else { node.typ().map_or("", Type::name) };
        let contains = |name: &str| wanted.split(',').any(|w| w == name);
        let actual = value.type_name();
        if value.is_null() {
            if !wanted.is_empty() && !node.nullable() {
                self.type_error(place, wanted, actual, verdict);
            } else {
                verdict.matches += 1;
            }
            return;
        }
        let whole_float = matches!(value, Value::Float(f) if numbers::is_json_integer(*f)) && contains("integer");
        let int_for_float = matches!(value, Value::Int(_)) && contains("number");
        let fits = contains(actual) || whole_float || int_for_float;
        let format = node.facts().iter().find_map(|f| match f {
            Fact::Format(Some(_), name) => Some(&**name),
            _ => None,
        });
        let text_like = matches!(value, Value::String(_) | Value::Array(_));
        if let Some(format) = format {
            if !text_like && !fits {
                let go_format = match value {
                    Value::Int(_) => "int64",
                    Value::Float(_) => "float64",
                    _ => "",
                };
                return self.type_error(place, format, go_format, verdict);
            }
            if text_like && !contains("number") && !contains("integer") {
                verdict.matches += 1;
                return;
            }
        }
        if fits { verdict.matches += 1 } else { self.type_error(place, wanted, actual, verdict) }
    }

    fn type_error(&self, place: &Place<'_>, wanted: &str, actual: &str, verdict: &mut Verdict) {
        let detail = format!("{place} in body must be of type {wanted}: {}", object::go::quote(actual));
        verdict.errors.push(self.at(place, |path| FieldError::type_invalid(path, actual, detail)));
    }

    fn enumeration(&self, node: &Node, value: &Value, place: &Place<'_>, verdict: &mut Verdict) {
        let Some(allowed) = node.enum_values().filter(|allowed| !allowed.is_empty()) else { return };
        if allowed.iter().any(|one| numbers::converts_to(value, one)) {
            return;
        }
        let allowed: Vec<String> =
            allowed.iter().map(|one| one.as_str().map_or_else(|| json::to_string(one), str::to_owned)).collect();
        verdict.errors.push(self.at(place, |path| FieldError::not_supported(path, shown(value), &allowed)));
    }

    fn string(&self, node: &Node, text: &str, place: &Place<'_>, verdict: &mut Verdict) {
        let (mut max, mut min, mut pattern) = (None, None, None);
        for fact in node.facts() {
            match fact {
                Fact::MaxLength(n) => max = Some(*n),
                Fact::MinLength(n) => min = Some(*n),
                Fact::Pattern(p) => pattern = Some(&**p),
                _ => {}
            }
        }
        let length = || text.chars().count() as i64;
        let error = match (max, min, pattern) {
            // Counting bytes first spares the count of characters where there is room for all.
            (Some(max), _, _) if text.len() as i64 > max && length() > max => {
                self.at(place, |path| FieldError::too_long(path, max))
            }
            (_, Some(min), _) if length() < min => {
                self.invalid(place, text, format!("{place} in body should be at least {min} chars long"))
            }
            (_, _, Some(pattern)) => match matches(pattern, text) {
                Ok(true) => return,
                Ok(false) => self.invalid(place, text, format!("{place} in body should match '{}'", pattern.text)),
                Err(error) => {
                    let pattern = &pattern.text;
                    self.invalid(
                        place,
                        text,
                        format!("{place} in body should match '{pattern}, but pattern is invalid: {error}'"),
                    )
                }
            },
            _ => return,
        };
        verdict.errors.push(error);
    }

    fn format(&self, format: Format, name: &str, text: &str, place: &Place<'_>, verdict: &mut Verdict) {
        if !format.matches(text) {
            self.type_error(place, name, text, verdict);
        }
    }

    fn number(&self, node: &Node, value: &Value, place: &Place<'_>, verdict: &mut Verdict) {
        for fact in node.facts() {
            let problem = match fact {
                Fact::MultipleOf(factor) => numbers::multiple_of(value, *factor),
                Fact::Maximum(limit, exclusive) => numbers::maximum(value, *limit, *exclusive),
                Fact::Minimum(limit, exclusive) => numbers::minimum(value, *limit, *exclusive),
                _ => None,
            };
            if let Some(problem) = problem {
                let detail = match &problem.factor {
                    Some(factor) => format!("factor MultipleOf declared for {place} must be positive: {factor}"),
                    None => format!("{place} in body {}", problem.sentence),
                };
                let shown = problem.factor.map_or_else(|| value.into(), Shown::raw);
                verdict.errors.push(self.at(place, |path| FieldError::invalid(path, shown, detail)));
            }
        }
    }

    fn array(&self, node: &Node, items: &[Value], pair: Option<Pair<'_>>, place: &Place<'_>, verdict: &mut Verdict) {
        if let Some(schema) = node.items() {
            let old = pair.map(|pair| pair.items());
            for (i, item) in items.iter().enumerate() {
                let pair = old.as_ref().and_then(|old| old.item(item));
                verdict.merge(self.ratcheted(schema, item, pair, &Place::Index(place, i)));
            }
        }
        let size = items.len() as i64;
        for fact in node.facts() {
            match fact {
                Fact::MinItems(min) if size < *min => verdict.errors.push(self.invalid(
                    place,
                    size,
                    format!("{place} in body should have at least {min} items"),
                )),
                Fact::MaxItems(max) if size > *max => {
                    verdict.errors.push(self.at(place, |path| FieldError::too_many(path, items.len(), *max)));
                }
                _ => {}
            }
        }
    }

    fn object(&self, node: &Node, members: &Map, pair: Option<Pair<'_>>, place: &Place<'_>, verdict: &mut Verdict) {
        let size = members.len() as i64;
        let (mut max, mut min) = (None, None);
        for fact in node.facts() {
            match fact {
                Fact::MaxProperties(n) => max = Some(*n),
                Fact::MinProperties(n) => min = Some(*n),
                _ => {}
            }
        }
        if let Some(min) = min.filter(|min| size < *min) {
            let detail = format!("{place} in body should have at least {min} properties");
            verdict.errors.push(self.invalid(place, size, detail));
        }
        if let Some(max) = max.filter(|max| size > *max) {
            verdict.errors.push(self.at(place, |path| FieldError::too_many(path, members.len(), max)));
        }
        for (key, value) in members.iter() {
            let (schema, inner) = match (node.property(key), node.additional()) {
                (Some(schema), _) => (schema, Place::Property(place, key)),
                (None, Additional::Schema(schema)) => (schema, Place::Additional(place, key)),
                (None, Additional::Any(false)) => {
                    let detail = format!("{place}.{key} in body is a forbidden property");
                    verdict.errors.push(self.invalid(place, key, detail));
                    continue;
                }
                _ => continue,
            };
            let pair = pair.and_then(|pair| pair.member(key));
            verdict.merge(self.ratcheted(schema, value, pair, &inner));
        }
        for name in node.required() {
            if !members.contains_key(name) {
                let inner = Place::Additional(place, name);
                verdict.errors.push(self.at(&inner, |path| FieldError::required(path, "")));
            }
        }
    }

    /// `allOf`, `anyOf`, `oneOf` and `not`. Inside of them nothing is compared with old values.
    fn junctors(&self, node: &Node, value: &Value, place: &Place<'_>, verdict: &mut Verdict) {
        for fact in node.facts() {
            match fact {
                Fact::AnyOf(branches) if !branches.is_empty() => {
                    self.any_of(branches, value, place, verdict);
                }
                Fact::OneOf(branches) if !branches.is_empty() => {
                    self.one_of(branches, value, place, verdict);
                }
                Fact::AllOf(branches) if !branches.is_empty() => {
                    let mut valid = 0;
                    for branch in branches {
                        let result = self.value(branch, value, None, place);
                        valid += usize::from(result.is_valid());
                        verdict.merge(result);
                    }
                    if valid != branches.len() {
                        let more = if valid == 0 { ". None validated" } else { "" };
                        self.composite(place, &format!("must validate all the schemas (allOf){more}"), verdict);
                    }
                }
                Fact::Not(branch) if self.value(branch, value, None, place).is_valid() => {
                    self.composite(place, "must not validate the schema (not)", verdict);
                }
                _ => {}
            }
        }
        verdict.matches += 2;
    }

    fn any_of(&self, branches: &[Node], value: &Value, place: &Place<'_>, verdict: &mut Verdict) {
        let mut best: Option<Verdict> = None;
        for branch in branches {
            let result = self.value(branch, value, None, place);
            if result.is_valid() {
                return verdict.merge(result);
            }
            if best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
        }
        self.composite(place, "must validate at least one schema (anyOf)", verdict);
        verdict.merge(best.unwrap_or_default());
    }

    fn one_of(&self, branches: &[Node], value: &Value, place: &Place<'_>, verdict: &mut Verdict) {
        let mut best: Option<Verdict> = None;
        let mut first: Option<Verdict> = None;
        let mut valid = 0;
        for branch in branches {
            let result = self.value(branch, value, None, place);
            if result.is_valid() {
                valid += 1;
                best = None;
                first.get_or_insert(result);
            } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
        }
        if valid == 1 {
            return verdict.merge(first.unwrap_or_default());
        }
        let more = if valid == 0 { "none valid".to_owned() } else { format!("{valid} valid alternatives") };
        self.composite(place, &format!("must validate one and only one schema (oneOf). Found {more}"), verdict);
        verdict.merge(best.unwrap_or_default());
    }

    /// An error about several schemas names its field only in the sentence.
    fn composite(&self, place: &Place<'_>, sentence: &str, verdict: &mut Verdict) {
        let detail = format!("\"{place}\" {sentence}");
        verdict.errors.push(FieldError::invalid(self.prefix, "", detail));
    }

    fn invalid(&self, place: &Place<'_>, value: impl Into<Shown>, detail: String) -> FieldError {
        self.at(place, |path| FieldError::invalid(path, value, detail))
    }

    fn at(&self, place: &Place<'_>, make: impl FnOnce(&Path<'_>) -> FieldError) -> FieldError {
        if self.room.get() == 0 {
            return FieldError::silent();
        }
        let text = place.to_string();
        let error = match text.strip_prefix('.').unwrap_or(&text) {
            "" => make(self.prefix),
            name => make(&self.prefix.child(name)),
        };
        self.room.set(self.room.get().saturating_sub(error.field.len() + error.detail.len()));
        error
    }
}

fn shown(value: &Value) -> Shown {
    match value {
        Value::Array(_) | Value::Object(_) => {
            let mut text = object::go::syntax(value);
            if text.len() > MAX_SHOWN {
                text = text.chars().take(MAX_SHOWN).collect::<String>() + "…";
            }
            Shown::raw(text)
        }
        other => other.into(),
    }
}

/// Whether the text holds a match. The pattern is compiled when it is first used.
fn matches(pattern: &Pattern, text: &str) -> Result<bool, regexp::Error> {
    match pattern.compiled.get_or_init(|| regexp::Regexp::new(&pattern.text).ok()) {
        Some(compiled) => Ok(compiled.is_match(text)),
        None => regexp::Regexp::new(&pattern.text).map(|compiled| compiled.is_match(text)),
    }
}
