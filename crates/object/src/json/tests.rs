use super::*;

#[test]
fn values_read_back_as_written() {
    let text = r#"{"a":[1,-2.5,1e+21,"x\ny",true,null],"b":{"":{}}}"#;
    assert_eq!(to_string(&parse(text.as_bytes()).unwrap()), text);
}

#[test]
fn every_character_is_read_as_it_was_written() {
    for at in 0..40 {
        for b in 0..=127u8 {
            let mut text = "a".repeat(40);
            text.replace_range(at..=at, &char::from(b).to_string());
            let written = to_string(&Value::from(text.as_str()));
            let plain = matches!(b, 0x20..) && !matches!(b, b'"' | b'\\' | b'<' | b'>' | b'&');
            assert_eq!(written.len() == 42, plain, "{b}");
            assert_eq!(parse(written.as_bytes()).unwrap().as_str(), Some(text.as_str()));
        }
    }
}

#[test]
fn numbers_are_ints_where_they_fit() {
    for (text, value) in [
        ("1", Value::Int(1)),
        ("-0", Value::Int(0)),
        ("1.0", Value::Float(1.0)),
        ("1e3", Value::Float(1000.0)),
        ("9223372036854775807", Value::Int(i64::MAX)),
        ("9223372036854775808", Value::Float(9223372036854775808.0)),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap(), value, "{text}");
    }
}

#[test]
fn errors_are_worded_as_in_go() {
    for (text, message) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("{\"a\":1", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("{a", "invalid character 'a' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("1 2", "invalid character '2' after top-level value"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("\"\n\"", "invalid character '\\n' in string literal"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        ("\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape"),
        ("01", "invalid character '1' after top-level value"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), message, "{text}");
    }
    assert_eq!(parse("[".repeat(2000).as_bytes()).unwrap_err().to_string(), "exceeded max depth");
}

#[test]
fn repeated_keys_are_told_with_their_paths() {
    let (value, repeated) = parse_strict(br#"{"b":{"x":1,"x":2,"x":3},"a":[{"y":1,"y":2}],"b2":1,"b2":2}"#).unwrap();
    assert_eq!(to_string(&value), r#"{"a":[{"y":2}],"b":{"x":3},"b2":2}"#);
    assert_eq!(repeated, ["b.x", "a[0].y", "b2"]);
}

#[test]
fn broken_text_becomes_the_replacement_character() {
    assert_eq!(parse(b"\"a\xff\"").unwrap(), Value::from("a\u{fffd}"));
    assert_eq!(parse(br#""\ud83d\ude00\ud800""#).unwrap(), Value::from("\u{1f600}\u{fffd}"));
}

#[test]
fn markup_characters_are_escaped() {
    assert_eq!(to_string(&Value::from("<&>\u{2028}\u{1}")), r#""\u003c\u0026\u003e\u2028\u0001""#);
}
