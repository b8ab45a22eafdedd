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
    let checks = checks(server, page);
    match check {
        Some(name) => {
            let check = checks.iter().find(|c| c.name == name)?;
            server.metrics.checked(page, check.name, check.failure.is_none());
            Some(match check.failure {
                None => plain(200, "ok"),
                Some(why) => plain(500, format!("internal server error: {why}\n")),
            })
        }
        None => {
            checks.iter().for_each(|check| server.metrics.checked(page, check.name, check.failure.is_none()));
            Some(report(page, &checks, query.all("exclude").collect(), query.get("verbose").is_some()))
        }
    }
}

/// Something that has to be well.
pub(crate) struct Check {
    /// Its name.
    pub name: &'static str,
    /// Why it is not.
    pub failure: Option<&'static str>,
}

/// The checks of a page. Being ready ends with the order to stop, being alive does not.
pub(crate) fn checks(server: &Server, page: &str) -> Vec<Check> {
    let mut out = vec![
        Check { name: "ping", failure: None },
        Check { name: "log", failure: None },
        Check { name: "etcd", failure: server.store().trouble().map(|_| "etcd failed") },
    ];
    if page == "readyz" {
        out.push(Check { name: "shutdown", failure: server.is_ending().then_some("process is shutting down") });
    }
    out
}

/// The page, as upstream words it: `ok`, or a line a check where that is asked for or something is not well.
fn report(page: &str, checks: &[Check], mut excluded: Vec<&str>, verbose: bool) -> Response {
    let (mut text, mut healthy) = (String::new(), true);
    let given = excluded.clone();
    for check in checks {
        excluded.retain(|name| *name != check.name);
        text.push_str(&match check.failure {
            _ if given.contains(&check.name) => format!("[+]{} excluded: ok\n", check.name),
            None => format!("[+]{} ok\n", check.name),
            Some(_) => {
                healthy = false;
                format!("[-]{} failed: reason withheld\n", check.name)
            }
        });
    }
    if !excluded.is_empty() {
        excluded.sort_unstable();
        excluded.dedup();
        let names: Vec<String> = excluded.into_iter().map(object::go::quote).collect();
        text.push_str(&format!("warn: some health checks cannot be excluded: no matches for {}\n", names.join(",")));
    }
    match healthy {
        true if !verbose => plain(200, "ok"),
        true => plain(200, format!("{text}{page} check passed\n")),
        false => plain(500, format!("{text}{page} check failed\n")),
    }
}

/// The release, and whose.
pub(crate) fn git_version() -> String {
    format!("{RELEASE}+stanchion-{}", env!("CARGO_PKG_VERSION"))
}

/// System and processor, as Go names them.
pub(crate) fn platform() -> String {
    format!("{}/{}", std::env::consts::OS, architecture())
}

/// `/version`
fn version() -> Value {
    Value::Object(map! {
        "major" => "1",
        "minor" => "33",
        "emulationMajor" => "1",
        "emulationMinor" => "33",
        "minCompatibilityMajor" => "1",
        "minCompatibilityMinor" => "32",
        "gitVersion" => git_version(),
        "gitCommit" => "",
        "gitTreeState" => "clean",
        "buildDate" => "1970-01-01T00:00:00Z",
        "goVersion" => "",
        "compiler" => "rustc",
        "platform" => platform(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn reports_have_upstreams_words() {
        let checks = |failure| [Check { name: "ping", failure: None }, Check { name: "shutdown", failure }];
        let why = Some("process is shutting down");
        for (failure, excluded, verbose, code, wanted) in [
            (None, vec![], false, 200, "ok"),
            (None, vec![], true, 200, "[+]ping ok\n[+]shutdown ok\nreadyz check passed\n"),
            (why, vec![], false, 500, "[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n"),
            (why, vec!["shutdown"], true, 200, "[+]ping ok\n[+]shutdown excluded: ok\nreadyz check passed\n"),
            (
                None,
                vec!["x", "ping", "a"],
                true,
                200,
                "[+]ping excluded: ok\n[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"x\"\nreadyz check passed\n",
            ),
        ] {
            let response = report("readyz", &checks(failure), excluded, verbose);
            assert_eq!(response.status(), code);
            let text = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(String::from_utf8_lossy(&text), wanted);
        }
    }
}
