#!/usr/bin/python3
"""The rules for Prometheus and the dashboard for Grafana: promtool accepts the rules, each alert is raised by its fault and none in a clean hour, and
all their metrics and labels exist in framed."""
import glob
import json
import os
import re
import shutil
import subprocess

import yaml

from framed_client import ROOT, Checks, Framed, Reader, folder, make_clip, until

MONITORING = os.path.join(ROOT, "scripts", "monitoring")
RULES = os.path.join(MONITORING, "framed.rules.yml")
CONFIG = """
control: {where}/own.sock
notify: {{webhook: "http://127.0.0.1:1/x"}}
cameras:
  gate:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    stats: true
    outputs:
      o: {{size: 64x64, sink: "unix:{where}/o.sock"}}
batches:
  all: {{cameras: "*", size: 64x64, count: 1, sink: "unix:{where}/all.sock"}}
"""
# Metrics of hardware, inputs and an etcd that this test does not have: the sources must contain them.
ELSEWHERE = ("framed_device_", "framed_nvdec_", "framed_rtp_", "framed_cluster_")
SELECTOR = re.compile(r"\b(framed_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')


def rules():
    with open(RULES) as file:
        return [rule for group in yaml.safe_load(file)["groups"] for rule in group["rules"]]


def dashboard_queries():
    with open(os.path.join(MONITORING, "framed-dashboard.json")) as file:
        dashboard = json.load(file)
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return queries + [variable["definition"] for variable in dashboard["templating"]["list"] if "definition" in variable]


def check_rules(checks):
    for command in (["check", "rules", RULES], ["test", "rules", os.path.join(MONITORING, "framed.rules.test.yml")]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, timeout=60)
        checks.check(done.returncode == 0, f"promtool {command[0]}: {done.stdout}{done.stderr}")


def check_tests(checks):
    """Each rule has a test that raises it, and must stay silent in the test of a clean hour."""
    with open(os.path.join(MONITORING, "framed.rules.test.yml")) as file:
        clean, *tests = yaml.safe_load(file)["tests"]
    raised = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    silent = {case["alertname"] for case in clean["alert_rule_test"] if not case["exp_alerts"]}
    names = {rule["alert"] for rule in rules()}
    checks.check(names == raised == silent, f"rules {names}, raised {raised}, silent {silent}")


def scraped(where):
    """Returns framed's metrics: name -> its labels, empty if it has no sample."""
    make_clip(f"{where}/clip.mp4")
    with Framed(where, CONFIG.format(where=where)) as framed:
        readers = [Reader(f"unix:{where}/{name}.sock", limit=5) for name in ("o", "all")]
        until(lambda: all(reader.count == 5 for reader in readers), 20)
        until(lambda: framed.live_metrics().all("framed_camera_availability_ratio"), 10)
        metrics = framed.live_metrics()
        framed.stop()
    labels = {}
    with open(framed.counters) as file:
        for name in re.findall(r"^# TYPE (\w+) ", file.read(), re.M):
            labels[name] = set()
    for name, has, _ in metrics.rows:
        labels.setdefault(name, set()).update(has)
    return labels


def check_names(checks, labels):
    sources = "".join(open(path).read() for path in glob.glob(os.path.join(ROOT, "daemon", "service", "metrics*.c")))
    queries = [rule["expr"] for rule in rules()] + dashboard_queries()
    checks.check(len(queries) > 30, f"{len(queries)} queries")
    for query in queries:
        for name, matchers in SELECTOR.findall(query):
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            if name.startswith(ELSEWHERE):
                checks.check(f'"{family}"' in sources or f'"{family}%s' in sources or f'"{family},' in sources
                             or f'"{family}{{' in sources, f"{name} is no metric of framed: {query}")
                continue
            known = labels.get(name) or labels.get(family)
            checks.check(name in labels or family in labels, f"{name} is no metric of framed: {query}")
            for label in MATCHER.findall(matchers):
                checks.check(label == "instance" or known and label in known, f"{name} has no label {label}: {query}")


def main():
    checks = Checks("monitoring")
    if shutil.which("promtool"):
        check_rules(checks)
    else:
        checks.skip("promtool is not installed (Debian's prometheus)")
    check_tests(checks)
    with folder() as where:
        check_names(checks, scraped(where))
    checks.end()


main()
