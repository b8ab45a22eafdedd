//! Values as templates see them.
//!
//! What comes from the caller is read in place. What functions make lives in a [`Heap`] for the length of one rendering:
//! dictionaries are changed in place by `set` and may hold themselves, and nothing of that needs to be freed piece by piece.

use compact_str::CompactString;
use object::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// How deep lists and dictionaries may nest where a function walks over them.
pub(crate) const MAX_NESTING: usize = 200;

pub(crate) type Result<T> = std::result::Result<T, String>;

#[derive(Clone, Debug)]
pub(crate) enum Val<'a> {
    Nil,
    Bool(bool),
    Int(i64, IntType),
    Float(f64),
    /// Real and imaginary part.
    Complex(f64, f64),
    Str(Str<'a>),
    List(List<'a>),
    Map(Dict<'a>),
    /// What has a Go type of its own.
    Special(Rc<Special>),
}

/// Which of Go's integer types a number has. Values are kept as `int64` whatever the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntType {
    Int,
    Int64,
    Uint8,
    Uint64,
}

/// A string of Go: bytes, nearly always UTF-8.
#[derive(Clone, Debug)]
pub(crate) enum Str<'a> {
    Data(&'a str),
    Own(Rc<str>),
    /// Not UTF-8.
    Bytes(Rc<[u8]>),
}

/// A list: the caller's, or one in the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List<'a> {
    Data(&'a [Value]),
    Own(u32),
}

/// A dictionary: the caller's, or one in the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dict<'a> {
    Data(&'a Map),
    Own(u32),
}

/// The Go type of a list's items or a dictionary's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elem {
    Any,
    Str,
    Int,
}

/// Values with a Go type of their own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Special {
    /// `time.Time`
    Time(jiff::ZonedDateTime),
    /// `time.Duration`, in nanoseconds.
    Duration(i64),
    /// `*semver.Version`
    Version(crate::funcs::semver::Version),
    /// A struct with these fields, in order, and its type's name.
    Struct(&'static str, Vec<(&'static str, String)>),
}

impl<'a> Str<'a> {
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Str::Data(s) => Cow::Borrowed(s),
            Str::Own(s) => Cow::Borrowed(s),
            Str::Bytes(b) => String::from_utf8_lossy(b),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Str::Data(s) => s.as_bytes(),
            Str::Own(s) => s.as_bytes(),
            Str::Bytes(b) => b,
        }
    }

    pub fn from_bytes(bytes: &[u8]) -> Str<'a> {
        match std::str::from_utf8(bytes) {
            Ok(s) => Str::Own(s.into()),
            Err(_) => Str::Bytes(bytes.into()),
        }
    }
}

impl<'a> Val<'a> {
    pub fn str(s: impl Into<Rc<str>>) -> Val<'a> {
        Val::Str(Str::Own(s.into()))
    }

    pub fn int(i: i64) -> Val<'a> {
        Val::Int(i, IntType::Int)
    }

    pub fn int64(i: i64) -> Val<'a> {
        Val::Int(i, IntType::Int64)
    }

    pub fn special(special: Special) -> Val<'a> {
        Val::Special(Rc::new(special))
    }

    /// The value as it stands in the caller's data.
    pub fn data(value: &'a Value) -> Val<'a> {
        match value {
            Value::Null => Val::Nil,
            Value::Bool(b) => Val::Bool(*b),
            Value::Int(i) => Val::int64(*i),
            Value::Float(f) => Val::Float(*f),
            Value::String(s) => Val::Str(Str::Data(s)),
            Value::Array(items) => Val::List(List::Data(items)),
            Value::Object(members) => Val::Map(Dict::Data(members)),
        }
    }

    pub fn is_nil(&self) -> bool {
        matches!(self, Val::Nil)
    }

    /// The kind of Go's reflection.
    pub fn kind(&self) -> &'static str {
        match self {
            Val::Nil => "invalid",
            Val::Bool(_) => "bool",
            Val::Int(_, t) => t.name(),
            Val::Float(_) => "float64",
            Val::Complex(..) => "complex128",
            Val::Str(_) => "string",
            Val::List(_) => "slice",
            Val::Map(_) => "map",
            Val::Special(s) => match &**s {
                Special::Time(_) | Special::Struct(..) => "struct",
                Special::Duration(_) => "int64",
                Special::Version(_) => "ptr",
            },
        }
    }
}

impl IntType {
    pub fn name(self) -> &'static str {
        match self {
            IntType::Int => "int",
            IntType::Int64 => "int64",
            IntType::Uint8 => "uint8",
            IntType::Uint64 => "uint64",
        }
    }

    pub fn is_unsigned(self) -> bool {
        matches!(self, IntType::Uint8 | IntType::Uint64)
    }
}

struct OwnList<'a> {
    elem: Elem,
    items: Vec<Val<'a>>,
}

struct OwnDict<'a> {
    elem: Elem,
    members: BTreeMap<CompactString, Val<'a>>,
}

/// What one rendering made, and what it may still make.
pub(crate) struct Heap<'a> {
    lists: Vec<OwnList<'a>>,
    dicts: Vec<OwnDict<'a>>,
    /// The caller's maps that `set` changed, by address.
    changed: HashMap<usize, u32>,
    /// Bytes that may still be made.
    budget: usize,
}

impl<'a> Heap<'a> {
    pub fn new(budget: usize) -> Self {
        Heap { lists: Vec::new(), dicts: Vec::new(), changed: HashMap::new(), budget }
    }

    /// Pays for `bytes` that are about to be made.
    pub fn charge(&mut self, bytes: usize) -> Result<()> {
        match self.budget.checked_sub(bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => {
                self.budget = 0;
                Err("the template makes too many or too large values".to_owned())
            }
        }
    }

    pub fn string(&mut self, s: impl Into<Rc<str>>) -> Result<Val<'a>> {
        let s = s.into();
        self.charge(s.len())?;
        Ok(Val::Str(Str::Own(s)))
    }

    pub fn list(&mut self, items: Vec<Val<'a>>) -> Result<Val<'a>> {
        self.list_of(Elem::Any, items)
    }

    pub fn list_of(&mut self, elem: Elem, items: Vec<Val<'a>>) -> Result<Val<'a>> {
        self.charge(items.len().saturating_mul(size_of::<Val>()).saturating_add(64))?;
        self.lists.push(OwnList { elem, items });
        Ok(Val::List(List::Own((self.lists.len() - 1) as u32)))
    }

    pub fn strings<S: Into<Rc<str>>>(&mut self, items: impl IntoIterator<Item = S>) -> Result<Val<'a>> {
        let items: Vec<Val<'a>> = items.into_iter().map(Val::str).collect();
        let bytes = items.iter().map(|i| if let Val::Str(s) = i { s.bytes().len() } else { 0 }).sum();
        self.charge(bytes)?;
        self.list_of(Elem::Str, items)
    }

    pub fn dict(&mut self, members: BTreeMap<CompactString, Val<'a>>) -> Result<Val<'a>> {
        self.dict_of(Elem::Any, members)
    }

    pub fn dict_of(&mut self, elem: Elem, members: BTreeMap<CompactString, Val<'a>>) -> Result<Val<'a>> {
        self.new_dict(elem, members).map(Val::Map)
    }

    fn new_dict(&mut self, elem: Elem, members: BTreeMap<CompactString, Val<'a>>) -> Result<Dict<'a>> {
        let keys: usize = members.keys().map(|k| k.len()).sum();
        self.charge((members.len() * 64).saturating_add(keys).saturating_add(64))?;
        self.dicts.push(OwnDict { elem, members });
        Ok(Dict::Own((self.dicts.len() - 1) as u32))
    }

    /// A value that someone else made, e.g. a parser.
    pub fn adopt(&mut self, value: Value) -> Result<Val<'a>> {
        Ok(match value {
            Value::Null => Val::Nil,
            Value::Bool(b) => Val::Bool(b),
            Value::Int(i) => Val::int64(i),
            Value::Float(f) => Val::Float(f),
            Value::String(s) => return self.string(s.as_str()),
            Value::Array(items) => {
                let items = items.into_iter().map(|i| self.adopt(i)).collect::<Result<_>>()?;
                return self.list(items);
            }
            Value::Object(members) => {
                let members =
                    members.into_iter().map(|(k, v)| Ok((k, self.adopt(v)?))).collect::<Result<BTreeMap<_, _>>>()?;
                return self.dict(members);
            }
        })
    }

    pub fn len(&self, list: List<'a>) -> usize {
        match list {
            List::Data(items) => items.len(),
            List::Own(i) => self.lists.get(i as usize).map_or(0, |l| l.items.len()),
        }
    }

    pub fn item(&self, list: List<'a>, index: usize) -> Option<Val<'a>> {
        match list {
            List::Data(items) => items.get(index).map(Val::data),
            List::Own(i) => self.lists.get(i as usize)?.items.get(index).cloned(),
        }
    }

    pub fn items(&self, list: List<'a>) -> Vec<Val<'a>> {
        match list {
            List::Data(items) => items.iter().map(Val::data).collect(),
            List::Own(i) => self.lists.get(i as usize).map(|l| l.items.clone()).unwrap_or_default(),
        }
    }

    pub fn list_elem(&self, list: List<'a>) -> Elem {
        match list {
            List::Data(_) => Elem::Any,
            List::Own(i) => self.lists.get(i as usize).map_or(Elem::Any, |l| l.elem),
        }
    }

    /// The dictionary as it is now: the caller's, or what `set` made of it.
    fn current(&self, dict: Dict<'a>) -> Dict<'a> {
        match dict {
            Dict::Data(m) if !self.changed.is_empty() => self.changed.get(&address(m)).map_or(dict, |i| Dict::Own(*i)),
            _ => dict,
        }
    }

    fn own(&self, i: u32) -> Option<&OwnDict<'a>> {
        self.dicts.get(i as usize)
    }

    pub fn get(&self, dict: Dict<'a>, key: &str) -> Option<Val<'a>> {
        match self.current(dict) {
            Dict::Data(m) => m.get(key).map(Val::data),
            Dict::Own(i) => self.own(i)?.members.get(key).cloned(),
        }
    }

    pub fn dict_len(&self, dict: Dict<'a>) -> usize {
        match self.current(dict) {
            Dict::Data(m) => m.len(),
            Dict::Own(i) => self.own(i).map_or(0, |d| d.members.len()),
        }
    }

    /// The members in the order of their keys.
    pub fn members(&self, dict: Dict<'a>) -> Vec<(CompactString, Val<'a>)> {
        match self.current(dict) {
            Dict::Data(m) => m.iter().map(|(k, v)| (k.into(), Val::data(v))).collect(),
            Dict::Own(i) => {
                self.own(i).map(|d| d.members.iter().map(|(k, v)| (k.clone(), v.clone())).collect()).unwrap_or_default()
            }
        }
    }

    pub fn dict_elem(&self, dict: Dict<'a>) -> Elem {
        match dict {
            Dict::Data(_) => Elem::Any,
            Dict::Own(i) => self.own(i).map_or(Elem::Any, |d| d.elem),
        }
    }

    /// Changes a dictionary where it is; whoever holds it sees the change.
    pub fn change(&mut self, dict: Dict<'a>) -> Result<&mut BTreeMap<CompactString, Val<'a>>> {
        self.charge(64)?;
        let index = match self.current(dict) {
            Dict::Own(i) => i,
            Dict::Data(m) => {
                let members = m.iter().map(|(k, v)| (k.into(), Val::data(v))).collect();
                let Dict::Own(i) = self.new_dict(Elem::Any, members)? else { return Err(GONE.to_owned()) };
                self.changed.insert(address(m), i);
                i
            }
        };
        self.dicts.get_mut(index as usize).map(|d| &mut d.members).ok_or_else(|| GONE.to_owned())
    }

    /// Whether two dictionaries are one.
    pub fn same(&self, a: Dict<'a>, b: Dict<'a>) -> bool {
        match (self.current(a), self.current(b)) {
            (Dict::Data(a), Dict::Data(b)) => address(a) == address(b),
            (Dict::Own(a), Dict::Own(b)) => a == b,
            _ => false,
        }
    }

    /// The value as a plain one. What JSON has no form for becomes what Go's encoder makes of it.
    pub fn export(&mut self, val: &Val<'a>) -> Result<Value> {
        self.export_at(val, 0)
    }

    fn export_at(&mut self, val: &Val<'a>, depth: usize) -> Result<Value> {
        if depth > MAX_NESTING {
            return Err(TOO_DEEP.to_owned());
        }
        Ok(match val {
            Val::Nil => Value::Null,
            Val::Bool(b) => Value::Bool(*b),
            Val::Int(i, _) => Value::Int(*i),
            Val::Float(f) => Value::Float(*f),
            Val::Complex(..) => return Err("json: unsupported type: complex128".to_owned()),
            Val::Str(s) => {
                self.charge(s.bytes().len())?;
                Value::from(&*s.text())
            }
            Val::List(List::Data(items)) if self.changed.is_empty() => {
                self.charge(items.len() * 64)?;
                Value::Array(items.to_vec())
            }
            Val::List(list) => {
                self.charge(self.len(*list) * 64)?;
                let items = self.items(*list);
                Value::Array(items.iter().map(|i| self.export_at(i, depth + 1)).collect::<Result<_>>()?)
            }
            Val::Map(Dict::Data(members)) if self.changed.is_empty() => {
                self.charge(members.len() * 64)?;
                Value::Object((*members).clone())
            }
            Val::Map(dict) => {
                self.charge(self.dict_len(*dict) * 64)?;
                let members = self.members(*dict);
                let members = members
                    .into_iter()
                    .map(|(k, v)| Ok((k, self.export_at(&v, depth + 1)?)))
                    .collect::<Result<Map>>()?;
                Value::Object(members)
            }
            Val::Special(special) => match &**special {
                Special::Time(t) => Value::from(crate::funcs::time::rfc3339_nano(t)),
                Special::Duration(d) => Value::Int(*d),
                Special::Version(v) => Value::from(v.to_string()),
                Special::Struct(_, fields) => {
                    Value::Object(fields.iter().map(|(k, v)| (*k, Value::from(v.as_str()))).collect())
                }
            },
        })
    }

    /// The name of the value's Go type.
    pub fn type_name(&self, val: &Val<'a>) -> &'static str {
        match val {
            Val::Nil => "<nil>",
            Val::Bool(_) | Val::Int(..) | Val::Float(_) | Val::Complex(..) | Val::Str(_) => val.kind(),
            Val::List(l) => match self.list_elem(*l) {
                Elem::Any => "[]interface {}",
                Elem::Str => "[]string",
                Elem::Int => "[]int",
            },
            Val::Map(d) => match self.dict_elem(*d) {
                Elem::Any => "map[string]interface {}",
                Elem::Str => "map[string]string",
                Elem::Int => "map[string]int",
            },
            Val::Special(s) => match &**s {
                Special::Time(_) => "time.Time",
                Special::Duration(_) => "time.Duration",
                Special::Version(_) => "*semver.Version",
                Special::Struct(name, _) => name,
            },
        }
    }

    /// Go's truth: whether it is not the zero of its type.
    pub fn truth(&self, val: &Val<'a>) -> bool {
        match val {
            Val::Nil => false,
            Val::Bool(b) => *b,
            Val::Int(i, _) => *i != 0,
            Val::Float(f) => *f != 0.0,
            Val::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Val::Str(s) => !s.bytes().is_empty(),
            Val::List(l) => self.len(*l) > 0,
            Val::Map(d) => self.dict_len(*d) > 0,
            Val::Special(s) => !matches!(**s, Special::Duration(0)),
        }
    }
}

pub(crate) const TOO_DEEP: &str = "a value is nested too deeply, or holds itself";
const GONE: &str = "no such dictionary";

fn address(map: &Map) -> usize {
    std::ptr::from_ref(map) as usize
}
