//! JSON paths of printer columns, as client-go reads them: members, indices, slices, wildcards, unions, recursion and
//! filters.

use object::{Value, go};

/// A parsed path. The default one finds nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonPath(Option<Vec<Step>>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Recursive,
    /// Start, end, step of a slice; a single index is a slice of one.
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Index(i64),
    Union(Vec<Vec<Step>>),
    Filter(Box<Filter>),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    operator: String,
    right: Operand,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(Vec<Step>),
    Literal(Value),
    Nothing,
}

impl JsonPath {
    /// Reads a path such as `.status.conditions[?(@.type=="Ready")].status`; nothing if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        Some(JsonPath(Some(steps(text)?)))
    }

    /// All values that the path leads to.
    pub fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        match &self.0 {
            Some(steps) => walk(steps, root),
            None => Vec::new(),
        }
    }
}

fn steps(text: &str) -> Option<Vec<Step>> {
    let text = text.strip_prefix('$').unwrap_or(text);
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match c {
            '.' => {
                rest = &rest[1..];
                if let Some(after) = rest.strip_prefix('.') {
                    out.push(Step::Recursive);
                    rest = after;
                }
                if rest.starts_with('[') || rest.is_empty() {
                    continue;
                }
                let (name, after) = identifier(rest);
                out.push(if name == "*" { Step::Wildcard } else { Step::Field(name) });
                rest = after;
            }
            '[' => {
                let end = closing(rest)?;
                out.extend(bracket(rest.get(1..end)?)?);
                rest = rest.get(end + 1..)?;
            }
            _ => {
                let (name, after) = identifier(rest);
                if name.is_empty() {
                    return None;
                }
                out.push(Step::Field(name));
                rest = after;
            }
        }
    }
    Some(out)
}

/// A name up to the next `.` or `[`; a backslash takes the next character as it is.
fn identifier(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '.' | '[' => return (name, &text[at..]),
            '\\' => {
                if let Some((_, c)) = chars.next() {
                    name.push(c);
                }
            }
            c => name.push(c),
        }
    }
    (name, "")
}

/// Where the bracket that `text` starts with ends; quotes and nested brackets are passed over.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Vec<Step>> {
    let text = text.trim();
    // What stands in quotes is a path of its own: client-go takes its dots for steps.
    if let Some(inner) = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).filter(|t| !t.contains('\'')) {
        return steps(&format!(".{inner}"));
    }
    simple_bracket(text).map(|step| vec![step])
}

fn simple_bracket(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::Wildcard);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|t| t.strip_suffix(')')) {
        return Some(Step::Filter(Box::new(filter_of(filter.trim())?)));
    }
    let parts = split_outside_quotes(text, ',');
    if parts.len() > 1 {
        let paths: Option<Vec<Vec<Step>>> = parts.iter().map(|p| bracket(p)).collect();
        return paths.map(Step::Union);
    }
    if text.contains(':') {
        let mut numbers = text.split(':');
        let mut number = || match numbers.next().map(str::trim) {
            None | Some("") => Some(None),
            Some(n) => n.parse().ok().map(Some),
        };
        let (start, end, step) = (number()?, number()?, number()?);
        return Some(Step::Slice { start, end, step: step.unwrap_or(1) });
    }
    match text.parse() {
        Ok(index) => Some(Step::Index(index)),
        Err(_) => Some(Step::Field(text.to_owned())),
    }
}

fn quoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    Some(inner.replace("\\'", "'").replace("\\\"", "\"").replace("\\.", "."))
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut quote) = (0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c == separator => {
                out.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out
}

fn filter_of(text: &str) -> Option<Filter> {
    for operator in ["==", "!=", "<=", ">=", "<", ">"] {
        if let Some(at) = find_outside_quotes(text, operator) {
            let (left, right) = (text.get(..at)?.trim(), text.get(at + operator.len()..)?.trim());
            return Some(Filter { left: operand(left)?, operator: operator.to_owned(), right: operand(right)? });
        }
    }
    Some(Filter { left: operand(text)?, operator: "exists".to_owned(), right: Operand::Nothing })
}

fn find_outside_quotes(text: &str, wanted: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, _) if text[at..].starts_with(wanted) => return Some(at),
            _ => {}
        }
    }
    None
}

fn operand(text: &str) -> Option<Operand> {
    if let Some(path) = text.strip_prefix('@') {
        return Some(Operand::Path(steps(path)?));
    }
    if let Some(text) = quoted(text) {
        return Some(Operand::Literal(Value::from(text)));
    }
    Some(Operand::Literal(match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(i), _) => Value::Int(i),
            (_, Ok(f)) => Value::Float(f),
            _ => return None,
        },
    }))
}

fn walk<'v>(steps: &[Step], root: &'v Value) -> Vec<&'v Value> {
    let mut current = vec![root];
    for step in steps {
        let mut next = Vec::new();
        for value in current {
            apply(step, value, &mut next);
        }
        current = next;
    }
    current
}

fn apply<'v>(step: &Step, value: &'v Value, out: &mut Vec<&'v Value>) {
    match step {
        Step::Field(name) => out.extend(value.get(name)),
        Step::Wildcard => out.extend(children(value)),
        Step::Recursive => {
            let mut waiting = vec![value];
            while let Some(value) = waiting.pop() {
                out.push(value);
                let inner: Vec<&Value> = children(value).collect();
                waiting.extend(inner.into_iter().rev());
            }
        }
        Step::Index(index) => {
            let items = value.as_array().unwrap_or_default();
            let at = if *index < 0 { index + items.len() as i64 } else { *index };
            out.extend(usize::try_from(at).ok().and_then(|at| items.get(at)));
        }
        Step::Slice { start, end, step } => {
            let items = value.as_array().unwrap_or_default();
            let length = items.len() as i64;
            let clamp = |n: i64| if n < 0 { (n + length).max(0) } else { n.min(length) };
            let (start, end) = (clamp(start.unwrap_or(0)), clamp(end.unwrap_or(length)));
            if *step > 0 {
                let range = (start..end).step_by(usize::try_from(*step).unwrap_or(1));
                out.extend(range.filter_map(|at| usize::try_from(at).ok().and_then(|at| items.get(at))));
            }
        }
        Step::Union(paths) => paths.iter().for_each(|path| out.extend(walk(path, value))),
        Step::Filter(filter) => out.extend(children(value).filter(|item| holds(filter, item))),
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn holds(filter: &Filter, item: &Value) -> bool {
    let resolve = |operand: &Operand| match operand {
        Operand::Path(steps) => walk(steps, item).first().map(|v| (*v).clone()),
        Operand::Literal(value) => Some(value.clone()),
        Operand::Nothing => None,
    };
    let left = resolve(&filter.left);
    if filter.operator == "exists" {
        return left.is_some();
    }
    let (Some(left), Some(right)) = (left, resolve(&filter.right)) else { return false };
    let order = match (&left, &right) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (a, b) => match (number(a), number(b)) {
            (Some(a), Some(b)) => a.partial_cmp(&b),
            _ => Some(go::plain(a).cmp(&go::plain(b))),
        },
    };
    let Some(order) = order else { return false };
    match filter.operator.as_str() {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(i) => Some(*i as f64),
        Value::Float(f) => Some(*f),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn paths_lead_to_values() {
        let text = br#"{"a":{"b":[{"t":"x","v":1},{"t":"y","v":2}],"c.d":5},"m":{"k":"v"}}"#;
        let object = json::parse(text).unwrap();
        for (path, wanted) in [
            (".a.b[0].v", vec!["1"]),
            (".a.b[-1].v", vec!["2"]),
            (".a.b[*].t", vec!["\"x\"", "\"y\""]),
            (".a.b[?(@.t==\"y\")].v", vec!["2"]),
            (".a.b[?(@.v>=1)].t", vec!["\"x\"", "\"y\""]),
            (".a.b[0:1].v", vec!["1"]),
            (".a['c.d']", vec![]),
            (".a['c\\.d']", vec!["5"]),
            ("['a']['b'][0].v", vec!["1"]),
            (".a.c\\.d", vec!["5"]),
            (".m.nothing", vec![]),
            ("..v", vec!["1", "2"]),
            (".a.b[0,1].v", vec!["1", "2"]),
        ] {
            let path_ = JsonPath::parse(path).unwrap();
            let got: Vec<String> = path_.find(&object).into_iter().map(json::to_string).collect();
            assert_eq!(got, wanted, "{path}");
        }
        assert_eq!(JsonPath::default().find(&object).len(), 0);
    }

    #[test]
    fn malformed_paths_are_told() {
        for path in [".a[", ".a[?(@.x==)]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
