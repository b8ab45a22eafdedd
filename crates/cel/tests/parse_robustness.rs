//! Whatever the text, the parser ends with a tree or with words.

use cel::parse::{ParserOptions, parse};
use proptest::prelude::*;

/// Words of the language and parts of them, to make texts that are nearly right.
const WORDS: [&str; 44] = [
    "a",
    "x",
    "self",
    "1",
    "2u",
    "1.5",
    "'s'",
    "b'x'",
    "true",
    "null",
    "in",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ".",
    ",",
    "-",
    "!",
    "?",
    ":",
    "+",
    "*",
    "==",
    "<",
    "&&",
    "||",
    " ",
    "'",
    "\"\"\"",
    "=",
    "@",
    "for",
    "has",
    ".all(x, ",
    "a.b{",
    "\n",
    "`z`",
    "//c",
    "9999999999999999999",
    "é",
    "\\q",
];

fn check(text: &str) {
    if let Err(issues) = parse(text, &ParserOptions::default()) {
        assert!(!issues.is_empty(), "{text}");
        let printed = issues.to_string();
        assert!(printed.starts_with("ERROR: <input>:"), "{text}: {printed}");
        assert!(!printed.contains("too large after"), "{text}: {printed}");
    }
}

proptest! {
    #[test]
    fn any_words_end_well(words in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..40)) {
        check(&words.concat());
    }

    #[test]
    fn any_text_ends_well(text in any::<String>()) {
        check(&text);
    }
}

#[test]
fn long_texts_end_well() {
    for part in [
        "(", "[", "{", "a.", "a[", "a{", "-", "!", "a?", "a?b:", "a+", "a==", "f(", "[1,", "'", "'''\\q", "1 ", "@",
        "{1:",
    ] {
        check(&part.repeat(99_999 / part.len()));
    }
    let error = parse(&"x".repeat(100_001), &ParserOptions::default()).expect_err("too long").to_string();
    assert_eq!(error, "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000");
}

#[test]
fn positions_are_those_of_operators_in_code_points() {
    let ast = parse("'é' + a.b(c)[0]", &ParserOptions::default()).expect("an expression");
    let mut positions: Vec<u32> = ast.source.positions.into_iter().filter(|p| *p != u32::MAX).collect();
    positions.sort_unstable();
    // 'é', +, a, the parenthesis of b, c, the bracket, 0.
    assert_eq!(positions, [0, 4, 6, 9, 10, 12, 13]);
}
