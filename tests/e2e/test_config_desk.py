#!/usr/bin/python3
"""The configuration by HTTP: the file's text without secrets, the changes that a reload would make, checks of a text without effect, and reloads."""
import json
import os
import re

from api_schemas import Api
from framed_client import Checks, Framed, folder, free_port, until
from http_client import Client, port_of

TOKEN = "Zorngiebel-0123456789"
CONFIG = """# once rtsp://viewer:Zorngiebel@127.0.0.1/old
http: 0
http_token: Zorngiebel-0123456789
http_write: true
cameras:
  gate:
    url: rtsp://viewer:Zorngiebel@127.0.0.1:{port}/stream
    outputs:
      o: {{size: 64x64, sink: "unix:{where}/o.sock"}}
  yard:
    url: rtsp://viewer:${{PASSWORD}}@127.0.0.1:{port}/stream
    outputs:
      o: {{size: 64x64, sink: "tcp:0"}}
"""
api = Api()


class Desk:
    """Sends requests, checks each answer against the API's description, and records all answers."""

    def __init__(self, checks, client):
        self.checks, self.client, self.heard = checks, client, ""

    def ask(self, method, path, body=None, raw=None):
        headers = {**self.client.headers, "Content-Type": "application/json"}
        text = raw if raw is not None else json.dumps(body) if body is not None else None
        status, headers, text = self.client.get(path, method, text, headers)
        self.heard += text
        wrong = api.judge(method, path, status, headers["Content-Type"], text)
        self.checks.check(not wrong, wrong)
        return status, json.loads(text)

    def show(self):
        return self.ask("GET", "/api/v1/config")[1]

    def mistakes(self, text):
        status, answer = self.ask("POST", "/api/v1/check", {"text": text})
        return answer["mistakes"] if status == 200 else answer


def write(framed, text):
    with open(framed.config, "w") as file:
        file.write(text)


def check_shown(checks, desk, framed, text):
    shown = desk.show()
    checks.check(shown["path"] == framed.config and shown["mistakes"] == [] and shown["changes"] == [], f"{shown}")
    running = shown["running"]
    checks.check(shown["text"] == running and "#" not in running, f"the file is shown as\n{shown['text']}")
    checks.check(all(part in running for part in ("http_token: \"***\"", "  gate:\n    url: \"rtsp://127.0.0.1:", "        size: 64x64\n")),
                 f"what runs is\n{running}")
    checks.check("password" not in running and desk.mistakes(running.replace('"***"', '"0123456789abcdef"')) == [], f"{running}")
    write(framed, text.replace("64x64", "32x32", 1).replace("  yard:", "  back:"))
    changes = {change["text"] for change in desk.show()["changes"]}
    wanted = {"cameras.gate.outputs.o: size changes", "cameras.back is added", "cameras.yard is removed"}
    checks.check(changes == wanted, f"a reload would change {changes}")
    write(framed, text.replace("sink:", "sinc:", 1) + "x: [")
    shown = desk.show()
    places = [(mistake["line"], mistake["key"]) for mistake in shown["mistakes"]]
    checks.check(places and shown["changes"] == [] and shown["text"] is None, f"{shown}")
    os.unlink(framed.config)
    shown = desk.show()
    checks.check(shown["text"] is None and "No such file" in shown["mistakes"][0]["text"], f"no file: {shown}")
    write(framed, text)


def check_checks(checks, desk, framed, text):
    checks.check(desk.mistakes(text) == [], "a good text is refused")
    found = desk.mistakes(text.replace("sink:", "sinc:", 1))
    checks.check([(one["line"], one["column"], one["key"]) for one in found] ==
                 [(9, 10, "cameras.gate.outputs.o.sink"), (9, 25, "cameras.gate.outputs.o.sinc")] or
                 sorted((one["line"], one["key"].rsplit(".", 1)[1]) for one in found) == [(9, "sinc"), (9, "sink")], f"{found}")
    found = desk.mistakes("cameras:\n  gate: [")
    checks.check(found and found[0]["key"] == "yaml" and found[0]["line"] >= 2, f"no YAML: {found}")
    found = desk.mistakes(text.replace("http: 0", "backend: cpu\nhttp: 0").replace("backend: cpu", "cpu: {workers: 77}"))
    checks.check(found and "restart" in found[0]["text"], f"what needs a restart: {found}")
    for raw in ("", "{", "[]", "{}", '{"text": 3}', '{"text": "a\\u0000b"}', '"text"'):
        status, answer = desk.ask("POST", "/api/v1/check", raw=raw)
        checks.check(status == 400, f"{raw}: {status} {answer}")
    with open(framed.config) as file:
        checks.check(file.read() == text, "a check has written")
    checks.check(desk.show()["changes"] == [], "a check has an effect")


def check_reloads(checks, desk, framed, text):
    write(framed, text.replace("64x64", "32x32", 1))
    status, answer = desk.ask("POST", "/api/v1/reload")
    checks.check(status == 200 and answer["done"].endswith("1 output of those kept changed"), f"{status} {answer}")
    shown = desk.show()
    checks.check(shown["changes"] == [] and "size: 32x32" in shown["running"], "what runs is not what was reloaded")
    write(framed, text.replace("64x64", "64", 1))
    status, answer = desk.ask("POST", "/api/v1/reload")
    checks.check(status == 409 and answer["mistakes"][0]["line"] == 9 and "size" in answer["error"], f"{status} {answer}")
    write(framed, text.replace("http_write: true", "http_write: false"))
    checks.check(desk.ask("POST", "/api/v1/reload")[0] == 200, "reload")
    checks.check(desk.ask("POST", "/api/v1/reload")[0] == 403, "a reload without http_write")
    write(framed, text)
    changes = [change["text"] for change in desk.show()["changes"]]
    checks.check(desk.mistakes(text) == [] and changes == ["http_write changes"], f"looking without http_write: {changes}")


def main():
    checks = Checks("config_desk")
    with folder() as where:
        text = CONFIG.format(where=where, port=free_port())
        with Framed(where, text, {"PASSWORD": "Zorngiebel"}) as framed:
            client = Client(port_of(framed), token=TOKEN)
            until(lambda: client.get("/healthz")[0] == 200, 10)
            desk = Desk(checks, client)
            check_shown(checks, desk, framed, text)
            check_checks(checks, desk, framed, text)
            check_reloads(checks, desk, framed, text)
            checks.check("zorn" not in desk.heard.lower(), f"a secret shows in {desk.heard}")
            checks.check(client.get("/api/v1/config", headers={})[0] == 401, "without a token")
            checks.check(framed.stop() == 0, framed.errors())
    checks.end()


main()
