//! What the quick reader reads, the other one reads alike.

use super::super::{read_all, read_first};
use super::*;
use proptest::prelude::*;

fn quick(text: &str) -> Option<Option<(Value, usize)>> {
    Fast::new(text)?.document()
}

/// What the quick reader reads, the other one reads alike and without complaints.
fn is_alike(text: &str) -> Result<(), TestCaseError> {
    if let Some(first) = quick(text) {
        let value = first.map(|(value, _)| value).unwrap_or_default();
        prop_assert_eq!(read_first(text), Ok((value, Vec::new())), "{}", text);
    }
    if let Some(all) = Fast::new(text).and_then(Fast::documents) {
        prop_assert_eq!(read_all(text), Ok(all), "{}", text);
    }
    Ok(())
}

#[test]
fn the_usual_is_read() {
    for text in [
        "",
        "# only\n",
        "apiVersion: v1\nkind: X\nmetadata:\n  name: a # the name\n  labels: {a: b, \"c\": 'd'}\nspec:\n- a\n- b: 1\n  c:\n  - d\n-\n  e: f\n",
        "---\na: |\n  one\n\n    two\nb: |-\n  x\nc: |+\n  y\n\n",
        "a: one\n  two\n\n  three\nb: \"x\\n\\\"y\\\"\"\nc: 'it''s'\n'd e': ~\n? \n".trim_end_matches("? \n"),
        "- - a\n  - b\n-   - c\n- --flag=1\n- -1\n- http://x:80/#y\n",
        "{\"a\": [1, 2.5, true,\n  x], b: {}, c}\n",
        "a: é\nb:\n    text\n  more\n---\nc: 1",
    ] {
        assert!(quick(text).is_some(), "{text}");
        is_alike(text).unwrap();
    }
}

#[test]
fn the_unusual_is_left_to_the_other_reader() {
    for text in [
        "a: 1\na: 2",
        "a: &x 1",
        "a: *x",
        "a: !!str 1",
        "? a\n: b",
        "a: >\n  x\n",
        "a: |2\n    x\n",
        "a: \"x\n  y\"",
        "a: b: c",
        "a:\n - b\n  - c",
        "a: [b,\n  c]",
        "<<: {a: b}",
        "\ta: b",
        "a: b\r\n",
        "%YAML 1.1\n---\na: b",
        "--- a",
        "a: .inf",
        "x",
        "a:\n  b: 1\n c: 2",
        &"- ".repeat(70),
    ] {
        assert!(quick(text).is_none(), "{text:?}");
    }
}

/// A line or a part of one.
fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "\n",
        "\n",
        "\n",
        "\n",
        "\n  ",
        "\n  ",
        "\n    ",
        "\n ",
        " ",
        "  ",
        "- ",
        "- ",
        "-",
        "a: ",
        "b: ",
        "c:",
        "'d': ",
        "\"e\": ",
        "<<: ",
        "x",
        "y z",
        "1",
        "0x1f",
        "1.50",
        "yes",
        "~",
        "null",
        "-1",
        "'q'",
        "'it''s'",
        "\"q\"",
        "\"a\\nb\"",
        "\"\\x41\"",
        "[",
        "]",
        "{",
        "}",
        ", ",
        ",",
        ": ",
        ":",
        "#",
        " # c",
        "|",
        "|-",
        "|+",
        ">",
        "---",
        "---\n",
        "...",
        "&a ",
        "*a",
        "!t ",
        "? ",
        "%",
        "@",
        "é",
        "http://a:1/#b",
        "--x",
        "\t",
        "\r\n",
        "\u{85}",
        "\u{2028}",
        ".",
    ])
}

/// A document written as people write it, more or less.
fn document() -> impl Strategy<Value = String> {
    let scalar = prop::sample::select(vec![
        "x",
        "some words",
        "1",
        "1.5",
        "true",
        "~",
        "",
        "'single'",
        "\"double\"",
        "-x",
        "a:b",
        "x#y",
        "x # c",
        "[a, 1]",
        "{a: b}",
        "[]",
        "{}",
        "{a, b: [c]}",
        "|\n@    one\n@\n@     two\n",
        "|-\n@  one\n\n",
        "|+\n@   x\n\n\n",
        "x\n@  y",
        "x\n\n@   y z",
        "\n@   x",
        ">\n@   x\n",
        "# c",
        "'a' # c",
        "[\"a\", 'b' , c ]",
        "a, b",
        "x]",
        "x - y",
        "\"a\\\\b\"",
    ]);
    // Lines, each with an `@` where the indentation around goes.
    let leaf = scalar.prop_map(|text| vec![text.to_owned()]);
    let nested = leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop::sample::select(vec!["a", "b", "c d", "'e'", "\"f\"", "1", "no", "g/h", "-k"]);
        let gap = prop::sample::select(vec!["", "", "", "", "@# c\n", "\n", "  \n"]);
        let indent = prop::sample::select(vec!["", "", "  ", "  ", " ", "    "]);
        let mapping =
            prop::collection::vec((key, inner.clone(), indent.clone(), gap.clone()), 1..4).prop_map(|members| {
                let mut text = String::new();
                for (key, value, indent, gap) in members {
                    text.push_str(gap);
                    text.push_str(&format!("@{key}:{}", under(&value, indent)));
                }
                vec![text, String::new()]
            });
        let sequence = prop::collection::vec((inner, indent, gap, any::<bool>()), 1..4).prop_map(|items| {
            let mut text = String::new();
            for (value, indent, gap, compact) in items {
                text.push_str(gap);
                match (compact, value.len()) {
                    (true, 2) => {
                        let body = value[0].replace('@', "@  ");
                        text.push_str(&format!("@- {}", body.trim_start_matches(['@', ' '])));
                    }
                    _ => text.push_str(&format!("@-{}", under(&value, indent))),
                }
            }
            vec![text, String::new()]
        });
        prop_oneof![mapping, sequence]
    });
    nested.prop_map(|lines| lines[0].replace('@', ""))
}

/// A value below its key or dash: on the same line if it is a scalar.
fn under(value: &[String], indent: &str) -> String {
    match value {
        [scalar] => format!(" {}\n", scalar.replace('@', "@  ")),
        [lines, ..] => format!("\n{}", lines.replace('@', &format!("@{indent}"))),
        [] => "\n".to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_parts_are_read_alike(parts in prop::collection::vec(part(), 0..16)) {
        is_alike(&parts.concat())?;
    }

    #[test]
    fn documents_are_read_alike(text in document(), end in any::<bool>()) {
        is_alike(if end { &text } else { text.trim_end_matches('\n') })?;
    }
}
