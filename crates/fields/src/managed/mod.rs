//! Managers: who owns which fields, and what each write does to that.

mod conflict;
mod entry;
mod last_applied;
mod manager;
mod name;
mod noop;
mod scale;
mod time;
mod update;

pub use conflict::{Conflict, Conflicts};
pub use entry::{
    DecodeError, ManagerId, Managers, Operation, Owned, decode_managers, encode_managers, remove_managers, set_managers,
};
pub use manager::{ApplyError, FieldManager, Kind};
pub use name::{MAX_MANAGER_LENGTH, manager_name};
pub use noop::{keep_times_of_noop, restore_invalid_entries};
pub use scale::ScalePaths;
pub use time::{format_time, parse_time};
pub use update::{ConvertError, NoConversion, VersionConverter};
