"""A reader of the view stream: JPEGs of many cameras over one response."""
import http.client
import json
import struct
import time

HEADER = struct.Struct("<IHHIIQQ")
FACTS, JPEG, ALIVE = range(3)


class Message:
    def __init__(self, header, body):
        _, self.kind, self.index, self.epoch, self.flags, self.capture_ns, self.sequence = header
        self.body = body
        self.at = time.time()

    def facts(self):
        return json.loads(self.body)


class View:
    """Reads the tiles, such as "gate:320": read() returns one message after the other."""

    def __init__(self, port, tiles, fps=None, token=None, timeout=20):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        page = f"/api/v1/view?c={tiles}" + (f"&fps={fps}" if fps else "")
        self.connection.request("GET", page, headers={"Authorization": f"Bearer {token}"} if token else {})
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.error = None if self.status == 200 else json.loads(self.response.read())["error"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.response.close()
        self.connection.close()

    def take(self, size):
        data = b""
        while len(data) < size:
            piece = self.response.read(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def read(self):
        header = HEADER.unpack(self.take(HEADER.size))
        return Message(header, self.take(header[0]))

    def pictures(self, count):
        """Returns `count` JPEGs, and the facts of each index."""
        facts, found = {}, []
        while len(found) < count:
            message = self.read()
            if message.kind == FACTS:
                facts[message.index] = message.facts()
            elif message.kind == JPEG:
                found.append(message)
        return found, facts
