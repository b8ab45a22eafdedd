//! `stanchion permit` against a server with the manager: a permit from the request to its end, by people who may and may not.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::server::Server;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stanchion");

struct Fixture {
    server: Server,
}

/// What a run of the program came to.
struct Ran {
    is_ok: bool,
    out: String,
    err: String,
}

impl Fixture {
    fn new(flags: &[&str]) -> Self {
        Fixture { server: Server::start(Path::new(PROGRAM), flags).unwrap() }
    }

    fn run(&self, words: &[&str], input: &str) -> Ran {
        let mut child = Command::new(PROGRAM)
            .args(words)
            .arg("--kubeconfig")
            .arg(&self.server.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read has ended or will.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { is_ok: output.status.success(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Runs `stanchion permit`, which must succeed; gives what it prints.
    fn permit(&self, words: &str) -> String {
        let words: Vec<&str> = std::iter::once("permit").chain(words.split(' ')).collect();
        let ran = self.run(&words, "");
        assert!(ran.is_ok, "{words:?}: {}", ran.err);
        ran.out
    }

    /// Runs `stanchion permit`, which must fail; gives what it says.
    fn refused(&self, words: &str) -> String {
        let words: Vec<&str> = std::iter::once("permit").chain(words.split(' ')).collect();
        let ran = self.run(&words, "");
        assert!(!ran.is_ok, "{words:?}: {}", ran.out);
        ran.err
    }

    /// Applies objects, as soon as the server serves their kinds.
    fn apply(&self, text: &str) {
        let begin = Instant::now();
        loop {
            let ran = self.run(&["app", "up", "-f", "-"], text);
            if ran.is_ok {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{}", ran.err);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

const TEMPLATE: &str = "
apiVersion: capsule.clastix.io/v1beta2
kind: ResourcePermitTemplate
metadata: {name: access}
spec:
  maxDuration: 1h
  defaultDuration: 30m
  approvals: {approvers: [{kind: User, name: alice}, {kind: Group, name: ops}]}
  resources:
  - policy: {creation: Merge, force: true}
    targets:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: 'cm-{{ .name }}'}, data: {by: '{{ .request.username }}', level: high}}
    - {apiVersion: v1, kind: Secret, metadata: {name: 's-{{ .name }}'}, stringData: {password: hunter2}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cm-x}
data: {level: low, own: 'yes'}
";
const TYPED: &str = "
apiVersion: capsule.clastix.io/v1beta2
kind: ResourcePermitTemplate
metadata: {name: typed}
spec:
  paramSchema: {type: object, required: [count], properties: {count: {type: integer}}}
  resources:
  - targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: typed}, data: {count: '{{ .count }}'}}]
";
const PEOPLE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: people}
rules:
- {apiGroups: [capsule.clastix.io], resources: ['*'], verbs: [get, list, create]}
- {apiGroups: [capsule.clastix.io], resources: [resourcepermits/status], verbs: [patch]}
- {apiGroups: [''], resources: [configmaps, secrets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: people}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: people}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:authenticated}]
";

#[test]
fn a_permit_lives_from_the_terminal() {
    let f = Fixture::new(&["--manager"]);
    f.apply(TEMPLATE);
    f.apply(PEOPLE);
    let out = f.permit("request access --name p -p name=x --reason fire --as bob --wait");
    assert_eq!(out, "resourcepermit/p waits for review\n");
    assert!(f.permit("list --phase requested").contains("p      access     bob         Requested   True"));
    assert_eq!(f.permit("list --phase active"), "No permits found\n");
    assert_eq!(f.permit("ls -A -o name"), "resourcepermit.capsule.clastix.io/p\n");
    assert!(f.permit("list -o wide").lines().next().unwrap().ends_with("REVIEWER   MESSAGE"));
    assert!(f.permit("list -o yaml").starts_with("apiVersion: v1\nitems:\n- apiVersion: capsule.clastix.io/v1beta2\n"));

    // The reviewer sees who asks for what, and how the cluster would change; not what secrets hold.
    let shown = f.permit("review p --as alice");
    for line in [
        "Requester     bob (User), groups system:authenticated\n",
        "Reason        fire\n",
        "Lasts         30m\n",
        "Approvers     User alice, Group ops\n",
        "Block 0: may be there already, removed at the end, protected, taking fields from others\n",
        "change ConfigMap default/cm-x\n",
        "-   level: low\n",
        "+   level: high\n",
        "+   by: bob\n",
        "create Secret default/s-x\n",
        "1 to create, 1 to change, 0 as they are\n",
    ] {
        assert!(shown.contains(line), "{line:?} is not in\n{shown}");
    }
    assert!(!shown.contains("hunter2") && !shown.contains('\x1b'), "{shown}");
    assert!(f.permit("review p --show-secrets").contains("hunter2"));

    assert!(f.refused("approve p --as bob").contains("\"bob\" is not an approver of this request"));
    assert!(f.refused("approve p --as alice --duration 2h").contains("must be at most 1h0m0s"));
    assert!(f.refused("approve p --as-group ops").contains("--as-group needs --as"));
    assert!(f.refused("activate p --as alice").contains("invalid transition from Requested to Active"));
    assert!(f.refused("retry p --as alice").contains("invalid transition from Requested to Retrying"));
    let out =
        f.permit("approve p --as carol --as-group ops --as-group system:authenticated --duration 10m -m fine --wait");
    assert!(out.starts_with("resourcepermit/p active until 20"), "{out}");
    let shown = f.permit("review p");
    assert!(shown.contains("Approved by carol: fine\n") && shown.contains("Active until  20"), "{shown}");
    assert!(shown.contains("as it is ConfigMap default/cm-x\n"), "{shown}");

    assert_eq!(f.permit("expire p --as alice -m done --wait"), "resourcepermit/p expired and gone\n");
    assert_eq!(f.permit("list"), "No permits found\n");

    // One that is kept is there when it is over, with nothing left of what it made.
    f.permit("request access --name kept -p name=x --as bob --wait");
    f.permit("approve kept --as alice --keep-for 1d --wait");
    let out = f.permit("expire kept --as alice --wait");
    assert!(out.starts_with("resourcepermit/kept expired; kept until 20"), "{out}");
    assert!(f.permit("list").contains("Expired"));
}

#[test]
fn what_is_wrong_is_said_in_words_that_help() {
    let f = Fixture::new(&["--manager"]);
    f.apply(TEMPLATE);
    f.apply(TYPED);
    for (words, why) in [
        ("request nothing", "there is no template \"nothing\", in namespace \"default\" or for all"),
        ("request x/access", "x is no kind of template: use rpt/access or grpt/access"),
        ("request access -p name", "--param name: it has to be KEY=VALUE"),
        ("request rpt/access --duration 2h -p name=x", "duration: must be at most 1h0m0s"),
        ("request access --wait", "it cannot be prepared: parameter \"name\" is missing: "),
        ("request access", "give it when you ask: -p name=VALUE"),
        ("request access --name lacks", "resourcepermit/lacks: it cannot be prepared: parameter \"name\" is missing: "),
        ("request access --name lacks -p name=x", "resourcepermits.capsule.clastix.io \"lacks\" already exists"),
        ("request access --name A_B -p name=x", "metadata.name: Invalid value: \"A_B\""),
        ("request typed --name x", "params.count: Required value"),
        ("request typed -p count=many", "params.count: must be of type integer"),
        ("request access -n nowhere -p name=x", "there is no template \"access\", in namespace \"nowhere\" or for all"),
        ("request access -p name=x --start-time yesterday", "startTime"),
        ("request access -p name=x --as eve", "cannot create resource \"resourcepermits\""),
        ("list --as eve", "User \"eve\" cannot list resource \"resourcepermits\""),
        (
            "list a b",
            "resourcepermits.capsule.clastix.io \"a\" not found\nresourcepermits.capsule.clastix.io \"b\" not found",
        ),
        ("get lacks -A", "cannot be got by its name across all namespaces"),
        ("approve pod/x", "pod/x: pod is no permit: use x"),
        ("approve", "required arguments were not provided"),
        ("approve nobody", "resourcepermits.capsule.clastix.io \"nobody\" not found"),
        ("approve lacks", "invalid transition from Created to Approved"),
        ("list --watches", "unexpected argument '--watches'"),
        ("review nobody", "resourcepermits.capsule.clastix.io \"nobody\" not found"),
        ("list --phase nope", "\"nope\" is no phase; phases are Created, Requested"),
        ("deny nobody else", "\"nobody\" not found\nresourcepermits.capsule.clastix.io \"else\" not found"),
        ("list -o table", "invalid value 'table' for '--output"),
    ] {
        let said = f.refused(words);
        assert!(said.contains(why), "{words}: {said}");
    }
    let reason = f.permit("list lacks -o yaml");
    assert!(reason.contains("reason: TemplateRenderingFailed") && !reason.contains("kind: List"), "{reason}");
    let asked = f.run(&["permit", "request", "access", "--params", "-", "-o", "json"], "{name: z}");
    assert!(asked.is_ok && asked.out.contains(r#""params":{"name":"z"}"#), "{} {}", asked.out, asked.err);
    let name = f.permit("list -o name").lines().next().unwrap().rsplit('/').next().unwrap().to_owned();
    assert!(name.starts_with("access-"));
    let begin = Instant::now();
    while !f.permit("list").contains("Requested") {
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    // A name is understood as it is printed.
    let waiting = f.permit("list --phase Requested -o name");
    let name = waiting.trim().rsplit('/').next().unwrap();
    assert_eq!(f.permit(&format!("deny {} -m no", waiting.trim())), format!("resourcepermit/{name} denied\n"));
    assert!(f.permit(&format!("get rp/{name}")).contains("Denied"));
    let json = f.permit(&format!("get {name} -o json"));
    assert!(json.starts_with('{') && json.contains("\"kind\":\"ResourcePermit\"") && !json.contains("managedFields"));

    let plain = Fixture::new(&[]);
    for words in ["list", "list -A -o json", "request access -p a=b", "request rpt/access", "review x", "approve x"] {
        let said = plain.refused(words);
        assert!(said.contains("the cluster does not serve permits: run `stanchion manager`"), "{words}: {said}");
    }
}

#[test]
fn whoever_asks_learns_that_no_manager_runs() {
    let mut f = Fixture { server: Server::start_durable(Path::new(PROGRAM), &["--manager"]).unwrap() };
    f.apply(TEMPLATE);
    f.server.restart_with(&[]).unwrap();
    let words: Vec<&str> = "permit request rpt/access --name p -p name=x".split(' ').collect();
    let ran = f.run(&words, "");
    assert!(ran.is_ok, "{}", ran.err);
    assert_eq!(ran.out, "resourcepermit/p requested\n");
    assert!(ran.err.contains("nobody has looked at it yet: does `stanchion manager` run?"), "{}", ran.err);
}

#[test]
fn changes_are_told_as_they_come() {
    let f = Fixture::new(&["--manager"]);
    f.apply(TEMPLATE);
    f.permit("request access --name p -p name=x --wait");
    let mut child = Command::new(PROGRAM)
        .args(["permit", "list", "-w", "--phase", "denied", "-o", "name", "--kubeconfig"])
        .arg(&f.server.kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    f.permit("deny p --as-group system:masters --as alice");
    assert_eq!(lines.next().unwrap().unwrap(), "resourcepermit.capsule.clastix.io/p");
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn kubeconfigs_of_every_form_are_understood() {
    let f = Fixture::new(&["--manager"]);
    f.apply(TEMPLATE);
    let file = std::fs::read_to_string(&f.server.kubeconfig).unwrap();
    let whole = object::yaml::parse(file.as_bytes()).unwrap();
    let cluster = whole.get("clusters").and_then(object::Value::as_array).unwrap()[0].clone();
    let authority = cluster.str_at(&["cluster", "certificate-authority-data"]).unwrap();
    let (url, folder) = (&f.server.url, f.server.folder());
    std::fs::write(folder.join("token"), "admintoken\n").unwrap();
    let program = "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: ['-c', 'echo \"{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\\\"status\\\":{\\\"token\\\":\\\"admintoken\\\"}}\"']}}";
    let trusted = format!("server: '{url}', certificate-authority-data: {authority}");
    for (cluster, user, expected) in [
        (trusted.as_str(), program, Ok(())),
        (&trusted, "{tokenFile: token}", Ok(())),
        (&format!("{trusted}, tls-server-name: localhost"), "{token: admintoken}", Ok(())),
        (&format!("{trusted}, tls-server-name: example.com"), "{token: admintoken}", Err("cannot reach")),
        (&format!("server: '{url}', insecure-skip-tls-verify: true"), "{token: admintoken}", Ok(())),
        (
            &format!("{trusted}, proxy-url: 'http://p'"),
            "{token: admintoken}",
            Err("proxy-url http://p is not supported"),
        ),
        (&trusted, "{token: wrong}", Err("Unauthorized")),
        (&trusted, &program.replace("admintoken", "wrong"), Err("Unauthorized")),
        (
            &trusted,
            "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: no-such-program, installHint: get it}}",
            Err("get it"),
        ),
    ] {
        let path = folder.join("other.kubeconfig");
        let text = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], clusters: [{{name: c, cluster: {{{cluster}}}}}], users: [{{name: u, user: {user}}}]}}"
        );
        std::fs::write(&path, text).unwrap();
        let output = Command::new(PROGRAM).args(["permit", "list", "--kubeconfig"]).arg(&path).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        match expected {
            Ok(()) => assert!(output.status.success(), "{cluster} {user}: {said}"),
            Err(why) => assert!(!output.status.success() && said.contains(why), "{cluster} {user}: {said}"),
        }
    }
}
