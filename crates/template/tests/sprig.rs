//! Sprig's functions against what their documentation says.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail")]

use object::{Value, json};
use std::time::{Duration, UNIX_EPOCH};
use template::{Data, Functions, Settings, Template};

fn data() -> Value {
    json::parse(
        br#"{"l":["a","b","c",null,""],"n":[3,1,2],"m":{"b":1,"a":{"x":{"y":"deep"}}},"s":"some text","i":7,"nil":null,
            "secrets":[{"metadata":{"name":"a","namespace":"x"}},{"metadata":{"name":"b","namespace":"x"}},{"metadata":{"name":"b","namespace":"y"}}]}"#,
    )
    .unwrap()
}

fn render(text: &str) -> Result<String, String> {
    // 2021-03-04 05:06:07 UTC
    let settings = Settings { now: UNIX_EPOCH + Duration::from_secs(1_614_834_367), ..Settings::default() };
    let template = Template::parse("t", text, Functions::Sprig).map_err(|e| e.to_string())?;
    let data = data();
    template.render(&Data::from(&data), &settings).map_err(|e| e.to_string())
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let got = render(&format!("{{{{{text}}}}}"));
        assert_eq!(got.as_deref(), Ok(*expected), "{text}");
    }
}

fn check_errors(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let error = render(&format!("{{{{{text}}}}}")).unwrap_err();
        assert!(error.ends_with(expected), "{text}: {error}");
    }
}

#[test]
fn strings() {
    check(&[
        (r#"trim "  hi  ""#, "hi"),
        (r#"trimAll "$" "$5.00""#, "5.00"),
        (r#"trimSuffix "-" "hello-""#, "hello"),
        (r#"trimPrefix "-" "-hello""#, "hello"),
        (r#"title "hello world""#, "Hello World"),
        (r#"untitle "Hello World""#, "hello world"),
        (r#"repeat 3 "ab""#, "ababab"),
        (r#"substr 0 5 "hello world""#, "hello"),
        (r#"substr -1 5 "hello world""#, "hello"),
        (r#"substr 6 -1 "hello world""#, "world"),
        (r#"nospace "hello w o r l d""#, "helloworld"),
        (r#"trunc 5 "hello world""#, "hello"),
        (r#"trunc -5 "hello world""#, "world"),
        (r#"abbrev 5 "hello world""#, "he..."),
        (r#"abbrevboth 5 10 "1234 5678 9123""#, "...5678..."),
        (r#"initials "First Try""#, "FT"),
        (r#"wrap 5 "hello big world""#, "hello\nbig\nworld"),
        (r#"wrapWith 5 "|" "HelloWorld""#, "Hello|World"),
        (r#"contains "cat" "catch""#, "true"),
        (r#"hasPrefix "cat" "catch" | print (hasSuffix "ch" "catch")"#, "true true"),
        (r#"quote "a" 1 nil"#, r#""a" "1""#),
        (r#"squote "a" 1"#, "'a' '1'"),
        (r#"cat "hello" "beautiful" nil 3"#, "hello beautiful 3"),
        (r#"indent 2 "a\nb""#, "  a\n  b"),
        (r#"nindent 2 "a""#, "\n  a"),
        (r#""I Am Henry VIII" | replace " " "-""#, "I-Am-Henry-VIII"),
        (r#"plural "one" "many" 1 | print (plural "one" "many" 2)"#, "manyone"),
        (r#"snakecase "FirstName""#, "first_name"),
        (r#"camelcase "http_server""#, "HttpServer"),
        (r#"kebabcase "FirstName""#, "first-name"),
        (r#"swapcase "This Is A.Test""#, "tHIS iS a.tEST"),
        (r#"upper "hello" | lower"#, "hello"),
        (r#"(split "$" "foo$bar$baz")._1"#, "bar"),
        (r#"(splitn "$" 2 "foo$bar$baz")._1"#, "bar$baz"),
        (r#"splitList "$" "a$b" | join "-""#, "a-b"),
        (r#"join "-" .l"#, "a-b-c-"),
        (r#"list "c" "a" "b" | sortAlpha"#, "[a b c]"),
        (r#"toString 3.5 | print (kindOf (toStrings (list 1 2)))"#, "slice3.5"),
    ]);
    check_errors(&[
        ("upper 5", "at <5>: expected string; found 5"),
        ("5 | upper", "at <upper>: wrong type for value; expected string; got int"),
        ("repeat .i .s", "at <.i>: wrong type for value; expected int; got int64"),
        (r#"substr 5 2 "hello""#, "runtime error: slice bounds out of range [5:2]"),
    ]);
}

#[test]
fn numbers() {
    check(&[
        ("add 1 2 3", "6"),
        ("add1 5 | sub 10 | mul 3 4", "48"),
        ("div 7 2 | print (mod 7 2)", "1 3"),
        ("max 1 5 2 | print (min 1 5 2)", "1 5"),
        ("addf 0.1 0.2 | print (mulf 1.5 2 2)", "6 0.3"),
        ("subf 7.5 2 3 | print (divf 10 2 4)", "1.25 2.5"),
        ("floor 123.9 | print (ceil 123.001)", "124 123"),
        ("round 123.555555 3", "123.556"),
        ("until 3 | print (untilStep 3 6 2) (until -2)", "[3 5] [0 -1] [0 1 2]"),
        ("seq 5", "1 2 3 4 5"),
        ("seq 0 2 10 | print (seq 2 -2)", "2 1 0 -1 -20 2 4 6 8 10"),
        (r#"int "12" | add (int64 3.9) (float64 "2.5" | int)"#, "17"),
        (r#"atoi "42" | print (atoi "x") (toDecimal "777")"#, "0 511 42"),
        ("add .i 1 | kindOf", "int64"),
        ("randInt 5 6", "5"),
    ]);
    check_errors(&[("div 1 0", "error calling div: runtime error: integer divide by zero")]);
}

#[test]
fn lists() {
    check(&[
        ("first .n | print (last .n) (rest .n) (initial .n)", "2 [1 2] [3 1] 3"),
        ("append .n 9 | print (prepend .n 9)", "[9 3 1 2] [3 1 2 9]"),
        ("concat .n (list 1) | reverse", "[1 2 1 3]"),
        ("list 1 1 2 | uniq | print (without (list 1 2 3) 2)", "[1 3] [1 2]"),
        (r#"has "a" .l | print (has 4 .n)"#, "false true"),
        ("compact .l", "[a b c]"),
        ("slice .n 1 2 | print (slice .n 1)", "[1 2] [1]"),
        ("chunk 2 (list 1 2 3)", "[[1 2] [3]]"),
        ("index (list 1 2) 1", "2"),
    ]);
    check_errors(&[
        ("first .s", "error calling first: Cannot find first on type string"),
        ("append .s 1", "Cannot push on type string"),
    ]);
}

#[test]
fn dictionaries() {
    check(&[
        (r#"$d := dict "a" 1 "b""#, ""),
        (r#"dict "a" 1 "b""#, "map[a:1 b:]"),
        (r#"get .m "b" | print (get .m "x") "|""#, "|1"),
        (r#"hasKey .m "a""#, "true"),
        (r#"pluck "a" (dict "a" 1) (dict "a" 2) (dict "b" 3)"#, "[1 2]"),
        (r#"keys .m | sortAlpha | print (values (dict "x" 1))"#, "[1] [a b]"),
        (r#"pick (dict "a" 1 "b" 2) "a" | print (omit (dict "a" 1 "b" 2) "a")"#, "map[b:2] map[a:1]"),
        (r#"merge (dict "a" 1) (dict "a" 2 "b" 3)"#, "map[a:1 b:3]"),
        (r#"mergeOverwrite (dict "a" 1) (dict "a" 2 "b" 3)"#, "map[a:2 b:3]"),
        (r#"dig "a" "x" "y" "none" .m | print (dig "a" "q" "none" .m)"#, "nonedeep"),
        (r#"deepCopy .m | toJson"#, r#"{"a":{"x":{"y":"deep"}},"b":1}"#),
    ]);
    // A change is seen wherever the dictionary is, also in the caller's data, but never beyond the rendering.
    for _ in 0..2 {
        assert_eq!(
            render(r#"{{ $_ := set .m.a "z" 1 }}{{ .m.a.z }}{{ $x := .m.a }}{{ $_ := unset $x "x" }}{{ .m }}"#)
                .unwrap(),
            "1map[a:map[z:1] b:1]"
        );
    }
    // A dictionary that holds itself neither hangs nor leaks.
    assert!(render(r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}"#).unwrap_err().contains("nested too deeply"));
}

#[test]
fn defaults_and_types() {
    check(&[
        (r#"default "x" "" | print (default "x" "y") (default 1 0) (default 1 .nil)"#, "y1 1x"),
        (r#"empty .nil | print (empty "a")"#, "false true"),
        (r#"coalesce 0 1 2 | print (all 1 0) (any 1 0)"#, "false true 1"),
        (r#"ternary "a" "b" true | print (ternary "a" "b" false)"#, "ba"),
        ("typeOf .l | print (typeOf .i) (typeOf 1) (typeOf (splitList `,` `a`))", "int64int[]string[]interface {}"),
        ("kindOf .m | print (kindIs `map` .m) (typeIs `int` 1)", "true truemap"),
        (r#"deepEqual (list 1 "a") (list 1 "a") | print (deepEqual 1 .i)"#, "false true"),
    ]);
    check_errors(&[("fail `stop`", "at <fail `stop`>: error calling fail: stop")]);
}

#[test]
fn encodings() {
    check(&[
        (r#"b64enc "hello" | print (b64dec "aGVsbG8=")"#, "helloaGVsbG8="),
        (r#"b64dec "//79" | b64enc"#, "//79"),
        (r#"b32enc "foo" | b32dec"#, "foo"),
        (
            r#"toJson (dict "a" "<b>") | print (toRawJson (dict "a" "<b>"))"#,
            "{\"a\":\"<b>\"}{\"a\":\"\\u003cb\\u003e\"}",
        ),
        (r#"toPrettyJson (dict "a" (list 1) "b" (dict))"#, "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}"),
        (r#"(fromJson "{\"a\":[1]}").a | print (fromJson "{" | kindOf)"#, "invalid[1]"),
        (r#"toYaml (dict "a" (list 1 "x") "b" "true")"#, "a:\n- 1\n- x\nb: 'true'"),
        (r#"(fromYaml "a: {b: 1}").a.b"#, "1"),
        (r#"fromYamlArray "- a\n- b""#, "[a b]"),
        (r#"(fromToml "[a]\nb = 1").a.b | print (toToml (dict "a" 1))"#, "a = 1\n1"),
        (r#"sha256sum "Hello world!""#, "c0535e4be2b79ffd93291305436bf889314e4a3faec05ecffcbb7df31ad9e51a"),
        (r#"sha1sum "Hello world!""#, "d3486ae9136e7856bc42212385ea797094475802"),
        (r#"adler32sum "Hello world!""#, "487130206"),
        (r#"deterministicUUID "a" "b" | len"#, "36"),
        (r#"(generateAgeKey).Recipient | trunc 4"#, "age1"),
    ]);
}

#[test]
fn dates() {
    check(&[
        ("now | date `2006-01-02 15:04`", "2021-03-04 05:06"),
        ("dateInZone `15:04 MST` now `Europe/Berlin`", "06:06 CET"),
        ("now | dateModify `-1.5h` | date `15:04`", "03:36"),
        ("htmlDate 0 | print (unixEpoch now)", "16148343671970-01-01"),
        ("toDate `2006-01-02` `2017-12-31` | date `02/01/2006`", "31/12/2017"),
        ("duration 95 | print (durationRound `2h10m5s`)", "2h1m35s"),
        ("ago (now | dateModify `-61s`)", "1m1s"),
        ("now.Year | print (now.AddDate 0 1 30).Day", "4 2021"),
        ("(now.Add (toDuration `24h`)).Format `Mon`", "Fri"),
        ("now", "2021-03-04 05:06:07 +0000 UTC"),
    ]);
}

#[test]
fn expressions_paths_and_resources() {
    check(&[
        (r#"regexMatch "^[A-Z]+$" "ABC""#, "true"),
        (r#"regexFindAll "[2,4,6,8]" "123456789" -1"#, "[2 4 6 8]"),
        (r#"regexFind "[a-z][1-9]" "abcd1234""#, "d1"),
        (r#"regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W""#, "-W-xxW-"),
        (r#"regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}""#, "-${1}-${1}-"),
        (r#"regexSplit "z+" "pizza" -1"#, "[pi a]"),
        (r#"regexQuoteMeta "1.2.3""#, r"1\.2\.3"),
        (r#"base "foo/bar" | print (dir "a/b/c") (clean "a/../b/") (ext "foo.bar")"#, "a/bb.barbar"),
        (r#"(urlParse "http://admin:secret@server.com:8080/api?list=false#anchor").hostname"#, "server.com"),
        (
            r#"urlJoin (dict "fragment" "f" "host" "host:80" "path" "/path" "query" "q" "scheme" "http")"#,
            "http://host:80/path?q#f",
        ),
        (r#"semverCompare "^1.2.0" "1.2.3" | print (semver "v1.2.3-a+b").Minor"#, "2 true"),
        (r#"(getResourceByName "a" .secrets).metadata.namespace"#, "x"),
        (r#"getResourceByName "z" .secrets"#, "map[]"),
        (r#"(getResourceByNamespacedName "y" "b" .secrets).metadata.name"#, "b"),
    ]);
    check_errors(&[
        (r#"getResourceByName "b" .secrets"#, "more than one resource with the name \"b\""),
        (r#"mustGetResourceByName "z" .secrets"#, "resource \"z\" not found"),
        (r#"mustRegexMatch "(" "x""#, "error parsing regexp: missing closing ): `(`"),
    ]);
    for gone in ["env", "expandenv", "expandEnv", "getHostByName"] {
        assert!(
            render(&format!("{{{{{gone} \"x\"}}}}"))
                .unwrap_err()
                .ends_with(&format!("function \"{gone}\" not defined"))
        );
    }
}
