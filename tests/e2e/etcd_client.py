"""The client of etcd, driven by lines (etcd_client.c)."""
import json
import os
import subprocess
import threading

from framed_client import BINARY, PATIENCE

PROGRAM = os.path.join(os.path.dirname(BINARY), "tests", "e2e", "etcd_client")


class Client:
    """A client of endpoints: each request returns its result; self.told collects the reports of watches."""

    def __init__(self, *endpoints, user=None, password=None, ca=None, cert=None, key=None):
        options = {"-u": user, "-p": password, "-a": ca, "-c": cert, "-k": key}
        arguments = [word for name, value in options.items() if value for word in (name, value)]
        self.child = subprocess.Popen([PROGRAM, *arguments, *endpoints], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ended, self.told, self.cpu, self.last = {}, [], [], 0
        self.changed = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            answer = json.loads(line)
            with self.changed:
                if "cpu" in answer:
                    self.cpu.append(answer["cpu"])
                elif "changes" in answer:
                    self.told.append(answer)
                else:
                    assert answer["id"] not in self.ended, f"twice: {answer}"
                    self.ended[answer["id"]] = answer
                self.changed.notify_all()

    def send(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def wait_for(self, condition, seconds=10):
        with self.changed:
            return self.changed.wait_for(condition, seconds * PATIENCE)

    def begin(self, name, ms, *words):
        """Sends a request without waiting; returns its number."""
        self.last += 1
        self.send(" ".join(map(str, (name, self.last, ms, *words))))
        return self.last

    def end(self, number):
        self.wait_for(lambda: number in self.ended, 20)
        return self.ended[number]

    def ask(self, name, ms, *words):
        return self.end(self.begin(name, ms, *words))

    def watch(self, prefix, revision):
        self.send(f"watch {len(self.told)} {prefix} {revision}")

    def events(self):
        """Returns the changes that the watch reported: (key, value or None, revision)."""
        with self.changed:
            return [(entry["key"], entry["value"] if entry["version"] else None, entry["mod"])
                    for answer in self.told for entry in answer.get("entries", ())]

    def used(self):
        """Returns the processor time used so far, in s."""
        n = len(self.cpu)
        self.send("cpu")
        self.wait_for(lambda: len(self.cpu) > n)
        return self.cpu[-1]

    def memory(self):
        """Returns the largest resident size so far, in MiB."""
        with open(f"/proc/{self.child.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024

    def close(self):
        """Returns the exit status, which is not 0 after a crash or a sanitizer's report."""
        try:
            self.send("quit")
            return self.child.wait(10 * PATIENCE)
        except (OSError, subprocess.TimeoutExpired):
            self.child.kill()
            return self.child.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
