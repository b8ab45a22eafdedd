//! Templates against what Go's `text/template` (1.25) made of them: `golden/go.jsonl`, a case a line.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail")]

use object::{Value, json};
use template::{Data, Functions, MissingKey, Settings, Template};

struct Case {
    text: String,
    data: Value,
    missing: MissingKey,
    expected: Result<String, String>,
}

fn cases(lines: &str) -> Vec<Case> {
    let mut data = Value::Null;
    let mut out = Vec::new();
    for line in lines.lines() {
        let mut case = json::parse(line.as_bytes()).unwrap();
        // Cases share the data of the last line that has some.
        if let Some(own) = case.remove_at(&["data"]) {
            data = own;
        }
        let text = |key: &str| case.str_at(&[key]).map(str::to_owned);
        out.push(Case {
            text: text("text").unwrap_or_default(),
            data: data.clone(),
            missing: match case.str_at(&["missing"]) {
                Some("zero") => MissingKey::Zero,
                Some("error") => MissingKey::Error,
                _ => MissingKey::Invalid,
            },
            expected: match text("error") {
                Some(error) => Err(error),
                None => Ok(text("out").unwrap_or_default()),
            },
        });
    }
    out
}

fn render(case: &Case) -> Result<String, String> {
    let settings = Settings { missing_key: case.missing, ..Settings::default() };
    let template = Template::parse("t", &case.text, Functions::Go).map_err(|e| e.to_string())?;
    template.render(&Data::from(&case.data), &settings).map_err(|e| e.to_string())
}

#[test]
fn templates_give_what_they_give_in_go() {
    let lines = match std::env::var("TEMPLATE_CASES") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("golden/go.jsonl").to_owned(),
    };
    let cases = cases(&lines);
    let mut wrong = 0;
    for case in &cases {
        let got = render(case);
        if got != case.expected {
            wrong += 1;
            if wrong <= 60 {
                println!("{:?} {:?}\n  expected {:?}\n  got      {:?}", case.text, case.missing, case.expected, got);
            }
        }
    }
    assert_eq!(wrong, 0, "of {}", cases.len());
}
