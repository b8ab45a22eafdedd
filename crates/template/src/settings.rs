//! What a rendering is given.

use crate::value::{Heap, Result, Val};
use jiff::Timestamp;
use object::Value;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// What a template finds at its dot.
#[derive(Clone, Debug)]
pub enum Data<'a> {
    /// A value.
    Value(&'a Value),
    /// A map of these members, read where they are.
    Members(Vec<(&'a str, &'a Value)>),
}

impl<'a> Data<'a> {
    pub(crate) fn dot(&self, heap: &mut Heap<'a>) -> Result<Val<'a>> {
        match self {
            Data::Value(v) => Ok(Val::data(v)),
            Data::Members(members) => {
                let members: BTreeMap<_, _> = members.iter().map(|(k, v)| ((*k).into(), Val::data(v))).collect();
                heap.dict(members)
            }
        }
    }
}

/// What a key that is not there gives (Go's option `missingkey`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value; a field of it is no value again. Go's default.
    #[default]
    Invalid,
    /// The zero of the map's type, which for maps of anything is nil; a field of it is an error.
    Zero,
    /// An error.
    Error,
}

/// How a template is rendered.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What a missing key gives.
    pub missing_key: MissingKey,
    /// Print nothing where Go prints `<no value>`.
    pub hide_no_value: bool,
    /// The time that `now` and `ago` go by.
    pub now: SystemTime,
    /// Where random functions take their randomness from. The same seed gives the same output.
    pub seed: [u8; 32],
    /// What a rendering may take.
    pub limits: Limits,
}

/// What a rendering may take before it is an error.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of output.
    pub output: usize,
    /// Nodes and operands evaluated.
    pub steps: usize,
    /// Bytes of values made on the way, about.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { output: 16 << 20, steps: 5_000_000, values: 64 << 20 }
    }
}

impl Default for Settings {
    /// Go's defaults, at the epoch, with a seed of zeros.
    fn default() -> Self {
        Settings {
            missing_key: MissingKey::Invalid,
            hide_no_value: false,
            now: SystemTime::UNIX_EPOCH,
            seed: [0; 32],
            limits: Limits::default(),
        }
    }
}

impl Settings {
    pub(crate) fn timestamp(&self) -> Timestamp {
        Timestamp::try_from(self.now).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
