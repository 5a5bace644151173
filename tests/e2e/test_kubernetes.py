#!/usr/bin/python3
"""The manifests for Kubernetes: what they name is there, they keep to Kubernetes' schemas where those are installed (make
check-kubernetes), and their pods' commands, configurations and probes work, run here without Kubernetes."""
import contextlib
import json
import os
import re
import subprocess

import yaml

import manifests
from etcd_server import INSTALLED
from framed_client import BINARY, ROOT, Checks, Process, folder, run, until
from network_namespace import Namespace, why_no_namespace

SCHEMAS = os.path.join(os.path.dirname(BINARY), "kubernetes")
ADDRESS = {f"{owner}-{i}": f"127.0.{subnet}.{i + 1}" for owner, subnet in (("framed-etcd", 1), ("framed", 2)) for i in range(3)}
CONFIG = "/etc/framed/framed.yaml"
TOKEN = "a-token-of-the-manifests"
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"'
MODELS = """\
import * as models from "./models.mjs";
import { readFileSync } from "fs";
for (const each of JSON.parse(readFileSync(process.argv[2])))
    try { new models[each.kind](each).validate(); } catch (error) { console.log(`${each.kind} ${each.metadata.name}: ${error.message}`); }
"""


# --- what they name

def check_selectors(checks, all_of):
    """Each selects pods that are there; what runs several pods selects its own, and no other's."""
    labels = {owner: template["metadata"]["labels"] for owner, template in manifests.templates(all_of)}

    def selected(selector):
        return {owner for owner, has in labels.items() if selector.items() <= has.items()}

    for (kind, name), manifest in all_of.items():
        spec = manifest.get("spec", {})
        if kind == "Service":
            checks.check(selected(spec["selector"]) == {name}, f"{kind} {name}: selects {selected(spec['selector'])}")
        if kind in ("StatefulSet", "PodDisruptionBudget"):
            chosen = selected(spec["selector"]["matchLabels"])
            checks.check(chosen == {name}, f"{kind} {name}: selects {chosen}")
        if kind == "StatefulSet":
            apart = spec["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            checks.check([selected(term["labelSelector"]["matchLabels"]) for term in apart] == [{name}], f"{name}: is apart from {apart}")
            service = all_of.get(("Service", spec["serviceName"]), {"spec": {}})
            checks.check(service["spec"].get("clusterIP") == "None", f"{name}: {spec['serviceName']} is no headless Service")
    policy = all_of["NetworkPolicy", "framed-etcd"]["spec"]
    checks.check(selected(policy["podSelector"]["matchLabels"]) == {"framed-etcd"}, f"the policy is of {policy['podSelector']}")
    let_in = {rule["ports"][0]["port"]: selected(rule["from"][0]["podSelector"]["matchLabels"]) for rule in policy["ingress"]}
    checks.check(let_in == {"client": {"framed", "framed-cameras"}, "peer": {"framed-etcd"}}, f"etcd lets in {let_in}")


def check_ports(checks, all_of):
    for owner, template in manifests.templates(all_of):
        container = template["spec"]["containers"][0]
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        service = all_of.get(("Service", owner), {"spec": {"ports": []}})
        served = {port["targetPort"]: port["port"] for port in service["spec"]["ports"]}
        checks.check(served == ports, f"{owner}: the Service has {served}, the container {ports}")
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if request := container.get(probe, {}).get("httpGet"):
                checks.check(request["port"] in ports, f"{owner}: {probe} asks {request['port']}")


def check_volumes(checks, all_of):
    for owner, template in manifests.templates(all_of):
        claims = all_of.get(("StatefulSet", owner), {"spec": {}})["spec"].get("volumeClaimTemplates", [])
        volumes = {volume["name"]: volume for volume in template["spec"].get("volumes", [])}
        names = {*volumes, *(claim["metadata"]["name"] for claim in claims)}
        container = template["spec"]["containers"][0]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        checks.check(names == mounted, f"{owner}: volumes {names}, mounted {mounted}")
        for volume in volumes.values():
            if config := volume.get("configMap"):
                checks.check(("ConfigMap", config["name"]) in all_of, f"{owner}: there is no ConfigMap {config['name']}")
        _, where = manifests.credentials(template)
        env = manifests.environment(container, "", "")
        checks.check(env.get("CREDENTIALS_DIRECTORY") == where, f"{owner}: credentials lie in {where}, looked up in {env}")
        writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        checks.check("STATE_DIRECTORY" not in env or env["STATE_DIRECTORY"] in writable, f"{owner}: state in {env}")


def check_secrets(checks, all_of):
    """Each ${NAME} of a configuration is in the environment or a Secret, whose keys the first lines say how to make."""
    said = "".join(manifests.text(name) for name in ("framed.yaml", "cameras.yaml"))
    made = {(name, key) for name, keys in re.findall(r"create secret generic (\S+)((?: --from-literal=\S+)+)", said)
            for key in re.findall(r"--from-literal=(\w+)", keys)}
    used = set()
    for name, key in (("framed", "framed.yaml"), ("framed-cameras", "cameras.yaml")):
        template = dict(manifests.templates(all_of))[name]
        files, _ = manifests.credentials(template)
        used |= set(files.values())
        known = {*files, *manifests.environment(template["spec"]["containers"][0], "", "")}
        wanted = set(re.findall(r"\$\{(\w+)\}", all_of["ConfigMap", name]["data"][key]))
        checks.check(wanted and wanted <= known, f"{key}: wants {wanted}, and has {known}")
    checks.check(made == used, f"Secrets: made {made}, used {used}")


def check_commands(checks, all_of):
    """What the files tell to run exists, and images are those of `make container`."""
    listed = set(re.findall(r"^  ([a-z]+) ", run("cluster", "--help")[1], re.M))
    said = "".join(manifests.text(name) for name in os.listdir(manifests.FOLDER))
    told = set(re.findall(r"framed cluster (\w+)", said))
    checks.check(told and told <= listed, f"framed cluster has {listed}, the files tell {told}")
    with open(f"{ROOT}/Makefile") as file:
        version = re.search(r"^VERSION := (\S+)", file.read(), re.M)[1]
    for owner, template in manifests.templates(all_of):
        container = template["spec"]["containers"][0]
        words = manifests.expanded([*container.get("command", []), *container.get("args", [])],
                                   manifests.environment(container, "name", "address"))
        checks.check(not any("$(" in word for word in words), f"{owner}: {words}")
        checks.check(owner == "framed-etcd" or container["image"] == f"framed:{version}", f"{owner}: {container['image']}")


# --- Kubernetes' schemas

def patched(all_of):
    patch = yaml.safe_load(manifests.text(manifests.PATCH))
    return [*all_of.values(), manifests.merged(all_of["StatefulSet", "framed"], patch)]


def against_schemas(every, where):
    """What the types of Kubernetes' API say of them, by which fields, types and what is required are told; and the models,
    for values and formats."""
    kinds = {each["kind"]: each["apiVersion"] for each in every}
    types = "".join(f'import type {{ I{kind} }} from "kubernetes-models/{version}";\n' for kind, version in kinds.items())
    with open(f"{SCHEMAS}/manifests.ts", "w") as file:
        file.write(types + "".join(f"const _{i}: I{each['kind']} = {json.dumps(each)};\n" for i, each in enumerate(every)))
    with open(f"{SCHEMAS}/models.mjs", "w") as file:
        file.write("".join(f'export {{ {kind} }} from "kubernetes-models/{version}";\n' for kind, version in kinds.items()))
    with open(f"{SCHEMAS}/validate.mjs", "w") as file:
        file.write(MODELS)
    with open(f"{where}/manifests.json", "w") as file:
        json.dump(every, file)
    said = ""
    for command in (["tsc", "--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "node", "--module", "es2020",
                     "--target", "es2020", "manifests.ts"], ["node", "validate.mjs", f"{where}/manifests.json"]):
        done = subprocess.run(command, capture_output=True, text=True, cwd=SCHEMAS, timeout=300)
        said += done.stdout + done.stderr
    return said


def check_schemas(checks, all_of, where):
    if not os.path.isdir(f"{SCHEMAS}/node_modules/kubernetes-models"):
        checks.skip("Kubernetes' schemas are not installed (make check-kubernetes)")
        return
    every = patched(all_of)
    said = against_schemas(every, where)
    checks.check(not said, f"the schemas say:\n{said}")
    for change, word in (({"spec": {"template": {"spec": {"terminationGraceSeconds": 1}}}}, "terminationGraceSeconds"),
                         ({"spec": {"replicas": "3"}}, "number"), ({"spec": {"podManagementPolicy": "Together"}}, "Together")):
        said = against_schemas([manifests.merged(every[-1], change)], where)
        checks.check(word in said, f"{change} is not found: {said}")
    gpu = every[-1]["spec"]["template"]["spec"]["containers"]
    checks.check(len(gpu) == 1 and gpu[0]["resources"]["limits"] == {"cpu": "4", "memory": "4Gi", "nvidia.com/gpu": 1}, f"{gpu}")


# --- a pod of them, here

class Pod:
    """A pod's container as a process here: addresses in the place of names, folders of its own in that of volumes."""

    def __init__(self, all_of, owner, name, where, prefix):
        self.name, self.where, self.prefix = name, f"{where}/{name}", prefix
        self.template = dict(manifests.templates(all_of))[owner]
        self.container = self.template["spec"]["containers"][0]
        self.folders = {mount["mountPath"]: f"{self.where}{mount['mountPath']}" for mount in self.container["volumeMounts"]}
        self.env = {key: self.here(value) for key, value in
                    manifests.environment(self.container, name, ADDRESS.get(name, "")).items()}
        for mount in self.container["volumeMounts"]:
            os.makedirs(self.folders[mount["mountPath"]], exist_ok=True)
        for volume in self.template["spec"].get("volumes", []):
            if config := volume.get("configMap"):
                self.fill(volume["name"], all_of["ConfigMap", config["name"]]["data"])
        files, _ = manifests.credentials(self.template)
        self.fill("credentials", {key: TOKEN for key in files})
        self.user = self.template["spec"]["securityContext"]["runAsUser"]
        subprocess.run(["chown", "-R", f"{self.user}:{self.user}", self.where], check=True)

    def fill(self, volume, files):
        for mount in self.container["volumeMounts"]:
            for key, value in files.items() if mount["name"] == volume else ():
                with open(f"{self.folders[mount['mountPath']]}/{key}", "w") as file:
                    file.write(self.here(value))

    def here(self, text):
        """Of a text of a manifest: what it is in this pod."""
        for name, address in ADDRESS.items():
            text = text.replace(f"{name}.framed-etcd", address)
        paths = "|".join(sorted(self.folders, key=len, reverse=True))
        text = re.sub(rf"(?<![\w/])(?:{paths})(?![\w-])", lambda match: self.folders[match[0]], text)
        return text.replace("0.0.0.0", ADDRESS.get(self.name, "0.0.0.0"))

    def words(self, program, *words):
        """A command as it runs here: where nothing but the pod's folders can be written, by its user, who has no rights."""
        root = ["unshare", "--mount", "sh", "-c", READ_ONLY, self.where] if self.container["securityContext"]["readOnlyRootFilesystem"] else []
        user = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
        return [*self.prefix, *root, *user, program, *map(self.here, manifests.expanded(words, self.env))]

    def process(self):
        program = [os.path.basename(word) for word in self.container.get("command", [])[:1]] or [BINARY]
        arguments = [*self.container.get("command", [])[1:], *self.container.get("args", [])]
        return Process(self.words(*program, *arguments), f"{self.where}.log", self.env)

    def run(self, *words):
        done = subprocess.run(self.words(*words), capture_output=True, text=True, env={**os.environ, **self.env}, timeout=30)
        return done.returncode, done.stdout, done.stderr

    def probe(self, name):
        """Whether a probe is good."""
        probe = self.container[name]
        if "exec" in probe:
            return self.run(*probe["exec"]["command"])[0] == 0
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        url = f"http://{ADDRESS[self.name]}:{ports[probe['httpGet']['port']]}{probe['httpGet']['path']}"
        script = f"import urllib.request as r; assert r.urlopen({url!r}, timeout=3).status == 200"
        return self.run("/usr/bin/python3", "-c", script)[0] == 0

    def cluster(self, *words):
        code, text, _ = self.run(BINARY, "cluster", *words, "--json", "-c", CONFIG)
        return json.loads(text) if code == 0 else {"node": "", "nodes": []}


def check_etcd(checks, pods):
    for pod in pods:
        checks.check(until(lambda pod=pod: pod.probe("readinessProbe"), 20), f"{pod.name}: is not ready")
        checks.check(pod.probe("livenessProbe"), f"{pod.name}: does not live")


def check_framed(checks, pods):
    for pod in pods:
        code, _, errors = pod.run(BINARY, "check", "-c", CONFIG)
        checks.check(code == 0 and not errors, f"{pod.name}: framed check: {errors}")
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            checks.check(until(lambda pod=pod, probe=probe: pod.probe(probe), 10), f"{pod.name}: {probe}")
        path = f"{pod.folders['/run/credentials']}/HTTP_TOKEN"
        with open(path, "w") as file:
            file.write("another")
        checks.check(not pod.probe("livenessProbe"), f"{pod.name}: the probe is good without the token")
        with open(path, "w") as file:
            file.write(TOKEN)
    members = lambda: [node["node"] for node in pods[0].cluster("status")["nodes"]]
    checks.check(until(lambda: members() == [pod.name for pod in pods], 10), f"nodes: {members()}")


def check_failover(checks, all_of, pods, stack, where, prefix):
    """The Job gives a camera to the cluster; at SIGTERM another pod has it at once, and a new pod of the name is taken."""
    job = stack.enter_context(Pod(all_of, "framed-cameras", "framed-cameras", where, prefix).process())
    checks.check(job.wait(20) == 0, f"the Job: {job.errors()}")
    place = lambda pod: pod.cluster("where", "gate")["node"]
    if not checks.check(until(lambda: place(pods[0]), 10), "the camera is nowhere"):
        return
    hit = next(pod for pod in pods if pod.name == place(pods[0]))
    others = [pod for pod in pods if pod is not hit]
    # It shows no picture: only its pod is not ready, and healthy all the same.
    checks.check(until(lambda: not hit.probe("readinessProbe"), 10) and hit.probe("livenessProbe"), f"{hit.name}: is ready")
    checks.check(others[0].probe("readinessProbe"), f"{others[0].name}: is not ready")
    checks.check(hit.running.stop() == 0, f"{hit.name}: does not stop: {hit.running.errors()}")
    checks.check(until(lambda: place(others[0]) not in ("", hit.name), 2), f"nobody takes the camera: {place(others[0])}")
    hit.running = stack.enter_context(hit.process())
    back = lambda: [node for node in others[0].cluster("status")["nodes"] if node["node"] == hit.name and not node["draining"]]
    checks.check(until(back, 10), f"{hit.name}: does not come back: {hit.running.errors()}")


def check_pods(checks, all_of, where):
    if why := why_no_namespace() or ("" if INSTALLED else "no etcd (Debian: etcd-server)"):
        checks.skip(why)
        return
    os.chmod(where, 0o755)
    with Namespace() as network, contextlib.ExitStack() as stack:
        pods = {owner: [Pod(all_of, owner, f"{owner}-{i}", where, network.prefix)
                        for i in range(all_of["StatefulSet", owner]["spec"]["replicas"])] for owner in ("framed-etcd", "framed")}
        for pod in (*pods["framed-etcd"], *pods["framed"]):
            pod.running = stack.enter_context(pod.process())
        check_etcd(checks, pods["framed-etcd"])
        check_framed(checks, pods["framed"])
        check_failover(checks, all_of, pods["framed"], stack, where, network.prefix)


def main():
    checks = Checks("test_kubernetes")
    all_of = manifests.load()
    checks.check(len(all_of) == 10, f"manifests: {sorted(all_of)}")
    check_selectors(checks, all_of)
    check_ports(checks, all_of)
    check_volumes(checks, all_of)
    check_secrets(checks, all_of)
    check_commands(checks, all_of)
    with folder() as where:
        check_schemas(checks, all_of, where)
        check_pods(checks, all_of, where)
    checks.end()


main()
