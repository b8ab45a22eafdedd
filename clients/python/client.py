"""The official Python client: typed, dynamic, watches, patches, errors. Prints a line for each check."""

import contextlib
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

GROUP, VERSION, PLURAL = "shop.example.com", "v1", "gadgets"
CHECKS = []


def check(function):
    """Registers a check; they run in order, each with the same server."""
    CHECKS.append(function)
    return function


@contextlib.contextmanager
def server():
    """A server in memory; what comes out is the path of its kubeconfig."""
    with tempfile.TemporaryDirectory() as folder:
        command = [os.environ["STANCHION"], "server", "--in-memory", "--data-dir", folder, "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            for line in process.stdout:
                if line.startswith("export KUBECONFIG="):
                    break
            yield str(pathlib.Path(folder) / "admin.kubeconfig")
        finally:
            process.terminate()
            process.wait(10)


def definition():
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer", "minimum": 1}, "note": {"type": "string"}},
                "x-kubernetes-validations": [{"rule": "self.size < 100", "message": "too large"}],
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [version],
        },
    }


def gadget(name, size=1, **metadata):
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Gadget",
        "metadata": {"name": name, **metadata},
        "spec": {"size": size},
    }


def fails(status, reason, call, *args, **kwargs):
    """The call is refused with the status and reason; what comes out is the server's answer."""
    try:
        call(*args, **kwargs)
    except ApiException as error:
        body = json.loads(error.body)
        assert (error.status, body["reason"]) == (status, reason), error
        return body
    raise AssertionError("it went through")


def until(holds):
    """Waits until it holds, ten seconds at most."""
    for _ in range(200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to be so")


@check
def the_version_is_1_33():
    version = client.VersionApi().get_code()
    assert (version.major, version.minor) == ("1", "33"), version


@check
def a_typed_object_is_created_read_changed_and_deleted():
    core = client.CoreV1Api()
    made = core.create_namespaced_config_map(
        "default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c"), data={"a": "1"})
    )
    assert made.metadata.uid and made.metadata.resource_version
    made.data["b"] = "2"
    changed = core.replace_namespaced_config_map("c", "default", made)
    assert changed.data == {"a": "1", "b": "2"}
    body = fails(409, "Conflict", core.replace_namespaced_config_map, "c", "default", made)
    assert "the object has been modified" in body["message"]
    patched = core.patch_namespaced_config_map("c", "default", {"data": {"a": None}})
    assert patched.data == {"b": "2"}
    patched = core.patch_namespaced_config_map("c", "default", [{"op": "add", "path": "/data/c", "value": "3"}])
    assert patched.data == {"b": "2", "c": "3"}
    assert core.delete_namespaced_config_map("c", "default").status == "Success"
    fails(404, "NotFound", core.read_namespaced_config_map, "c", "default")


@check
def secrets_namespaces_service_accounts_and_leases():
    core = client.CoreV1Api()
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="python")))
    secret = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"})
    assert core.create_namespaced_secret("python", secret).data == {"k": "dg=="}
    core.create_namespaced_service_account("python", {"metadata": {"name": "robot"}})
    now = datetime.datetime.now(datetime.timezone.utc)
    spec = client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15, renew_time=now)
    leases = client.CoordinationV1Api()
    lease = leases.create_namespaced_lease("python", client.V1Lease(metadata={"name": "l"}, spec=spec))
    assert lease.spec.renew_time == now, lease
    assert {n.metadata.name for n in core.list_namespace().items} >= {"default", "kube-system", "python"}


@check
def a_deployment_keeps_its_defaults():
    apps = client.AppsV1Api()
    container = client.V1Container(name="web", image="nginx:1", ports=[client.V1ContainerPort(container_port=80)])
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"app": "web"}), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels={"app": "web"}), template=template)
    made = apps.create_namespaced_deployment(
        "default", client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    )
    assert made.spec.replicas == 1
    assert made.spec.template.spec.containers[0].ports[0].protocol == "TCP"
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}}
    patched = apps.patch_namespaced_deployment("web", "default", patch)
    assert [(c.image, len(c.ports)) for c in patched.spec.template.spec.containers] == [("nginx:2", 1)]
    scale = apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
    assert scale.spec.replicas == 3


@check
def a_definition_serves_objects_at_once():
    api = client.ApiextensionsV1Api()
    made = api.create_custom_resource_definition(definition())
    assert made.spec.names.singular == "gadget"
    objects = client.CustomObjectsApi()
    assert objects.create_namespaced_custom_object(GROUP, VERSION, "default", PLURAL, gadget("g"))["spec"] == {"size": 1}
    conditions = api.read_custom_resource_definition(f"{PLURAL}.{GROUP}").status.conditions
    assert {c.type: c.status for c in conditions}["Established"] == "True"


@check
def what_is_not_valid_is_refused_with_its_causes():
    objects = client.CustomObjectsApi()
    create = objects.create_namespaced_custom_object
    body = fails(422, "Invalid", create, GROUP, VERSION, "default", PLURAL, gadget("bad", 0))
    assert body["details"]["causes"][0]["field"] == "spec.size", body
    body = fails(422, "Invalid", create, GROUP, VERSION, "default", PLURAL, gadget("bad", 100))
    assert "too large" in body["message"], body
    fails(409, "AlreadyExists", create, GROUP, VERSION, "default", PLURAL, gadget("g"))
    unknown = gadget("bad")
    unknown["spec"]["colour"] = "red"
    body = fails(400, "BadRequest", create, GROUP, VERSION, "default", PLURAL, unknown, field_validation="Strict")
    assert 'unknown field "spec.colour"' in body["message"], body
    fails(404, "NotFound", objects.get_namespaced_custom_object, GROUP, VERSION, "default", PLURAL, "none")


@check
def the_status_is_its_own():
    objects = client.CustomObjectsApi()
    patch = {"spec": {"size": 9}, "status": {"phase": "Ready"}}
    done = objects.patch_namespaced_custom_object_status(GROUP, VERSION, "default", PLURAL, "g", patch)
    assert (done["spec"], done["status"]) == ({"size": 1}, {"phase": "Ready"}), done


@check
def lists_come_in_pieces_and_by_selector():
    core = client.CoreV1Api()
    for i in range(7):
        core.create_namespaced_config_map("python", {"metadata": {"name": f"m{i}", "labels": {"n": str(i % 2)}}})
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map("python", limit=3, _continue=token, label_selector="n")
        names += [m.metadata.name for m in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert names == [f"m{i}" for i in range(7)], names
    assert len(core.list_namespaced_config_map("python", label_selector="n=1").items) == 3
    assert len(core.list_namespaced_config_map("python", field_selector="metadata.name=m2").items) == 1
    core.delete_collection_namespaced_config_map("python", label_selector="n=0")
    assert len(core.list_namespaced_config_map("python", label_selector="n").items) == 3


@check
def a_watch_tells_what_happens():
    core = client.CoreV1Api()
    start = core.list_namespaced_config_map("python").metadata.resource_version

    def change():
        time.sleep(0.3)
        core.create_namespaced_config_map("python", {"metadata": {"name": "w"}})
        core.patch_namespaced_config_map("w", "python", {"data": {"a": "b"}})
        core.delete_namespaced_config_map("w", "python")

    thread = threading.Thread(target=change)
    thread.start()
    events, stream = [], watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map, "python", resource_version=start, field_selector="metadata.name=w", timeout_seconds=10
    ):
        events.append((event["type"], event["object"].data))
        if event["type"] == "DELETED":
            stream.stop()
    thread.join()
    assert events == [("ADDED", None), ("MODIFIED", {"a": "b"}), ("DELETED", {"a": "b"})], events


@check
def a_watch_ends_when_it_said():
    begin = time.monotonic()
    list(watch.Watch().stream(client.CoreV1Api().list_namespace, timeout_seconds=1))
    assert 0.5 < time.monotonic() - begin < 4


@check
def the_dynamic_client_finds_and_changes_objects():
    api = dynamic.DynamicClient(client.ApiClient())
    gadgets = api.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Gadget")
    assert gadgets.namespaced and gadgets.name == PLURAL
    made = gadgets.create(body=gadget("dynamic", 5), namespace="default")
    assert made.spec.size == 5
    made = made.to_dict()
    made["spec"]["size"] = 6
    assert gadgets.replace(body=made, namespace="default").spec.size == 6
    try:
        gadgets.replace(body=made, namespace="default")
        raise AssertionError("it went through")
    except ConflictError:
        pass
    applied = gadgets.server_side_apply(
        body={**gadget("dynamic", 7), "metadata": {"name": "dynamic", "labels": {"a": "b"}}},
        namespace="default",
        field_manager="python",
        force_conflicts=True,
    )
    assert applied.spec.size == 7
    assert any(f.manager == "python" and f.operation == "Apply" for f in applied.metadata.managedFields)
    try:
        gadgets.server_side_apply(body=gadget("dynamic", 8), namespace="default", field_manager="other")
        raise AssertionError("it went through")
    except ConflictError as error:
        assert 'conflict with "python": .spec.size' in json.loads(error.body)["message"], error.body
    assert [g.metadata.name for g in gadgets.get(namespace="default", label_selector="a=b").items] == ["dynamic"]
    gadgets.delete(name="dynamic", namespace="default")
    try:
        gadgets.get(name="dynamic", namespace="default")
        raise AssertionError("it is still there")
    except NotFoundError:
        pass


@check
def the_dynamic_client_watches():
    api = dynamic.DynamicClient(client.ApiClient())
    gadgets = api.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Gadget")
    seen = [(e["type"], e["object"].metadata.name) for e in gadgets.watch(namespace="default", timeout=1)]
    assert seen == [("ADDED", "g")], seen


@check
def a_list_is_not_ahead_of_the_server():
    core = client.CoreV1Api()
    version = core.list_namespaced_config_map("python").metadata.resource_version
    ahead = str(int(version) + 1_000_000)
    fails(504, "Timeout", core.list_namespaced_config_map, "python", resource_version=ahead)
    start = core.list_namespaced_config_map("python", resource_version="0").metadata.resource_version
    assert int(start) >= int(version)


@check
def one_of_two_candidates_leads_and_the_other_takes_over():
    leaders, gone = [], set()

    class Mortal(ConfigMapLock):
        """A lock whose holder can no longer renew it once it is gone."""

        def update(self, name, namespace, record):
            return self.identity not in gone and super().update(name, namespace, record)

    def stand(identity):
        lock, settings = Mortal("leader", "python", identity), {"lease_duration": 3, "renew_deadline": 2, "retry_period": 1}
        begin, end = lambda: leaders.append(identity), lambda: leaders.append(f"not {identity}")
        election = electionconfig.Config(lock, onstarted_leading=begin, onstopped_leading=end, **settings)
        thread = threading.Thread(target=leaderelection.LeaderElection(election).run, daemon=True)
        thread.start()
        return thread

    first = stand("a")
    until(lambda: leaders == ["a"])
    second = stand("b")
    time.sleep(2)
    assert leaders == ["a"], leaders
    gone.add("a")
    until(lambda: "b" in leaders)
    gone.add("b")
    first.join(10)
    second.join(10)
    assert leaders == ["a", "not a", "b", "not b"], leaders


@check
def objects_are_created_from_yaml():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-yaml, namespace: python}\ndata: {state: 'on'}\n"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        utils.create_from_yaml(client.ApiClient(), file.name)
    assert client.CoreV1Api().read_namespaced_config_map("from-yaml", "python").data == {"state": "on"}


@check
def access_is_asked_for():
    authorization = client.AuthorizationV1Api()
    attributes = client.V1ResourceAttributes(verb="create", resource="configmaps", namespace="default")
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
    )
    assert authorization.create_self_subject_access_review(review).status.allowed
    who = client.AuthenticationV1Api().create_self_subject_review({})
    assert "system:masters" in who.status.user_info.groups


@check
def a_namespace_takes_its_objects_along():
    core = client.CoreV1Api()
    core.delete_namespace("python")
    until(lambda: "python" not in {n.metadata.name for n in core.list_namespace().items})
    fails(404, "NotFound", core.read_namespace, "python")
    assert not core.list_namespaced_config_map("python").items


@check
def a_definition_takes_its_objects_along():
    client.ApiextensionsV1Api().delete_custom_resource_definition(f"{PLURAL}.{GROUP}")
    objects = client.CustomObjectsApi()
    for _ in range(100):
        try:
            objects.list_namespaced_custom_object(GROUP, VERSION, "default", PLURAL)
        except ApiException as error:
            assert error.status == 404
            return
        time.sleep(0.1)
    raise AssertionError("it is still served")


def main():
    failed = 0
    with server() as kubeconfig:
        config.load_kube_config(kubeconfig)
        for function in CHECKS:
            name = function.__name__.replace("_", " ")
            try:
                function()
                print(f"ok - {name}", flush=True)
            except Exception:  # A check that fails in whatever way is a failed check.
                failed += 1
                print(f"not ok - {name}", flush=True)
                traceback.print_exc(file=sys.stdout)
    print(f"# {len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
