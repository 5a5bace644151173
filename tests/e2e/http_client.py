"""A client of framed's HTTP service."""
import http.client
import json
import re
import socket

from framed_client import until


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Client:
    """get() returns (status, headers, body) with the body as text, get_bytes() with its bytes."""

    def __init__(self, port=None, path=None, token=None):
        self.port, self.path = port, path
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, page, method="GET", body=None, headers=None):
        status, headers, body = self.get_bytes(page, method, body, headers)
        return status, headers, body.decode()

    def get_bytes(self, page, method="GET", body=None, headers=None):
        connection = Unix(self.path) if self.path else http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, page, body, headers if headers is not None else self.headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()


class Editor(Client):
    """Changes cameras: each method returns (status, the answer's JSON)."""

    def ask(self, method, camera, action="", body=None):
        status, _, said = self.get(f"/api/v1/cameras/{camera}{action}", method, body, {"Content-Type": "application/json", **self.headers})
        return status, json.loads(said)

    def put(self, camera, keys):
        return self.ask("PUT", camera, body=json.dumps(keys))

    def delete(self, camera):
        return self.ask("DELETE", camera)

    def pause(self, camera):
        return self.ask("POST", camera, "/pause", "")

    def resume(self, camera):
        return self.ask("POST", camera, "/resume", "")

    def states(self):
        return {one["name"]: one["state"] for one in json.loads(self.get("/api/v1/cameras")[2])["cameras"]}


def port_of(framed):
    found = until(lambda: re.search(r"http on \S+ port (\d+)", framed.errors()), 10)
    return int(found[1]) if found else None
