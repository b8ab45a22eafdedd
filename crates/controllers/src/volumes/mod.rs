//! Volumes.
pub mod binding;
pub mod matching;
