"""Real NATS servers on loopback, and a client of what the tests need: subscribers, requests, JetStream."""
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import threading

from framed_client import PATIENCE, free_port, until

INSTALLED = shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin")


class Server:
    """Serves on the same port over stop and start. `settings`: lines of a configuration."""

    def __init__(self, where, settings="", jetstream=False):
        self.port, self.log, self.child = free_port(), f"{where}/nats.log", None
        self.url = f"nats://127.0.0.1:{self.port}"
        self.settings = f"{where}/nats.conf"
        store = f'jetstream {{store_dir: "{where}/jetstream"}}\n' if jetstream else ""
        with open(self.settings, "w") as file:
            file.write(f"listen: 127.0.0.1:{self.port}\n{store}{settings}\n")
        self.start()

    def start(self):
        with open(self.log, "a") as log:
            self.child = subprocess.Popen([INSTALLED, "-c", self.settings], stdout=log, stderr=log)
        if not until(self.answers, 10 * PATIENCE):
            raise RuntimeError(open(self.log).read())

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        """As a box that loses its power."""
        self.child.kill()
        self.child.wait()

    def freeze(self):
        """Connections are taken, and nothing is answered."""
        self.child.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.child.send_signal(signal.SIGCONT)

    def text(self):
        with open(self.log) as log:
            return log.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Client(threading.Thread):
    """Takes messages of subjects: self.messages is a list of (subject, payload), those of inboxes apart."""

    def __init__(self, port, *subjects, user=None, password=None, tls=None):
        super().__init__(daemon=True)
        self.messages, self.answers, self.pulled = [], {}, []
        self.pongs, self.number = 0, itertools.count()
        self.peer = socket.create_connection(("127.0.0.1", port), timeout=10 * PATIENCE)
        self.inbox, self.arrived = f"_INBOX.{os.urandom(8).hex()}", threading.Condition()
        if tls:  # the server says who it is before
            while self.peer.recv(1) != b"\n":
                pass
            self.peer = tls.wrap_socket(self.peer)
        options = {"verbose": False, "headers": True, "no_responders": True}
        if user:
            options |= {"user": user, "pass": password}
        self.peer.sendall(f"CONNECT {json.dumps(options)}\r\nSUB {self.inbox}.* 0\r\n".encode())
        for number, subject in enumerate(subjects, 1):
            self.peer.sendall(f"SUB {subject} {number}\r\n".encode())
        self.peer.settimeout(None)
        self.start()
        self.flush()

    def run(self):
        try:
            with self.peer.makefile("rb") as stream:
                while line := stream.readline():
                    self.take(line.decode().split(), stream)
        except (OSError, ValueError):
            pass

    def take(self, words, stream):
        if words[0] == "PING":
            self.peer.sendall(b"PONG\r\n")
        elif words[0] == "PONG":
            with self.arrived:
                self.pongs += 1
                self.arrived.notify_all()
        elif words[0] in ("MSG", "HMSG"):
            length, head = int(words[-1]), int(words[-2]) if words[0] == "HMSG" else 0
            reply = words[3] if len(words) == (6 if head else 5) else None
            body = stream.read(length + 2)[:-2]
            with self.arrived:
                if words[1].startswith(self.inbox):
                    self.answers.setdefault(words[1], []).append(body[head:])
                elif words[2] == "0":  # a consumer's, asked for by an inbox
                    self.pulled.append((reply, body[head:]))
                else:
                    self.messages.append((words[1], body[head:]))
                self.arrived.notify_all()

    def flush(self):
        """Until the server has done all that was asked before."""
        before = self.pongs
        self.peer.sendall(b"PING\r\n")
        with self.arrived:
            assert self.arrived.wait_for(lambda: self.pongs > before, 10 * PATIENCE), "no PONG"

    def payloads(self, subject=None):
        return [payload for name, payload in list(self.messages) if subject in (None, name)]

    def send(self, subject, payload, reply=""):
        self.peer.sendall(f"PUB {subject} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n")

    def request(self, subject, payload=b""):
        """The payload of the answer."""
        inbox = f"{self.inbox}.{next(self.number)}"
        self.send(subject, payload, inbox)
        with self.arrived:
            assert self.arrived.wait_for(lambda: inbox in self.answers, 10 * PATIENCE), f"no answer to {subject}"
            return self.answers.pop(inbox)[0]

    def close(self):
        self.peer.close()

    # --- JetStream

    def ask(self, what, **body):
        """The answer of the API."""
        answer = json.loads(self.request(f"$JS.API.{what}", json.dumps(body).encode()))
        assert "error" not in answer, answer
        return answer

    def add_stream(self, name, subjects, **more):
        self.ask(f"STREAM.CREATE.{name}", **{"name": name, "subjects": subjects, "retention": "limits", "storage": "memory",
                                             "num_replicas": 1, "discard": "new", **more})

    def count(self, name):
        """Messages in the stream."""
        return self.ask(f"STREAM.INFO.{name}")["state"]["messages"]

    def add_consumer(self, stream, name):
        """A pull consumer, which acknowledges each message."""
        self.ask(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", stream_name=stream,
                 config={"durable_name": name, "ack_policy": "explicit", "deliver_policy": "all"})

    def pull(self, stream, name, batch=100):
        """Up to so many messages of the consumer, which are acknowledged: what the stream has now."""
        inbox = f"{self.inbox}.{next(self.number)}"
        body = json.dumps({"batch": batch, "no_wait": True}).encode()
        self.send(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}", body, inbox)
        found = []
        while True:
            with self.arrived:
                assert self.arrived.wait_for(lambda: self.pulled or inbox in self.answers, 10 * PATIENCE), "no answer to a pull"
                for reply, payload in self.pulled:
                    found.append(payload)
                    self.send(reply, b"+ACK")
                self.pulled.clear()
                if len(found) >= batch or self.answers.pop(inbox, None):  # a status: there are no more
                    return found
