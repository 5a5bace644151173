#!/usr/bin/python3
"""`framed schema` is a JSON Schema that accepts the same documents as framed. FRAMED names the program."""
import json
import os
import subprocess
import sys

import jsonschema
import yaml

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import Checks

FRAMED = os.environ.get("FRAMED", "build/framed")


def framed(*arguments, text=None):
    return subprocess.run([FRAMED, *arguments], input=text, capture_output=True, text=True, timeout=30)


def properties(schema):
    """Yields every property below a schema, with its name."""
    for name, value in schema.get("properties", {}).items():
        yield name, value
        yield from properties(value)
    for value in schema.get("patternProperties", {}).values():
        yield from properties(value)


def camera(**keys):
    return {"cameras": {"gate": {"url": "x", "outputs": {"o": {"sink": "tcp:0"}}, **keys}}}


def output(**keys):
    return camera(outputs={"o": {"sink": "tcp:0", **keys}})


def batch(**keys):
    return {"cameras": {"gate": {"url": "x", "rois": {"door": [0, 0, 8, 8]}}}, "batches": {"b": {"cameras": "gate", "sink": "tcp:0", **keys}}}


PROCESSOR = min(os.sched_getaffinity(0))  # a processor that check may use, which it requires
GOOD = [
    camera(),
    camera(transport="${TRANSPORT:-tcp}", fps=12.5, options={"probesize": 5000, "fflags": "nobuffer"}, decode_threads="auto"),
    output(size="1x1", fill=[1, 2, 3], crop=[0, 0, 8, 8], affine=[1, 0, 0.5, 0, 1, 0], sink="unix:/a", mode="0660"),
    output(preset="ultralytics", tensor={"dtype": "f16"}),
    {**output(preset="yolox", fit="mmdet"), "defaults": {"preset": "imagenet-stretch"}},
    output(tensor={"dtype": "f32", "scale": "1/255", "mean": [0.5, 0.5, 0.5], "std": 2}, max_age="250ms", fit="none"),
    output(fill=["${LEVEL:-7}", 0, 0], tensor={"mean": ["${MEAN:-1}", 0, 0]}, mode="0660", sink="unix:/a"),
    output(sink="file:/tmp/%F-%H.npy", segment="10m"),
    output(sink="file:/tmp/%F-%H.npy", segment="1.5GiB"),
    output(segment=0),
    output(gate="motion"),
    output(gate={"motion": True, "hold": "2s", "every": 0}),
    {**output(), "defaults": {"gate": "motion"}},
    camera(stats=True, grid="16x9", motion={"sensitivity": 60, "mask": ["0,0 9,0 9,9", "${MASK:-1,2,3,4,5,6}"], "min_area": 0}),
    output(max_age=0, mode=660, sink="unix:/a"),
    output(sink="ring:/a", memory="cuda", protocol="framed", mode="0660", group="video"),
    output(sink="ring:/a", memory="cuda-ipc"),
    output(sink="ring:/a", memory="host", shared="/gate-1"),
    {**camera(picture="3840x2160"), "cuda": {"decoders": 14, "memory": "139GiB"}},
    {**camera(), "cuda": {"decoders": "auto", "memory": "auto"}},
    {**camera(), "cpu": {"workers": 3, "pin": f"{PROCESSOR},0-3,8"}},
    {**camera(), "cpu": {"pin": PROCESSOR}},
    {**camera(), "defaults": {"fps": 5, "slots": 9, "tensor": {"dtype": "f32"}}, "cuda": {"band": "8MiB"}},
    {**camera(), "control": "/run/framed/a.sock", "http": 8780, "http_token": "0123456789abcdef"},
    {**camera(), "control": "off", "http": "[::1]:8780"},
    {**camera(), "control": "auto", "http": "unix:/run/framed/http.sock"},
    {**camera(rotate="ignore"), "defaults": {"rotate": 90}},
    {**output(rotate=90), "defaults": {"rotate": "ignore"}},
]
# The contract's batch, and one for each other key.
GOOD += [
    batch(cameras=["gate*", "yard-?", "!yard-9"], count=16, wait="auto", per_camera=1, order="arrival", tail="cut", size="640x640",
          tensor={"dtype": "f16", "scale": "1/255"}, slots=3, memory="cuda", sink="ring:/run/framed/detector.ring"),
    batch(count="auto", wait=0, order="fixed", tail="zero"),
    batch(wait="250ms", roi="all"),
    batch(roi="door", cameras=["${GATES:-gate}"]),
    batch(tiles={"size": 640, "overlap": "20%", "full": True}),
    batch(tiles={"size": "none"}),
    camera(rois={"door": [0, "${LEFT:-0}", 8, 8]}),
    {**batch(), "defaults": {"count": 4, "tail": "zero", "roi": "all"}},
]
BAD = [
    output(gate="still"),
    output(gate=True),
    output(gate={"motion": True, "sensitivity": 4}),
    camera(stats=True, motion={"mask": ["0,0 9,0"]}),
    camera(stats=True, motion={"mask": [[0, 0, 9, 0, 9, 9]]}),
    camera(stats=True, motion={"mask": ["0,,0 9,0 9,9"]}),
    camera(stats=True, motion="mask"),
    batch(cameras=[]),
    batch(cameras="ga te"),
    batch(cameras="!"),
    {"cameras": camera()["cameras"], "batches": {"b": {"sink": "tcp:0"}}},
    {"cameras": camera()["cameras"], "batches": {"b": {"cameras": "gate"}}},
    {"cameras": camera()["cameras"], "batches": {}},
    batch(count=0),
    batch(count=257),
    batch(wait="auto "),
    batch(wait=1),
    batch(order="random"),
    batch(tail=0),
    batch(tiles={"size": 7}),
    batch(tiles={"size": 640, "overlap": 20}),
    output(count=4),
    output(cameras="gate"),
    output(tiles={"size": 640}),
    {**camera(), "defaults": {"cameras": "gate"}},
    {**camera(), "defaults": {"tiles": {"size": 640}}},
    camera(rois={"all": [0, 0, 8, 8]}),
    camera(rois={"a b": [0, 0, 8, 8]}),
    camera(rois={"door": [0, 0, 8]}),
    camera(rois={"door": "0,0,8,8"}),
    {},
    {"cameras": {}},
    {**camera(), "backnd": "cpu"},
    {**camera(), "defaults": {"url": "x"}},
    {**camera(), "cuda": {"band": 8}},
    {"cameras": {"bad name": camera()["cameras"]["gate"]}},
    {**camera(), "defaults": {"rotate": "sideways"}},
    camera(rotate=90),
    output(rotate="ignore"),
    camera(outputs={}),
    camera(outputs={"sixteen_letters_": {"sink": "tcp:0"}}),
    camera(outputs={"o": {}}),
    camera(loop="yes"),
    camera(media_timeout=5),
    camera(media_timeout="5 s"),
    camera(media_timeout="1..5s"),
    camera(media_timeout=0),
    camera(options={f"option{i}": i for i in range(65)}),
    output(mode=99999, sink="unix:/a"),
    output(mode="1777", sink="unix:/a"),
    output(sink="file:/tmp/%F.npy", segment=10),
    output(sink="file:/tmp/%F.npy", segment="10 m"),
    output(slots=2),
    output(size="640"),
    output(fill=[1, 2]),
    output(fit="fill"),
    output(filter="lanczos"),
    output(preset="yolo"),
    output(sink="/tmp/x"),
    output(sink="ring:"),
    output(sink="ring:/a", memory="pinned"),
    output(sink="ring:/a", shared="gate"),
    output(sink="ring:/a", shared="/"),
    output(sink="ring:/a", shared="/gate/1"),
    output(sink="ring:/a", shared="/" + 39 * "g"),
    {**camera(), "defaults": {"shared": "/gate"}},
    camera(picture="large"),
    {**camera(), "cuda": {"decoders": 65}},
    {**camera(), "cuda": {"memory": 139}},
    output(tensor={"dtyp": "u8"}),
    {**camera(), "control": "of"},
    {**camera(), "http": "127.0.0.1"},
    {**camera(), "http": "unix:"},
]


def check_defaults(checks, validator):
    text = framed("defaults").stdout
    mistakes = [error.message for error in validator.iter_errors(yaml.safe_load(text))]
    checks.check(not mistakes, f"defaults: {mistakes}")
    reply = framed("check", "-c", "-", text=text)
    checks.check(reply.returncode == 0, f"check of defaults: {reply.stderr}")


def check_properties(checks, schema):
    for name, value in properties(schema):
        checks.check(value.get("description"), f"{name} has no description")
        if "default" in value:
            own = jsonschema.Draft7Validator({**value, "definitions": schema["definitions"]})
            checks.check(own.is_valid(value["default"]), f"{name} has a default that it does not allow")


def check_documents(checks, validator, documents, good):
    """The schema and `framed check` agree on the documents."""
    for document in documents:
        checks.check(validator.is_valid(document) == good, f"schema: {document}")
        reply = framed("check", "-c", "-", text=yaml.safe_dump(document))
        checks.check(reply.returncode == (0 if good else 78), f"check: {document}: {reply.stderr}")


def main():
    checks = Checks("config/schema")
    schema = json.loads(framed("schema").stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    check_defaults(checks, validator)
    check_properties(checks, schema)
    check_documents(checks, validator, GOOD, True)
    check_documents(checks, validator, BAD, False)
    checks.end()


main()
