"""The processes on a box: a member of etcd and framed. Each can be killed, frozen and restarted."""
import json
import os
import signal
import subprocess
import time
import urllib.request

CLIENT, PEER, HTTP = 2379, 2380, 9090
TOKEN = "a-token-of-the-cluster-test"
OTHER_VERSION = os.environ.get("FRAMED_OTHER", os.path.join(os.environ.get("B", "build"), "framed-other-version"))
FAKETIME = "/usr/$LIB/faketime/libfaketimeMT.so.1"  # of Debian's libfaketime


class Process:
    def __init__(self, box, folder, name):
        self.box, self.name, self.child = box, name, None
        self.folder = os.path.join(folder, box.name)
        os.makedirs(self.folder, exist_ok=True)
        self.log = os.path.join(self.folder, f"{name}.log")

    def command(self):
        raise NotImplementedError

    def environment(self):
        return dict(os.environ)

    def start(self):
        with open(self.log, "a", encoding="utf-8") as log:
            self.child = subprocess.Popen([*self.box.prefix, *self.command()], stdout=log, stderr=log,
                                          stdin=subprocess.DEVNULL, env=self.environment())

    def runs(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, number):
        if self.runs():
            self.child.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        if self.child:
            self.child.wait()

    def stop(self, seconds=5):
        """Returns the duration in seconds."""
        began = time.monotonic()
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        return time.monotonic() - began

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()


class Etcd(Process):
    """In memory if the machine has /dev/shm, since its disk is not measured. Twice as fast as etcd's defaults, as
    framed(1) recommends for boxes of one network: a leader that dies with its box costs a second and a half less."""

    def __init__(self, box, folder, boxes, program="etcd", quota=0):
        super().__init__(box, folder, "etcd")
        self.boxes, self.program, self.quota = boxes, program, quota

    def command(self):
        own = f"http://{self.box.address}"
        members = ",".join(f"{box.name}=http://{box.address}:{PEER}" for box in self.boxes)
        return [self.program, "--name", self.box.name, "--data-dir", os.path.join(self.folder, "etcd"), "--pre-vote",
                "--listen-client-urls", f"{own}:{CLIENT},http://127.0.0.1:{CLIENT}", "--advertise-client-urls",
                f"{own}:{CLIENT}", "--listen-peer-urls", f"{own}:{PEER}", "--initial-advertise-peer-urls",
                f"{own}:{PEER}", "--initial-cluster", members, "--initial-cluster-state", "new", "--logger", "zap",
                "--log-level", "error", "--heartbeat-interval", "50", "--election-timeout", "500",
                "--auto-compaction-mode", "revision", "--auto-compaction-retention", "1000",
                *(["--quota-backend-bytes", str(self.quota)] if self.quota else [])]

    def ask(self, path, body, seconds=2):
        request = urllib.request.Request(f"http://{self.box.address}:{CLIENT}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return json.load(answer)

    def status(self):
        return self.ask("maintenance/status", {})

    def leads(self):
        try:
            status = self.status()
        except OSError:
            return False
        return status["leader"] == status["header"]["member_id"]


CONFIG = """\
backend: cpu
log: {{level: info}}
control: {folder}/control.sock
http: {address}:{port}
http_token: {token}
cluster:
  etcd: [{etcd}]
  site: yard
  node: {node}
  lease: {lease}s
  room: {room}
  alone: {alone}
"""


class Framed(Process):
    def __init__(self, box, folder, boxes, program, lease, alone, room=8):
        super().__init__(box, folder, "framed")
        self.program = self.first_program = program
        self.ahead = 0  # seconds of its clock
        self.config = os.path.join(self.folder, "framed.yaml")
        etcd = ", ".join(f"http://{each.address}:{CLIENT}" for each in boxes)
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(folder=self.folder, address=box.address, port=HTTP, token=TOKEN, etcd=etcd,
                                     node=box.name, lease=lease, room=room, alone=alone))

    def environment(self):
        clock = {"LD_PRELOAD": FAKETIME, "FAKETIME": f"+{self.ahead}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        return {**os.environ, "STATE_DIRECTORY": self.folder, **(clock if self.ahead else {})}

    def command(self):
        return [self.program, "run", "-c", self.config]

    def cluster(self, *arguments, seconds=10):
        done = subprocess.run([*self.box.prefix, self.program, "cluster", *arguments, "-c", self.config],
                              capture_output=True, text=True, timeout=seconds, check=False)
        return done.returncode, done.stdout, done.stderr
