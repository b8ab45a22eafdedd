//! The difference of two structures, as go-cmp reports it and some messages carry it.
//!
//! Two lines of context around what differs, four entries of what is the same, zero values left out, keys lined up.

use super::types::{SPEC, Shape, Struct};
use crate::check::quantity;
use crate::read::Read;
use object::{Value, go};

/// How many equal entries are shown on each side of what differs.
const CONTEXT: usize = 2;
/// How many entries of something equal are shown.
const SAME: usize = 4;
/// How many entries of something removed or inserted are shown.
const CHANGED: usize = 16;
/// How long a line of something removed or inserted may be.
const MAX_LINE: usize = 80;

/// The difference of two objects of a structure; empty where there is none.
pub(crate) fn diff(kind: &'static Struct, old: &Value, new: &Value) -> String {
    let root = Node::of(Shape::Struct(kind), Some(old), Some(new));
    if root.differing == 0 {
        return String::new();
    }
    let text = report(&root, Mode::Unknown, true).compact(Mode::Unknown).1;
    let mut out = indent(0, Mode::Unknown);
    text.expand(Mode::Unknown, 0, &mut out);
    out.push('\n');
    out
}

/// The difference of two specs of pods. Go keeps what pods share with their host in the security context.
pub(crate) fn pod_spec_diff(old: &Value, new: &Value) -> String {
    diff(&SPEC, &internal(old), &internal(new))
}

fn internal(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for key in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"] {
        if let Some(value) = spec.remove_at(&[key]) {
            spec.set_at(&["securityContext", key], value);
        }
    }
    spec
}

/// What is said of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Unknown,
    Identical,
    Removed,
    Inserted,
}

/// Two values side by side.
struct Node<'v> {
    shape: Shape,
    old: Option<&'v Value>,
    new: Option<&'v Value>,
    kind: Kind,
    /// The parts, with their keys; keys of items are empty.
    parts: Vec<(String, Node<'v>)>,
    differing: usize,
    children: usize,
    depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Leaf,
    Struct,
    Items,
    Entries,
    Pointer,
}

static NULL: Value = Value::Null;

/// Whether Go has nothing but the zero value there.
fn is_zero(shape: Shape, value: &Value) -> bool {
    match shape {
        Shape::Text => value.as_str().unwrap_or_default().is_empty(),
        Shape::Int => value.as_int().unwrap_or(0) == 0,
        Shape::Bool => !value.as_bool().unwrap_or(false),
        Shape::Struct(kind) => kind.fields.iter().all(|(_, key, shape)| is_zero(*shape, value.sub(key))),
        Shape::Pointer(_) | Shape::To(_) => value.is_null(),
        Shape::Names(_) | Shape::List(..) => value.as_array().unwrap_or_default().is_empty(),
        Shape::Labels | Shape::Resources => value.as_object().is_none_or(object::Map::is_empty),
        Shape::Fixed(_) => true,
    }
}

impl<'v> Node<'v> {
    fn of(shape: Shape, old: Option<&'v Value>, new: Option<&'v Value>) -> Self {
        let mut node =
            Node { shape, old, new, kind: Kind::Leaf, parts: Vec::new(), differing: 0, children: 0, depth: 0 };
        let (Some(old), Some(new)) = (old, new) else {
            node.differing = 1;
            return node;
        };
        match shape {
            Shape::Struct(kind) => {
                node.kind = Kind::Struct;
                for (name, key, shape) in kind.fields {
                    let (old, new) = (old.sub(key), new.sub(key));
                    node.parts.push(((*name).to_owned(), Node::of(*shape, Some(old), Some(new))));
                }
            }
            Shape::Pointer(_) | Shape::To(_) if !old.is_null() && !new.is_null() => {
                node.kind = Kind::Pointer;
                node.parts.push((String::new(), Node::of(shape.target(old), Some(old), Some(new))));
            }
            Shape::Names(_) | Shape::List(..) if !is_zero(shape, old) && !is_zero(shape, new) => {
                node.kind = Kind::Items;
                let (old, new) = (old.as_array().unwrap_or_default(), new.as_array().unwrap_or_default());
                let item = shape.item();
                node.parts = align(old, new).map(|(a, b)| (String::new(), Node::of(item, a, b))).collect();
            }
            Shape::Labels | Shape::Resources if !is_zero(shape, old) && !is_zero(shape, new) => {
                node.kind = Kind::Entries;
                let keys = |v: &'v Value| v.as_object().into_iter().flat_map(object::Map::keys);
                let mut all: Vec<&str> = keys(old).chain(keys(new)).collect();
                all.sort_unstable();
                all.dedup();
                let item = Shape::Text;
                node.parts = all.into_iter().map(|k| (go::quote(k), Node::of(item, old.get(k), new.get(k)))).collect();
            }
            _ => node.differing = usize::from(!same(shape, old, new)),
        }
        node.differing += node.parts.iter().map(|(_, part)| part.differing).sum::<usize>();
        node.children = node.parts.iter().map(|(_, part)| part.children + 1).sum();
        node.depth = node.parts.iter().map(|(_, part)| part.depth + 1).max().unwrap_or(0);
        node
    }

    /// The value that is shown.
    fn shown(&self, mode: Mode) -> &'v Value {
        let value = if mode == Mode::Inserted { self.new } else { self.old };
        value.unwrap_or(&NULL)
    }
}

fn same(shape: Shape, old: &Value, new: &Value) -> bool {
    old == new || is_zero(shape, old) && is_zero(shape, new)
}

/// Items that stand for each other: equal ones from both ends, then one after the other.
fn align<'v>(old: &'v [Value], new: &'v [Value]) -> impl Iterator<Item = (Option<&'v Value>, Option<&'v Value>)> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (old_middle, new_middle) = (old.len() - start - end, new.len() - start - end);
    let middle = (0..old_middle.max(new_middle)).map(move |i| {
        let at = |list: &'v [Value], count: usize| if i < count { list.get(start + i) } else { None };
        (at(old, old_middle), at(new, new_middle))
    });
    let head = (0..start).map(|i| (old.get(i), new.get(i)));
    let tail = (0..end).map(move |i| (old.get(old.len() - end + i), new.get(new.len() - end + i)));
    head.chain(middle).chain(tail)
}

/// A text that is laid out at the end.
#[derive(Clone)]
enum Text {
    Line(String),
    Wrap(String, Box<Text>, &'static str),
    List(Vec<Record>),
}

#[derive(Clone)]
struct Record {
    mode: Mode,
    key: String,
    value: Text,
    comment: String,
    comma: bool,
}

impl Record {
    fn new(mode: Mode, key: &str, value: Text) -> Self {
        Record { mode, key: key.to_owned(), value, comment: String::new(), comma: true }
    }

    fn ellipsis(comment: String) -> Self {
        Record { comment, comma: false, ..Record::new(Mode::Unknown, "", Text::Line("...".to_owned())) }
    }
}

fn line(text: impl Into<String>) -> Text {
    Text::Line(text.into())
}

fn braces(list: Vec<Record>) -> Text {
    Text::Wrap("{".to_owned(), Box::new(Text::List(list)), "}")
}

/// Puts a type before a structure, list or map.
fn typed(name: String, text: Text) -> Text {
    match text {
        Text::Wrap(prefix, value, suffix) => Text::Wrap(format!("{name}{prefix}"), value, suffix),
        other => other,
    }
}

/// What is told of a node; `named` is whether its type is.
fn report(node: &Node<'_>, mode: Mode, named: bool) -> Text {
    let name = |text: Text| match (node.shape.composite(), mode) {
        (Some(name), Mode::Unknown | Mode::Removed | Mode::Inserted) if named => typed(name, text),
        _ => text,
    };
    match node.kind {
        Kind::Leaf if node.differing > 0 && mode == Mode::Unknown => {
            let side = |mode, value: Option<&Value>| {
                Some(Record::new(mode, "", value_text(node.shape, value?, CHANGED, false)))
            };
            let sides = [side(Mode::Removed, node.old), side(Mode::Inserted, node.new)];
            Text::List(sides.into_iter().flatten().collect())
        }
        Kind::Leaf => {
            let limit = if mode == Mode::Identical { SAME } else { CHANGED };
            value_text(node.shape, node.shown(mode), limit, named && mode != Mode::Identical)
        }
        Kind::Pointer => match node.parts.first() {
            Some((_, target)) => Text::Wrap("&".to_owned(), Box::new(report(target, mode, named)), ""),
            None => line("nil"),
        },
        _ if mode == Mode::Unknown => name(braces(differences(node))),
        _ => name(braces(listed(node, mode))),
    }
}

/// All parts of what is the same, removed or inserted, as far as there is room.
fn listed(node: &Node<'_>, mode: Mode) -> Vec<Record> {
    let room = if mode == Mode::Identical { SAME } else { CHANGED };
    let fields = node.kind == Kind::Struct;
    let mut out = Vec::new();
    for (key, part) in &node.parts {
        let value = part.shown(mode);
        if fields && is_zero(part.shape, value) {
            continue;
        }
        if out.len() == room {
            out.push(Record::ellipsis(String::new()));
            break;
        }
        out.push(Record::new(Mode::Unknown, key, report(part, mode, fields)));
    }
    out
}

/// What differs, with a little of what does not.
fn differences(node: &Node<'_>) -> Vec<Record> {
    let fields = node.kind == Kind::Struct;
    let what = match node.kind {
        Kind::Struct => ("field", "fields"),
        Kind::Entries => ("entry", "entries"),
        _ => ("element", "elements"),
    };
    let mut out = Vec::new();
    let mut rest = node.parts.as_slice();
    let whole = rest.len();
    while let Some((_, first)) = rest.first() {
        let equal = first.differing == 0;
        let count = rest.iter().take_while(|(_, part)| (part.differing == 0) == equal).count();
        let (group, later) = rest.split_at(count);
        if equal {
            let (is_first, is_last) = (rest.len() == whole, later.is_empty());
            let mut low = if is_first { 0 } else { CONTEXT.min(count) };
            let mut high = if is_last { 0 } else { CONTEXT.min(count - low) };
            if count - (low + high) == 1 {
                high += 1;
            }
            low = low.min(count);
            let same = |(key, part): &(String, Node<'_>)| {
                Record::new(Mode::Unknown, key, report(part, Mode::Identical, fields))
            };
            out.extend(group.iter().take(low).map(same));
            let hidden = count - low - high;
            if hidden > 0 {
                let noun = if hidden == 1 { what.0 } else { what.1 };
                out.push(Record::ellipsis(format!("{hidden} identical {noun}")));
            }
            out.extend(group.iter().skip(count - high).map(same));
        } else {
            for (key, part) in group {
                // Of lists of strings the items are compared, be there only one.
                let strings = part.kind == Kind::Items && matches!(part.shape, Shape::Names(_));
                if part.children != part.depth || strings {
                    out.push(Record::new(Mode::Unknown, key, report(part, Mode::Unknown, fields)));
                    continue;
                }
                for (mode, there) in [(Mode::Removed, part.old), (Mode::Inserted, part.new)] {
                    if there.is_some() {
                        out.push(Record::new(mode, key, report(part, mode, fields)));
                    }
                }
            }
        }
        rest = later;
    }
    out
}

/// A value by itself.
fn value_text(shape: Shape, value: &Value, room: usize, named: bool) -> Text {
    let name = |text: Text| match shape.composite() {
        Some(name) if named => typed(name, text),
        _ => text,
    };
    let limited = |mut records: Vec<Record>| {
        if records.len() > room {
            records.truncate(room);
            records.push(Record::ellipsis(String::new()));
        }
        braces(records)
    };
    let smaller = room / 2;
    match shape {
        Shape::Text => line(go_string(value.as_str().unwrap_or_default())),
        Shape::Int => line(value.as_int().unwrap_or(0).to_string()),
        Shape::Bool => line(value.as_bool().unwrap_or(false).to_string()),
        Shape::Fixed(text) => line(text),
        _ if !matches!(shape, Shape::Struct(_)) && is_zero(shape, value) => line("nil"),
        Shape::Pointer(_) | Shape::To(_) => {
            Text::Wrap("&".to_owned(), Box::new(value_text(shape.target(value), value, room, named)), "")
        }
        Shape::Struct(kind) => {
            let fields = kind.fields.iter().map(|(name, key, shape)| (*name, *shape, value.sub(key)));
            let set = fields.filter(|(_, shape, value)| !is_zero(*shape, value));
            let records = set
                .map(|(name, shape, value)| Record::new(Mode::Unknown, name, value_text(shape, value, smaller, named)));
            name(limited(records.collect()))
        }
        Shape::Names(_) | Shape::List(..) => {
            let items = value.as_array().unwrap_or_default().iter();
            let item = shape.item();
            let records = items.map(|v| Record::new(Mode::Unknown, "", value_text(item, v, smaller, false)));
            name(limited(records.collect()))
        }
        Shape::Labels | Shape::Resources => {
            let entries = value.as_object().into_iter().flat_map(object::Map::iter);
            let records = entries.map(|(key, v)| {
                let text = match quantity(v).filter(|_| matches!(shape, Shape::Resources)) {
                    Some(quantity) => line(quantity.go_syntax_with_text().trim_start_matches("resource.Quantity")),
                    None => line(go_string(v.as_str().unwrap_or_default())),
                };
                Record::new(Mode::Unknown, &go::quote(key), text)
            });
            name(limited(records.collect()))
        }
    }
}

/// A string in quotes, in back quotes where that needs no escapes.
fn go_string(text: &str) -> String {
    let quoted = go::quote(text);
    let plain = !text.contains('`') && text.chars().all(|c| c == '\t' || go::is_print(c));
    if quoted.len() > text.len() + 2 && plain { format!("`{text}`") } else { quoted }
}

/// The start of a line. Spaces are such that nobody takes the text for an interface.
fn indent(level: usize, mode: Mode) -> String {
    let sign = match mode {
        Mode::Removed => '-',
        Mode::Inserted => '+',
        _ => '\u{a0}',
    };
    format!("{sign}\u{a0}{}", "\t".repeat(level))
}

impl Text {
    /// On one line where that can be, with the length that the line has or would have.
    fn compact(self, mode: Mode) -> (usize, Text) {
        match self {
            Text::Line(text) => (text.len(), Text::Line(text)),
            Text::Wrap(prefix, value, suffix) => {
                let (length, value) = value.compact(mode);
                let length = length + prefix.len() + suffix.len();
                match value {
                    Text::Line(text) => (length, Text::Line(format!("{prefix}{text}{suffix}"))),
                    value => (length, Text::Wrap(prefix, Box::new(value), suffix)),
                }
            }
            Text::List(records) => {
                let (mut lines, mut length) = (Vec::new(), 0);
                let mut one = true;
                let mut out = Vec::with_capacity(records.len());
                for record in records {
                    let own = if record.mode == Mode::Unknown { mode } else { record.mode };
                    let (_, value) = record.value.compact(own);
                    one &= record.mode == Mode::Unknown && record.comment.is_empty();
                    let key = if record.key.is_empty() { String::new() } else { format!("{}: ", record.key) };
                    match &value {
                        Text::Line(text) => lines.push(format!("{key}{text}")),
                        _ => one = false,
                    }
                    out.push(Record { value, ..record });
                }
                let joined = lines.join(", ");
                length += joined.len();
                one &= !(matches!(mode, Mode::Removed | Mode::Inserted) && length > MAX_LINE);
                if one { (length, Text::Line(joined)) } else { (length, Text::List(out)) }
            }
        }
    }

    /// Over several lines where it has to be.
    fn expand(&self, mode: Mode, level: usize, out: &mut String) {
        match self {
            Text::Line(text) => out.push_str(text),
            Text::Wrap(prefix, value, suffix) => {
                out.push_str(prefix);
                value.expand(mode, level, out);
                out.push_str(suffix);
            }
            Text::List(records) => expand_list(records, mode, level, out),
        }
    }
}

fn expand_list(records: &[Record], mode: Mode, level: usize, out: &mut String) {
    let simple = |r: &Record| {
        r.mode == Mode::Unknown && r.key.is_empty() && matches!(r.value, Text::Line(_)) && r.comment.is_empty()
    };
    if !records.is_empty() && records.iter().all(simple) {
        let mut batch = String::new();
        let mut emit = |batch: &mut String| {
            if !batch.is_empty() {
                out.push('\n');
                out.push_str(&indent(level + 1, mode));
                out.push_str(batch.trim_end_matches(' '));
                batch.clear();
            }
        };
        for record in records {
            let Text::Line(text) = &record.value else { continue };
            if batch.len() + text.len() + 2 > MAX_LINE {
                emit(&mut batch);
            }
            batch.push_str(text);
            batch.push_str(", ");
        }
        emit(&mut batch);
    } else {
        for (record, pad) in records.iter().zip(padding(records)) {
            let own = if record.mode == Mode::Unknown { mode } else { record.mode };
            out.push('\n');
            out.push_str(&indent(level + 1, own));
            if !record.key.is_empty() {
                out.push_str(&record.key);
                out.push_str(": ");
            }
            out.push_str(&" ".repeat(pad));
            record.value.expand(own, level + 1, out);
            if record.comma {
                out.push(',');
            }
            if !record.comment.is_empty() {
                out.push_str(" // ");
                out.push_str(&record.comment);
            }
        }
    }
    out.push('\n');
    out.push_str(&indent(level, mode));
}

/// How many spaces follow each key, so that the values of neighbouring lines begin below each other.
fn padding(records: &[Record]) -> Vec<usize> {
    let width = |r: &Record| r.key.chars().count();
    let aligned = |r: &Record| !r.key.is_empty() && matches!(r.value, Text::Line(_));
    let mut out = vec![0; records.len()];
    let mut start = 0;
    while start < records.len() {
        let run = records.get(start..).unwrap_or_default().iter().take_while(|r| aligned(r)).count();
        let group = records.get(start..start + run).unwrap_or_default();
        let widest = group.iter().map(width).max().unwrap_or(0);
        for (pad, record) in out.iter_mut().skip(start).zip(group) {
            *pad = widest - width(record);
        }
        start += run.max(1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::types::{CLAIM, SPEC, VOLUME_SOURCE};
    use super::*;
    use object::json;

    fn shown(kind: &'static Struct, old: &str, new: &str) -> String {
        let value = |text: &str| json::parse(text.as_bytes()).unwrap();
        diff(kind, &value(old), &value(new)).replace('\u{a0}', "_")
    }

    #[test]
    fn a_source_of_a_volume() {
        let text =
            shown(&VOLUME_SOURCE, r#"{"hostPath":{"path":"/x","type":""}}"#, r#"{"hostPath":{"path":"/y","type":""}}"#);
        let wanted = "__core.PersistentVolumeSource{\n__\tGCEPersistentDisk:    nil,\n__\tAWSElasticBlockStore: nil,\n__\tHostPath: &core.HostPathVolumeSource{\n-_\t\tPath: \"/x\",\n+_\t\tPath: \"/y\",\n__\t\tType: &\"\",\n__\t},\n__\tGlusterfs: nil,\n__\tNFS:       nil,\n__\t... // 17 identical fields\n__}\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_command_of_a_pod() {
        let pod =
            |more: &str| format!(r#"{{"containers":[{{"name":"c","image":"img:2"{more}}}],"restartPolicy":"Always"}}"#);
        let text = shown(&SPEC, &pod(""), &pod(r#","command":["x"]"#));
        let wanted = "__core.PodSpec{\n__\tVolumes:        nil,\n__\tInitContainers: nil,\n__\tContainers: []core.Container{\n__\t\t{\n__\t\t\tName:       \"c\",\n__\t\t\tImage:      \"img:2\",\n-_\t\t\tCommand:    nil,\n+_\t\t\tCommand:    []string{\"x\"},\n__\t\t\tArgs:       nil,\n__\t\t\tWorkingDir: \"\",\n__\t\t\t... // 19 identical fields\n__\t\t},\n__\t},\n__\tEphemeralContainers: nil,\n__\tRestartPolicy:       \"Always\",\n__\t... // 29 identical fields\n__}\n";
        assert_eq!(text, wanted);
        assert_eq!(shown(&SPEC, &pod(""), &pod("")), "");
    }

    #[test]
    fn items_of_lists_and_what_pods_share_with_their_host() {
        let value = |text: &str| json::parse(text.as_bytes()).unwrap();
        let text = shown(
            &SPEC,
            r#"{"containers":[{"name":"c","args":["a"]}]}"#,
            r#"{"containers":[{"name":"c","args":["b"]}]}"#,
        );
        assert!(text.contains("__\t\t\tArgs: []string{\n-_\t\t\t\t\"a\",\n+_\t\t\t\t\"b\",\n__\t\t\t},"), "{text}");
        let text =
            pod_spec_diff(&value(r#"{"securityContext":{}}"#), &value(r#"{"hostPID":true,"securityContext":{}}"#));
        let text = text.replace('\u{a0}', "_");
        assert!(
            text.contains("SecurityContext: &core.PodSecurityContext{\n__\t\tHostNetwork:           false,\n"),
            "{text}"
        );
        assert!(text.contains("-_\t\tHostPID:               false,\n+_\t\tHostPID:               true,\n"), "{text}");
    }

    #[test]
    fn pointers_and_what_is_added() {
        let text = shown(&CLAIM, r#"{"storageClassName":"a"}"#, r#"{"storageClassName":"b","volumeName":"v"}"#);
        assert!(text.contains("-_\tVolumeName:       \"\",\n+_\tVolumeName:       \"v\",\n"), "{text}");
        assert!(text.contains("-_\tStorageClassName: &\"a\",\n+_\tStorageClassName: &\"b\",\n"), "{text}");
    }
}
