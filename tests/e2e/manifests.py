"""The manifests for Kubernetes, and what Kubernetes makes of one of their pods: a command line, an environment, folders."""
import copy
import glob
import os
import re

import yaml

from framed_client import ROOT

FOLDER = os.path.join(ROOT, "scripts", "kubernetes")
PATCH = "gpu.yaml"


def load():
    """{(kind, name): manifest}"""
    found = {}
    for path in sorted(glob.glob(f"{FOLDER}/*.yaml")):
        if os.path.basename(path) != PATCH:
            with open(path) as file:
                for manifest in yaml.safe_load_all(file):
                    found[manifest["kind"], manifest["metadata"]["name"]] = manifest
    return found


def text(name):
    with open(f"{FOLDER}/{name}") as file:
        return file.read()


def merged(target, patch):
    """As a strategic merge patch of Kubernetes: lists of containers are merged by their names."""
    result = copy.deepcopy(target)
    for key, value in patch.items():
        if isinstance(value, dict):
            result[key] = merged(result.get(key, {}), value)
        elif isinstance(value, list):
            parts = {each["name"]: each for each in value}
            result[key] = [merged(each, parts.get(each["name"], {})) for each in result[key]]
        else:
            result[key] = value
    return result


def templates(manifests):
    """(name of its owner, its pods' template) of all that makes pods."""
    return [(name, manifest["spec"]["template"]) for (kind, name), manifest in manifests.items()
            if kind in ("StatefulSet", "Job")]


def credentials(pod):
    """{name in the configuration: (Secret, key)} of a pod's container, and where they lie."""
    container = pod["spec"]["containers"][0]
    mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", [])}
    for volume in pod["spec"].get("volumes", []):
        if secret := volume.get("secret"):
            return {item["path"]: (secret["secretName"], item["key"]) for item in secret["items"]}, mounts[volume["name"]]
    return {}, None


def environment(container, pod_name, address):
    fields = {"metadata.name": pod_name, "status.podIP": address}
    return {each["name"]: each["value"] if "value" in each else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in container.get("env", [])}


def expanded(words, values):
    """$(NAME) as the kubelet expands it: what has no value stays."""
    return [re.sub(r"\$\((\w+)\)", lambda match: values.get(match[1], match[0]), word) for word in words]
