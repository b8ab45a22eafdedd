//! A digest that stays the same from program to program: FNV-1a, 64 bits.

use object::{Value, json};

/// The digest of a value's JSON.
pub fn of(value: &Value) -> u64 {
    json::to_string(value)
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The digest in hexadecimal, as labels have it.
pub fn hex(value: &Value) -> String {
    format!("{:016x}", of(value))
}
