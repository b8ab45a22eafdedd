//! The functions that templates call.
//!
//! Each is one entry of a table: name, signature, code. A signature is a letter for each parameter, `*` after the last if
//! there may be any number of it: `s` string, `i` int, `I` int64, `f` float64, `b` bool, `a` anything, `r` anything that a
//! builtin looks at by itself, `m` map[string]interface {}, `l` []interface {}, `S` []string, `d` time.Duration, `c` sprig.certificate.

mod certificates;
mod convert;
mod crypto;
mod dicts;
mod encoding;
mod go;
mod keys;
mod layout;
mod lists;
mod math;
mod passwords;
mod paths;
mod reflect;
mod regex;
mod resources;
pub(crate) mod semver;
mod strings;
pub(crate) mod time;
mod toml;
mod words;

use crate::value::{Elem, Heap, Result, Special, Val};
use crate::world::World;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Which functions a template has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Those of Go's `text/template`.
    Go,
    /// Those of Go, and those of Sprig with conversions from and to YAML and TOML, and what Capsule adds for resources. None
    /// reads the environment, the network or files.
    Sprig,
}

pub(crate) type Run = for<'a> fn(&mut World<'a>, &[Val<'a>]) -> Result<Val<'a>>;

/// Name, signature, code.
pub(crate) type Table = &'static [(&'static str, &'static str, Run)];

struct Entry {
    name: &'static str,
    signature: Signature,
    run: Run,
}

/// A function, cheap to copy.
#[derive(Clone, Copy)]
pub(crate) struct Function(&'static Entry);

/// What a function takes.
pub(crate) struct Signature {
    pub fixed: Vec<Param>,
    /// Any number of these after the fixed ones.
    pub rest: Option<Param>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Param {
    String,
    Int,
    Int64,
    Float,
    Bool,
    Any,
    Reflect,
    Map,
    List,
    Strings,
    Duration,
    Certificate,
}

impl Param {
    fn of(letter: char) -> Param {
        match letter {
            's' => Param::String,
            'i' => Param::Int,
            'I' => Param::Int64,
            'f' => Param::Float,
            'b' => Param::Bool,
            'r' => Param::Reflect,
            'm' => Param::Map,
            'l' => Param::List,
            'S' => Param::Strings,
            'd' => Param::Duration,
            'c' => Param::Certificate,
            _ => Param::Any,
        }
    }

    /// The name of the Go type.
    pub fn name(self) -> &'static str {
        match self {
            Param::String => "string",
            Param::Int => "int",
            Param::Int64 => "int64",
            Param::Float => "float64",
            Param::Bool => "bool",
            Param::Any => "interface {}",
            Param::Reflect => "reflect.Value",
            Param::Map => "map[string]interface {}",
            Param::List => "[]interface {}",
            Param::Strings => "[]string",
            Param::Duration => "time.Duration",
            Param::Certificate => certificates::TYPE,
        }
    }

    pub fn can_be_nil(self) -> bool {
        matches!(self, Param::Any | Param::Reflect | Param::Map | Param::List | Param::Strings)
    }

    /// Whether a value of this Go type can be assigned.
    pub fn takes<'a>(self, heap: &Heap<'a>, val: &Val<'a>) -> bool {
        match self {
            Param::Any | Param::Reflect => true,
            _ => heap.type_name(val) == self.name(),
        }
    }
}

impl Signature {
    fn of(text: &str) -> Signature {
        let mut fixed: Vec<Param> = text.chars().filter(|c| *c != '*').map(Param::of).collect();
        let rest = if text.ends_with('*') { fixed.pop() } else { None };
        Signature { fixed, rest }
    }
}

impl Function {
    pub fn signature(self) -> &'static Signature {
        &self.0.signature
    }

    pub fn is(self, name: &str) -> bool {
        self.0.name == name
    }

    pub fn run<'a>(self, world: &mut World<'a>, args: &[Val<'a>]) -> Result<Val<'a>> {
        (self.0.run)(world, args)
    }
}

type Index = HashMap<&'static str, Entry>;

fn index(tables: &[Table]) -> Index {
    let entries = tables.iter().flat_map(|t| t.iter());
    entries
        .map(|(name, signature, run)| (*name, Entry { name, signature: Signature::of(signature), run: *run }))
        .collect()
}

static GO: LazyLock<Index> = LazyLock::new(|| index(&[go::TABLE]));

static SPRIG: LazyLock<Index> = LazyLock::new(|| {
    // Of functions with one name the last one counts: Sprig's `slice` takes the place of Go's.
    index(&[
        go::TABLE,
        certificates::TABLE,
        convert::TABLE,
        crypto::TABLE,
        dicts::TABLE,
        encoding::TABLE,
        lists::TABLE,
        math::TABLE,
        passwords::TABLE,
        paths::TABLE,
        reflect::TABLE,
        regex::TABLE,
        resources::TABLE,
        semver::TABLE,
        strings::TABLE,
        time::TABLE,
        toml::TABLE,
        words::TABLE,
    ])
});

static TIME_METHODS: LazyLock<Index> = LazyLock::new(|| index(&[time::TIME_METHODS]));
static DURATION_METHODS: LazyLock<Index> = LazyLock::new(|| index(&[time::DURATION_METHODS]));
static VERSION_METHODS: LazyLock<Index> = LazyLock::new(|| index(&[semver::METHODS]));

impl Set {
    pub(crate) fn find(self, name: &str) -> Option<Function> {
        match self {
            Set::Go => GO.get(name),
            Set::Sprig => SPRIG.get(name),
        }
        .map(Function)
    }

    pub(crate) fn has(self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The names of the functions, sorted.
    pub fn names(self) -> Vec<&'static str> {
        let index = match self {
            Set::Go => &GO,
            Set::Sprig => &SPRIG,
        };
        let mut names: Vec<_> = index.keys().copied().collect();
        names.sort_unstable();
        names
    }
}

/// The method `name` of a value; it takes the value as its first argument, which its signature does not count.
pub(crate) fn method(special: &Special, name: &str) -> Option<Function> {
    match special {
        Special::Time(_) => TIME_METHODS.get(name),
        Special::Duration(_) => DURATION_METHODS.get(name),
        Special::Version(_) => VERSION_METHODS.get(name),
        Special::Struct(..) => None,
    }
    .map(Function)
}

/// The argument as text; nothing where it is no string.
pub(crate) fn text<'v>(args: &'v [Val<'_>], i: usize) -> std::borrow::Cow<'v, str> {
    match args.get(i) {
        Some(Val::Str(s)) => s.text(),
        _ => "".into(),
    }
}

/// The argument as an integer, 0 where it is none.
pub(crate) fn int(args: &[Val<'_>], i: usize) -> i64 {
    match args.get(i) {
        Some(Val::Int(i, _)) => *i,
        _ => 0,
    }
}

/// The argument, nil where it is missing.
pub(crate) fn arg<'a>(args: &[Val<'a>], i: usize) -> Val<'a> {
    args.get(i).cloned().unwrap_or(Val::Nil)
}

/// Sprig's `strval`: a string as it is, anything else as `%v` prints it.
pub(crate) fn strval<'a>(heap: &Heap<'a>, val: &Val<'a>) -> Result<String> {
    match val {
        Val::Str(s) => Ok(s.text().into_owned()),
        _ => crate::print::plain(heap, val),
    }
}

/// Sprig's `strslice`: the items of a list as strings without nils; anything else is a list of itself.
pub(crate) fn strslice<'a>(heap: &Heap<'a>, val: &Val<'a>) -> Result<Vec<String>> {
    match val {
        Val::Nil => Ok(Vec::new()),
        Val::List(list) => {
            let any = heap.list_elem(*list) == Elem::Any;
            heap.items(*list).iter().filter(|v| !any || !v.is_nil()).map(|v| strval(heap, v)).collect()
        }
        _ => Ok(vec![strval(heap, val)?]),
    }
}

/// Sprig's `empty`.
pub(crate) fn empty<'a>(heap: &Heap<'a>, val: &Val<'a>) -> bool {
    match val {
        Val::Special(s) => matches!(**s, Special::Duration(0)),
        _ => !heap.truth(val),
    }
}
