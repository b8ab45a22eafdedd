"""An operator as people write them with kopf: for each Cup it keeps a ConfigMap, and fills in the Cup's status."""

import kopf
from kubernetes import client, config

config.load_kube_config()


@kopf.on.create("shop.example.com", "v1", "cups")
@kopf.on.update("shop.example.com", "v1", "cups")
def pour(name, namespace, body, spec, **_):
    content = {"metadata": {"name": name}, "data": {"size": str(spec["size"])}}
    kopf.adopt(content, owner=body)
    api = client.CoreV1Api()
    try:
        api.create_namespaced_config_map(namespace, content)
    except client.ApiException as error:
        if error.status != 409:
            raise
        api.patch_namespaced_config_map(name, namespace, content)
    kopf.event(body, type="Normal", reason="Poured", message=f"size {spec['size']}")
    return {"poured": spec["size"]}


@kopf.on.delete("shop.example.com", "v1", "cups")
def wash(name, namespace, **_):
    client.CoreV1Api().create_namespaced_config_map(namespace, {"metadata": {"name": f"{name}-washed"}})


@kopf.on.field("shop.example.com", "v1", "cups", field="spec.label")
def relabel(new, patch, **_):
    patch.metadata.labels["label"] = new


@kopf.timer("shop.example.com", "v1", "cups", interval=0.5)
def sip(patch, status, **_):
    patch.status["sips"] = status.get("sips", 0) + 1
