"""client-go's dynamic client, and the servers that controller-runtime's envtest starts. Prints a line for each check.

What runs here is Go: the package wraps client-go 0.32 and controller-runtime's envtest, compiled. envtest starts the `etcd` and the
`kube-apiserver` of its folder of assets, with its own certificates and flags, and waits until they are well, as it does in Go.
"""

import copy
import os
import pathlib
import sys
import threading
import time
import traceback

from kubernetes_lite import errors
from kubernetes_lite.envtest import EnvTest

GROUP, VERSION = "shop.example.com", "v1"
CHECKS = []


def check(function):
    """Registers a check; they run in order, each with the same server."""
    CHECKS.append(function)
    return function


def definition():
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}},
                "x-kubernetes-validations": [{"rule": "self.size < 100", "message": "too large"}],
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    }
    version = {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"cups.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"},
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


def cup(name, size=1, **more):
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Cup",
        "metadata": {"name": name, "namespace": "default", **more},
        "spec": {"size": size},
    }


def config_map(name, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"by": "go"}},
        "data": data,
    }


def fails(kind, text, call, *args, **kwargs):
    """The call is refused with an error of this kind, whose message has the text."""
    try:
        call(*args, **kwargs)
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError("it went through")


@check
def objects_are_created_read_changed_listed_and_deleted(client):
    maps = client.resource("v1", "ConfigMap")
    made = maps.create(config_map("c", a="1"))
    assert made["metadata"]["uid"] and made["metadata"]["managedFields"]
    stale = copy.deepcopy(made)
    made["data"]["b"] = "2"
    assert maps.update(made)["data"] == {"a": "1", "b": "2"}
    stale["data"]["a"] = "3"
    fails(errors.ConflictError, "the object has been modified", maps.update, stale)
    fails(errors.AlreadyExistsError, 'configmaps "c" already exists', maps.create, config_map("c"))
    assert [m["metadata"]["name"] for m in maps.list(namespace="default", label_selector="by=go")["items"]] == ["c"]
    maps.delete("c", namespace="default")
    fails(errors.NotFoundError, 'configmaps "c" not found', maps.get, "c", namespace="default")


@check
def a_list_comes_in_pieces(client):
    maps = client.resource("v1", "ConfigMap")
    for i in range(5):
        maps.create(config_map(f"n{i}"))
    names, token = [], ""
    while True:
        page = maps.list(namespace="default", label_selector="by=go", limit=2, continue_req=token)
        names += [m["metadata"]["name"] for m in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert names == [f"n{i}" for i in range(5)], names
    maps.delete_collection(namespace="default", label_selector="by=go")
    assert maps.list(namespace="default", label_selector="by=go")["items"] == []


@check
def a_definition_serves_when_it_is_answered(client):
    client.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition").create(definition())
    cups = client.resource(f"{GROUP}/{VERSION}", "Cup")
    assert cups.create(cup("small", 3))["spec"] == {"color": "red", "size": 3}
    fails(errors.InvalidError, "too large", cups.create, cup("large", 200))
    fails(errors.InvalidError, "spec.size", cups.create, {**cup("none"), "spec": {}})


@check
def the_status_is_apart(client):
    cups = client.resource(f"{GROUP}/{VERSION}", "Cup")
    object = cups.get("small", namespace="default")
    object["status"] = {"phase": "Full"}
    object["spec"]["size"] = 9
    done = cups.update_status(object)
    assert (done["spec"]["size"], done["status"]) == (3, {"phase": "Full"}), done


@check
def patches_of_each_type(client):
    maps = client.resource("v1", "ConfigMap")
    maps.create(config_map("p", a="1"))
    for kind, patch, data in [
        ("application/json-patch+json", [{"op": "add", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
        ("application/merge-patch+json", {"data": {"a": None}}, {"b": "2"}),
        ("application/strategic-merge-patch+json", {"data": {"c": "3"}}, {"b": "2", "c": "3"}),
    ]:
        assert maps.patch("p", kind, patch, namespace="default")["data"] == data, kind
    maps.delete("p", namespace="default")


@check
def server_side_apply_owns_fields(client):
    cups = client.resource(f"{GROUP}/{VERSION}", "Cup")
    made = cups.apply(cup("applied", 1), field_manager="one")
    assert made["metadata"]["managedFields"][0]["operation"] == "Apply"
    again = cups.apply(cup("applied", 1), field_manager="one")
    assert made["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
    fails(errors.ConflictError, 'conflict with "one": .spec.size', cups.apply, cup("applied", 2), field_manager="two")
    assert cups.apply(cup("applied", 2), field_manager="two", force=True)["spec"]["size"] == 2


@check
def a_dry_run_leaves_nothing(client):
    cups = client.resource(f"{GROUP}/{VERSION}", "Cup")
    assert cups.create(cup("thought"), dry_run=["All"])["metadata"]["uid"]
    fails(errors.NotFoundError, "not found", cups.get, "thought", namespace="default")


@check
def a_watch_tells_what_happens(client):
    cups = client.resource(f"{GROUP}/{VERSION}", "Cup")
    start = cups.list(namespace="default")["metadata"]["resourceVersion"]

    def change():
        time.sleep(0.3)
        cups.create(cup("watched"))
        cups.patch("watched", "application/merge-patch+json", {"spec": {"size": 2}}, namespace="default")
        cups.delete("watched", namespace="default")

    thread = threading.Thread(target=change)
    thread.start()
    seen = []
    for event in cups.watch(namespace="default", resource_version=start, timeout=10):
        seen.append((event["Type"], event["Object"]["spec"]["size"]))
        if event["Type"] == "DELETED":
            break
    thread.join()
    assert seen == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2)], seen


@check
def built_in_kinds_have_their_defaults_and_subresources(client):
    deployments = client.resource("apps/v1", "Deployment")
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}]}
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"}, "spec": spec}
    made = deployments.create(body)
    assert made["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    patch = {"spec": {"replicas": 4}}
    scale = deployments.patch("d", "application/merge-patch+json", patch, namespace="default", subresources=["scale"])
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 4}), scale
    assert deployments.get("d", namespace="default")["spec"]["replicas"] == 4


@check
def kinds_that_are_not_there_are_not_found(client):
    try:
        client.resource(f"{GROUP}/{VERSION}", "Fork").list()
    except RuntimeError as error:
        assert "no match" in str(error) or "not find" in str(error), error
        return
    raise AssertionError("it went through")


@check
def a_finalizer_holds_an_object(client):
    cups = client.resource(f"{GROUP}/{VERSION}", "Cup")
    cups.create(cup("held", finalizers=["example.com/hold"]))
    cups.delete("held", namespace="default")
    assert cups.get("held", namespace="default")["metadata"]["deletionTimestamp"]
    cups.patch("held", "application/merge-patch+json", {"metadata": {"finalizers": None}}, namespace="default")
    fails(errors.NotFoundError, "not found", cups.get, "held", namespace="default")


def attempt(name, function, *args):
    """Runs a check and says how it went."""
    try:
        function(*args)
        print(f"ok - {name}", flush=True)
        return 0
    except Exception:  # A check that fails in whatever way is a failed check.
        print(f"not ok - {name}", flush=True)
        traceback.print_exc(file=sys.stdout)
        return 1


def runs(folder):
    """Whether a program of the folder runs."""
    commands = [line.read_bytes() for line in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
    return any(command.startswith(folder.encode()) for command in commands)


def main():
    folder = os.environ["KUBEBUILDER_ASSETS"]
    environment = EnvTest()
    failed = attempt("envtest starts", lambda: environment.start(auto_setup=False))
    client = environment.client()
    for function in CHECKS:
        failed += attempt(function.__name__.replace("_", " "), function, client)

    def stops():
        assert runs(folder)
        environment.stop()
        assert not runs(folder)

    failed += attempt("envtest stops, and leaves nothing running", stops)
    total = len(CHECKS) + 2
    print(f"# {total - failed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
