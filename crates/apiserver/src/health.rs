//! Health and version: what probes and clients ask before anything else.

use crate::Server;
use crate::answer::{Response, json_value, plain};
use crate::request::{Query, RequestInfo};
use http::request::Parts;
use object::{Value, map};

/// The Kubernetes release whose behaviour the server has.
const RELEASE: &str = "v1.33.13";

/// The answer, if the path is one of these pages.
pub fn respond(server: &Server, info: &RequestInfo, parts: &Parts) -> Option<Response> {
    let path = info.path.trim_end_matches('/');
    if path == "/version" {
        return Some(json_value(200, &version()));
    }
    let mut steps = path.strip_prefix('/')?.split('/');
    let page = steps.next().filter(|p| matches!(*p, "healthz" | "livez" | "readyz"))?;
    let check = steps.next();
    if steps.next().is_some() {
        return None;
    }
    let query = Query::parse(parts.uri.query());
    let excluded: Vec<&str> = query.all("exclude").collect();
    let checks: Vec<Check> = checks(server, page).into_iter().filter(|c| !excluded.contains(&c.name)).collect();
    match check {
        Some(name) => {
            let check = checks.iter().find(|c| c.name == name)?;
            Some(if check.passed {
                plain(200, "ok")
            } else {
                plain(500, format!("internal server error: {}", check.name))
            })
        }
        None => Some(report(page, &checks, query.get("verbose").is_some())),
    }
}

struct Check {
    name: &'static str,
    passed: bool,
}

/// The checks of a page. Being ready ends with the order to stop, being alive does not.
fn checks(server: &Server, page: &str) -> Vec<Check> {
    let mut out = vec![
        Check { name: "ping", passed: true },
        Check { name: "log", passed: true },
        Check { name: "etcd", passed: server.store().trouble().is_none() },
    ];
    if page == "readyz" {
        out.push(Check { name: "shutdown", passed: !server.is_stopping() });
    }
    out
}

fn report(page: &str, checks: &[Check], verbose: bool) -> Response {
    let healthy = checks.iter().all(|c| c.passed);
    if healthy && !verbose {
        return plain(200, "ok");
    }
    let mut text = String::new();
    for check in checks {
        text.push_str(&match check.passed {
            true => format!("[+]{} ok\n", check.name),
            false => format!("[-]{} failed: reason withheld\n", check.name),
        });
    }
    text.push_str(&format!("{page} check {}\n", if healthy { "passed" } else { "failed" }));
    plain(if healthy { 200 } else { 500 }, text)
}

/// `/version`
fn version() -> Value {
    let platform = format!("{}/{}", std::env::consts::OS, architecture());
    Value::Object(map! {
        "major" => "1",
        "minor" => "33",
        "emulationMajor" => "1",
        "emulationMinor" => "33",
        "minCompatibilityMajor" => "1",
        "minCompatibilityMinor" => "32",
        "gitVersion" => format!("{RELEASE}+stanchion-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit" => "",
        "gitTreeState" => "clean",
        "buildDate" => "1970-01-01T00:00:00Z",
        "goVersion" => "",
        "compiler" => "rustc",
        "platform" => platform,
    })
}

/// The processor in Go's words.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
