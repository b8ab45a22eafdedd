//! Load on running servers over real TLS: measurements for people, and a [`soak`] that judges.

pub mod report;
pub mod soak;
