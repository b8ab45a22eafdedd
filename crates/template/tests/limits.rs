//! Rendering ends, whatever the template.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail")]

use object::Value;
use proptest::prelude::*;
use template::{Data, Functions, Limits, MissingKey, Settings, Template, Tree, documents, fast};

fn render(text: &str) -> Result<String, String> {
    let data = object::json::parse(br#"{"s":"text","l":[1,"a",null,{"k":[true]}],"m":{"a":{"b":1.5}},"i":3,"n":null}"#)
        .unwrap();
    let limits = Limits { output: 1 << 20, steps: 100_000, values: 4 << 20 };
    let settings = Settings { limits, missing_key: MissingKey::Invalid, ..Settings::default() };
    let template = Template::parse("t", text, Functions::Sprig).map_err(|e| e.to_string())?;
    template.render(&Data::from(&data), &settings).map_err(|e| e.to_string())
}

#[test]
fn endless_and_huge_templates_are_stopped() {
    let bombs = [
        r#"{{define "x"}}{{template "x"}}{{end}}{{template "x"}}"#,
        r#"{{define "x"}}{{if true}}{{with 1}}{{range 1}}{{template "x" (print (print .))}}{{end}}{{end}}{{end}}{{end}}{{template "x"}}"#,
        "{{range 1000000000}}{{end}}",
        "{{range 1000000000}}{{range 1000000000}}{{end}}{{end}}",
        "{{range until 1000000000}}{{end}}",
        "{{untilStep 0 9223372036854775807 1}}",
        "{{seq 1 9223372036854775807}}",
        "{{repeat 1000000000 `xxxxxxxxxx`}}",
        "{{indent 1000000000 `x`}}",
        "{{printf `%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d` 1 2 3 4 5 6}}",
        "{{$x := `a`}}{{range 100}}{{$x = print $x $x}}{{end}}",
        "{{$x := list 1}}{{range 100}}{{$x = list $x $x}}{{end}}{{$x}}",
        "{{$x := list 1}}{{range 100}}{{$x = list $x $x}}{{end}}{{toJson $x}}",
        "{{$x := list 1}}{{range 100}}{{$x = list $x $x}}{{end}}{{deepCopy $x}}",
        "{{$x := list 1}}{{range 100}}{{$x = list $x $x}}{{end}}{{deepEqual $x $x}}",
        "{{$x := list 1}}{{range 50000}}{{$x = list $x}}{{end}}{{$x}}",
        "{{$d := dict}}{{$_ := set $d `a` $d}}{{toYaml $d}}",
        "{{$d := dict}}{{$e := dict `a` $d}}{{$_ := set $d `a` $e}}{{merge $d $e (dict `a` (dict `a` $e))}}{{$d}}",
        "{{range 1000000}}{{.}}xxxxxxxxxxxxxxxxxxxx{{end}}",
        "{{$x := ``}}{{range 100000}}{{$x = cat $x `abc`}}{{end}}",
        "{{regexReplaceAll `` (repeat 1000 `a`) (repeat 100000 `b`)}}",
        "{{randAlphaNum 1000000000}}",
        "{{chunk 1 (until 1000000)}}",
    ];
    for bomb in bombs {
        let got = render(bomb);
        assert!(got.is_err(), "{bomb}: {} bytes", got.map_or(0, |g| g.len()));
    }
}

#[test]
fn deep_templates_are_refused() {
    for (open, close) in [("{{if 1}}", "{{end}}"), ("{{with 1}}", "{{else}}{{end}}"), ("{{block `a` .}}", "{{end}}")] {
        let text = open.repeat(5000) + &close.repeat(5000);
        assert!(render(&text).unwrap_err().ends_with("max expression depth exceeded"));
    }
    for text in [
        format!("{{{{{}1{}}}}}", "(".repeat(5000), ")".repeat(5000)),
        format!("{{{{if 1}}}}{}{{{{end}}}}", "{{else if 1}}".repeat(5000)),
        format!("{{{{{}1{}}}}}", "(print ".repeat(5000), ")".repeat(5000)),
    ] {
        assert!(render(&text).unwrap_err().ends_with("max expression depth exceeded"));
    }
    // As deep as is allowed, on a small stack.
    let text = format!("{}x{}", "{{if (print (print 1))}}".repeat(150), "{{end}}".repeat(150));
    assert_eq!(render(&text).as_deref(), Ok("x"));
}

/// Parts of templates that mean something, so that many of the texts parse.
fn part() -> impl Strategy<Value = String> {
    let names = Functions::Sprig.names();
    prop_oneof![
        prop::sample::select(vec![
            "{{",
            "}}",
            "{{- ",
            " -}}",
            "if",
            "else",
            "end",
            "range",
            "with",
            "define",
            "template",
            "block",
            "break",
            "continue",
            ".",
            ".s",
            ".l",
            ".m",
            ".i",
            ".n",
            ".m.a.b",
            "$",
            "$x",
            ":=",
            "=",
            "|",
            "(",
            ")",
            "1",
            "-2.5",
            "`raw`",
            "\"q\"",
            "'c'",
            "nil",
            "true",
            ",",
            "/*",
            "*/",
            "{{if .s}}",
            "{{range .l}}",
            "{{end}}",
            "{{else}}",
            "{{.}}",
            "0x7fffffffffffffff",
            "1e308",
            "\n",
        ])
        .prop_map(str::to_owned),
        prop::sample::select(names).prop_map(str::to_owned),
        ".{0,3}",
    ]
}

/// A call of any function with arguments of any kind.
fn call() -> impl Strategy<Value = String> {
    let arg = prop::sample::select(vec![
        ".s",
        ".l",
        ".m",
        ".i",
        ".n",
        "1",
        "-1",
        "0",
        "9223372036854775807",
        "-9223372036854775808",
        "`%s%[2]*.[1]*f`",
        "`é`",
        "``",
        "1.5",
        "nil",
        "true",
        "(list)",
        "(dict)",
        "(list 1 `a` nil)",
        "(dict `a` (dict))",
        "now",
        "(semver `1.2.3`)",
        "`[a-`",
        "`1h`",
        "`2006 Jan`",
        "(int64 3)",
        "(float64 1e300)",
        "(splitList `,` `a,b`)",
        "(split `,` `a,b`)",
        "(b64dec `/w==`)",
        "(until 3)",
        "1i",
        "99999",
    ]);
    let name = prop::sample::select(Functions::Sprig.names());
    (name, prop::collection::vec(arg, 0..4)).prop_map(|(name, args)| format!("{{{{{name} {}}}}}", args.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_rendering_panic(parts in prop::collection::vec(part(), 0..24)) {
        let _ = render(&parts.join(" "));
        let _ = render(&parts.concat());
    }

    #[test]
    fn no_call_makes_rendering_panic(calls in prop::collection::vec(call(), 1..4)) {
        for call in calls {
            let _ = render(&call);
        }
    }

    #[test]
    fn a_leaf_never_adds_a_field(parameter in ".{0,40}") {
        let target = object::json::parse(br#"{"a":"{{ .x }}","b":["{{.x}}-{{.x}}"]}"#).unwrap();
        let data = Value::Object(object::map! { "x" => parameter.as_str() });
        let tree = Tree::parse("t", &target, Functions::Sprig).unwrap();
        let out = tree.render(&Data::from(&data), &Settings::default()).unwrap();
        prop_assert_eq!(out.str_at(&["a"]), Some(parameter.as_str()));
        prop_assert_eq!(out.as_object().map(|o| o.len()), Some(2));
        let fast = fast::tree(&target, &|name: &str| (name == ".x").then(|| parameter.clone()));
        prop_assert_eq!(out, fast);
    }

    #[test]
    fn no_text_makes_reading_documents_panic(text in ".{0,80}") {
        let _ = documents(&text);
        let _ = fast::render(&text, &|_: &str| None);
    }
}
