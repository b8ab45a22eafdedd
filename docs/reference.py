"""The pages of reference, made from what the program itself says: its help, and the metrics of a running server."""

import json
import os
import pathlib
import re
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request

FLAGS = """# Commands and flags

This page is what `stanchion help` says. A test compares the two.
"""

METRICS = """# Metrics

What `/metrics` of a server can have, in the text form of Prometheus. Names are upstream's where upstream has the same thing, so that
dashboards made for kube-apiserver show something. A test compares this page with a running server.

| metric | type | labels | meaning |
|---|---|---|---|
"""


# What only some servers have: name, type, labels, meaning.
ELSEWHERE = [("etcd_request_duration_seconds", "histogram", "`operation`, `type`", "Time that etcd took, by what it was asked (with `--storage etcd://…`).")]


def guard(resources):
    """The rules of a webhook or policy for new objects of some resources."""
    return [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": resources}]


def hook(name, resource, failure):
    """A webhook that nobody answers."""
    config = {"name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": failure}
    return {**config, "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": guard([resource])}


# Webhooks and a policy that refuse something: path, kind, name, the rest.
GUARDS = [
    (
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        "a",
        {"webhooks": [hook("fail.example.com", "services", "Fail"), hook("ignore.example.com", "endpoints", "Ignore")]},
    ),
    (
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        "a",
        {"spec": {"matchConstraints": {"resourceRules": guard(["secrets"])}, "validations": [{"expression": "false"}]}},
    ),
    (
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        "a",
        {"spec": {"policyName": "a", "validationActions": ["Deny"]}},
    ),
]


def help_of(stanchion, path):
    """The help of a command, and of all below it: (command, text)."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STANCHION_")}
    command = [stanchion, *path, "--help"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    yield " ".join(["stanchion", *path]), text.rstrip()
    below = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.MULTILINE)
    for name in re.findall(r"^  (\w[\w-]*)", below[1], re.MULTILINE) if below else []:
        if name != "help":
            yield from help_of(stanchion, [*path, name])


def flags(stanchion):
    """The page of all commands and flags."""
    parts = [FLAGS]
    for command, text in help_of(stanchion, []):
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        parts.append(f"## {command}\n\n```text\n{lines}\n```\n")
    return "\n".join(parts)


def scrape(stanchion):
    """The metrics of a server that has everything on and did a little work."""
    with tempfile.TemporaryDirectory() as folder:
        token = pathlib.Path(folder) / "tokens"
        token.write_text('secret,admin,1,"system:masters"\n')
        policy = pathlib.Path(folder) / "audit.yaml"
        policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}")
        audit = ["--audit-policy-file", str(policy), "--audit-log-path", str(pathlib.Path(folder) / "audit.log")]
        command = [stanchion, "server", *audit, "--data-dir", folder, "--listen", "127.0.0.1:0", "--token-auth-file", str(token), "--manager"]
        process = subprocess.Popen(
            [*command, "--workloads", "simulated"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            address = re.search(r"https://\S+", process.stdout.readline())[0]
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

            def ask(path, body=None):
                headers = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
                request = urllib.request.Request(address + path, body and json.dumps(body).encode(), headers)
                try:
                    with urllib.request.urlopen(request, context=context, timeout=20) as answer:
                        return answer.read().decode()
                except urllib.error.HTTPError as refused:
                    return refused.read().decode()

            ask("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
            ask("/api/v1/componentstatuses")
            ask("/healthz")
            ask("/api/v1/namespaces/default/pods", {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}})
            for path, kind, name, more in GUARDS:
                api = "admissionregistration.k8s.io/v1"
                ask(f"/apis/{api}/{path}", {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **more})
            ask("/api/v1/namespaces/default/secrets", {"metadata": {"name": "a"}})
            ask("/api/v1/namespaces/default/services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})
            ask("/api/v1/namespaces/default/endpoints", {"metadata": {"name": "x"}})
            ask("/api/v1/namespaces/default/configmaps?limit=1")
            ask("/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1&resourceVersion=1")
            return ask("/metrics")
        finally:
            process.terminate()
            process.wait(20)


def metrics(stanchion):
    """The page of all metrics."""
    text = scrape(stanchion)
    kinds, labels = {}, {}
    meanings = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        kinds[name] = kind
    for name, inside in re.findall(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ", text, re.MULTILINE):
        base = name if name in kinds else re.sub(r"_(bucket|sum|count)$", "", name)
        names = labels.setdefault(base, set())
        names.update(label for label in re.findall(r'(\w+)="', inside) if label != "le")
    rows = [
        f"| `{name}` | {kinds[name]} | {', '.join(f'`{label}`' for label in sorted(labels.get(name, ())))} | {meanings.get(name, '')} |"
        for name in kinds
    ]
    rows += [f"| `{name}` | {kind} | {labels} | {meaning} |" for name, kind, labels, meaning in ELSEWHERE]
    return METRICS + "\n".join(sorted(rows)) + "\n"


def pages(stanchion):
    """The names and texts of the pages."""
    return [("flags.md", flags(stanchion)), ("metrics.md", metrics(stanchion))]
