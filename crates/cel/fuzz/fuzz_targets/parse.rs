//! Any text parses or is refused with words, and what parses prints as a text with the same meaning.
//!
//! Run with `cargo +nightly fuzz run parse` in `crates/cel`.
#![no_main]

use cel::parse::{ParserOptions, parse};
use cel::unparse::unparse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let options = ParserOptions { keep_macro_calls: true };
    match parse(text, &options) {
        Ok(ast) => {
            let printed = unparse(&ast).expect("macro calls are kept");
            assert!(printed.len() > 100_000 || parse(&printed, &options).is_ok(), "{printed}");
        }
        Err(issues) => assert!(!issues.to_string().is_empty()),
    }
});
