#!/usr/bin/python3
"""Lines and alerts by NATS: what arrives is what a socket's reader gets; a server that is away, mute or full, or that does
not want what comes, costs the outputs that name it lines, which are counted and said once, and nobody else anything."""
import json
import os
import re
import socket
import ssl
import threading
import time

from certificate import make_certificate
from detector import Detector, Lines, rows
from framed_client import PATIENCE, Checks, Framed, folder, free_port, make_clip, status, until
from nats_client import INSTALLED, Client, Server

PASSWORD, WRONG = "Natternzahn5", "Blindschleiche6"
HEAD = """
control: {where}/control.sock
backend: cpu
{more}
cameras:
"""
CAMERA = """
  {name}:
    url: {where}/{clip}.mp4
    loop: true
    pace: realtime
    outputs: {{{outputs}}}
"""


def config(where, outputs, more="", clip="clip"):
    """Outputs by name, of a camera each: a sink of kernel stats, or all of its keys. The clip is not that of `u`."""
    text = HEAD.format(where=where, more=more)
    for name, keys in outputs.items():
        keys = keys if keys.startswith("{") else f'{{kernel: stats, sink: "{keys}"}}'
        text += CAMERA.format(where=where, clip="clip" if name == "u" else clip, name=name, outputs=f"o: {keys}")
    return text


def output(where, name):
    return until(lambda: status(where).get(name), 10 * PATIENCE)["outputs"][0]


def account(where, name):
    """{offered, delivered, lost} lines of the camera's output."""
    shown = output(where, name)
    return shown["lines"] or shown["results"]["lines"]


def adds_up(checks, framed, where, name, metric="framed_lines"):
    """After the end: the counters, of which no line waits any more."""
    metrics = framed.metrics()
    offered, delivered = (metrics.sum(f"{metric}_total", camera=name, output="o", stage=stage) for stage in ("offered", "delivered"))
    lost = metrics.sum(f"{metric}_lost_total", camera=name, output="o")
    checks.check(offered == delivered + lost > 0, f"{name}: {offered} offered, {delivered} delivered, {lost} lost")
    return delivered, lost


def sequences(payloads):
    return [json.loads(payload)["seq"] for payload in payloads]


def same_but_name(payload, line):
    payload, line = json.loads(payload), json.loads(line)
    return {**payload, "output": ""} == {**line, "output": ""}


def said(framed, *texts):
    """How many lines of the log have each of the texts."""
    return [sum(text in line for line in framed.errors().splitlines()) for text in texts]


def check_lines(checks, where):
    """A subscriber gets what readers of sockets get, of detections and of statistics, by one connection for all."""
    monitor = free_port()
    with Server(where, f'http: "127.0.0.1:{monitor}"') as server:
        subscriber = Client(server.port, "framed.>")
        ring = (f'{{size: 320x320, fps: 15, sink: "ring:{where}/o.ring", detections: {{sink: "{server.url}/framed.found"}}}}')
        text = config(where, {"ring": ring, "a": f"{server.url}/framed.a", "b": f"{server.url}/framed.b"})
        text = text.replace("/framed.a\"}", f'/framed.a"}}, u: {{kernel: stats, sink: "unix:{where}/u.sock"}}')
        with Framed(where, text) as framed:
            until(lambda: os.path.exists(f"{where}/u.sock"), 10 * PATIENCE)
            reader, detector = Lines(f"unix:{where}/u.sock"), Detector(f"{where}/o.ring", rows(50))
            until(lambda: len(detector.sequences) >= 30 and len(reader.text.splitlines()) >= 30, 20 * PATIENCE)
            detector.stop()
            clients = connections(monitor)
            checks.check(len(clients) == 2, f"connections: {clients}")
            shown = output(where, "ring")["results"]["lines"]
            checks.check(shown["clients"] == 1 and output(where, "a")["sink"] == f"{server.url}/framed.a", f"{shown}")
            checks.check(framed.stop() == 0, framed.errors())
        reader.join(10)
        subscriber.flush()
    came = [json.loads(payload) for payload in subscriber.payloads("framed.found")]
    checks.check([(line["epoch"], line["seq"]) for line in came] == detector.sequences, f"{len(came)} lines of results")
    checks.check(all(len(line["objects"]) == 50 and line["camera"] == "ring" for line in came), f"{came[:1]}")
    by_number = dict(zip(sequences(subscriber.payloads("framed.a")), subscriber.payloads("framed.a")))
    lines = reader.text.splitlines()
    checks.check(len(lines) >= 30 and all(same_but_name(by_number[json.loads(line)["seq"]], line) for line in lines),
                 f"{lines[:1]} {subscriber.payloads('framed.a')[:1]}")
    checks.check(all(b"\n" not in payload for payload in subscriber.payloads()), "a message has a newline")
    for name in "ab":
        numbers = sequences(subscriber.payloads(f"framed.{name}"))
        checks.check(numbers == list(range(len(numbers))), f"{name}: {numbers}")
        checks.check(adds_up(checks, framed, where, name) == (len(numbers), 0), f"{name}: {len(numbers)} came")
    checks.check(adds_up(checks, framed, where, "ring", "framed_result_lines") == (len(came), 0), f"{len(came)} came")


def connections(monitor):
    with socket.create_connection(("127.0.0.1", monitor)) as peer:
        peer.sendall(b"GET /connz HTTP/1.0\r\n\r\n")
        text = b"".join(iter(lambda: peer.recv(1 << 16), b""))
    return json.loads(text.partition(b"\r\n\r\n")[2])["connections"]


def check_jetstream(checks, where):
    """A pull consumer reads every line once."""
    with Server(where, jetstream=True) as server:
        client = Client(server.port)
        client.add_stream("LINES", ["framed.>"])
        client.add_consumer("LINES", "reader")
        with Framed(where, config(where, {"a": f"{server.url}/framed.a"}, "nats: {jetstream: true}")) as framed:
            until(lambda: account(where, "a")["delivered"] >= 40, 20 * PATIENCE)
            checks.check(framed.stop() == 0, framed.errors())
        came = []
        while some := client.pull("LINES", "reader", 16):
            came += some
    numbers = sequences(came)
    checks.check(numbers == list(range(len(numbers))) and len(numbers) >= 40, f"{numbers}")
    checks.check(adds_up(checks, framed, where, "a") == (len(numbers), 0), f"{len(numbers)} came")


def check_restart(checks, where):
    """The server is killed and comes back: short of the queue's bound nothing is lost with JetStream, and no line is there
    twice; without, only what was on its way. Beyond the bound the oldest are lost. A socket's reader gets all."""
    with Server(where, jetstream=True) as server:
        client = Client(server.port)
        client.add_stream("LINES", ["framed.a"], storage="file")
        outputs = {"a": f"{server.url}/framed.a", "u": f"unix:{where}/u.sock"}
        with Framed(where, config(where, outputs, "nats: {jetstream: true}")) as framed:
            until(lambda: os.path.exists(f"{where}/u.sock"), 10 * PATIENCE)
            reader = Lines(f"unix:{where}/u.sock")
            until(lambda: account(where, "a")["delivered"] >= 20, 20 * PATIENCE)
            server.stop()
            until(lambda: output(where, "a")["clients"] == 0, 10 * PATIENCE)
            before = account(where, "a")
            time.sleep(1)
            server.start()
            until(lambda: account(where, "a")["delivered"] > before["offered"] + 20, 20 * PATIENCE)
            checks.check(framed.stop() == 0, framed.errors())
        client = Client(server.port)
        client.add_consumer("LINES", "reader")
        came = []
        while some := client.pull("LINES", "reader", 64):
            came += some
    numbers = sequences(came)
    delivered, lost = adds_up(checks, framed, where, "a")
    checks.check(numbers == list(range(delivered)) and lost == 0, f"{delivered} delivered, {lost} lost, {numbers}")
    counts = said(framed, "no connection to NATS at", f"connected to NATS at 127.0.0.1:{server.port} again")
    checks.check(counts == [1, 1], f"said {counts}: {framed.errors()}")
    reader.join(10)
    steady(checks, framed, where, reader)


def steady(checks, framed, where, reader, name="u"):
    """The reader of the socket of an output beside lost nothing."""
    numbers = sequences(reader.text.splitlines())
    checks.check(len(numbers) > 20 and numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"{numbers}")
    checks.check(adds_up(checks, framed, where, name) == (len(numbers), 0), f"{len(numbers)} came")


def check_long_outage(checks, where):
    """Without JetStream, and so long that the queue is full: the oldest lines are lost, and memory stays as it was."""
    make_clip(f"{where}/fast.mp4", size="64x64", rate=200, frames=400)
    with Server(where) as server:
        subscriber = Client(server.port, "framed.>")
        outputs = {"a": f"{server.url}/framed.a", "u": f"unix:{where}/u.sock"}
        with Framed(where, config(where, outputs, clip="fast")) as framed:
            until(lambda: os.path.exists(f"{where}/u.sock"), 10 * PATIENCE)
            reader = Lines(f"unix:{where}/u.sock")
            until(lambda: account(where, "a")["delivered"] >= 200, 20 * PATIENCE)
            server.stop()
            until(lambda: account(where, "a")["lost"] >= 100, 40 * PATIENCE)
            memory = framed.resident_kib()
            until(lambda: account(where, "a")["lost"] >= 500, 40 * PATIENCE)
            grown = framed.resident_kib() - memory
            checks.check(grown < 4096 * PATIENCE, f"grown by {grown} KiB")
            before = account(where, "a")
            server.start()
            late = Client(server.port, "framed.>")
            until(lambda: account(where, "a")["delivered"] > before["delivered"] + 500, 40 * PATIENCE)
            checks.check(framed.stop() == 0, framed.errors())
        late.flush()
    delivered, lost = adds_up(checks, framed, where, "a")
    came = sequences(subscriber.payloads()) + sequences(late.payloads())
    missing = delivered - len(came)  # that came before the second subscriber was there
    checks.check(lost >= 500 and -lost <= missing < 1000 and len(set(came)) == len(came), f"{delivered} {lost} {len(came)}")
    checks.check(came == sorted(came), "lines came in another order")
    counts = said(framed, "no connection to NATS at", f"connected to NATS at 127.0.0.1:{server.port} again", "lines to NATS")
    checks.check(counts == [1, 1, 0], f"said {counts}: {framed.errors()}")
    reader.join(10)
    steady(checks, framed, where, reader)


def check_frozen(checks, where):
    """A server that stops answering within a connection: with JetStream its lines wait for it, and none is there twice. The
    daemon ends in time without it."""
    with Server(where, jetstream=True) as server:
        client = Client(server.port)
        client.add_stream("LINES", ["framed.a"])
        with Framed(where, config(where, {"a": f"{server.url}/framed.a"}, "nats: {jetstream: true}")) as framed:
            until(lambda: account(where, "a")["delivered"] >= 20, 20 * PATIENCE)
            server.freeze()
            until(lambda: output(where, "a")["clients"] == 0, 20)
            server.thaw()
            before = account(where, "a")
            until(lambda: account(where, "a")["delivered"] > before["offered"], 20 * PATIENCE)
            checks.check(account(where, "a")["lost"] == 0, f"{account(where, 'a')}")
            shown = account(where, "a")["delivered"]
            checks.check(shown <= client.count("LINES"), f"{shown} delivered, {client.count('LINES')} there")
            server.freeze()
            time.sleep(1)
            begin = time.monotonic()
            checks.check(framed.stop() == 0, framed.errors())
            took = time.monotonic() - begin
            checks.check(took < 1.8 * PATIENCE, f"it ended after {took:.1f} s")
        server.thaw()
        client.add_consumer("LINES", "reader")
        came = []
        while some := client.pull("LINES", "reader", 64):
            came += some
    numbers = sequences(came)
    checks.check(numbers == list(range(len(numbers))), f"{numbers}")
    delivered, _ = adds_up(checks, framed, where, "a")
    checks.check(delivered <= len(numbers), f"{delivered} delivered, {len(numbers)} there")
    counts = said(framed, "no connection to NATS at", f"connected to NATS at 127.0.0.1:{server.port} again")
    checks.check(counts == [1, 1], f"said {counts}: {framed.errors()}")


def check_slow_subscriber(checks, where):
    """One that reads nothing is cut off by the server: the daemon and other subscribers notice nothing."""
    make_clip(f"{where}/fast.mp4", size="64x64", rate=200, frames=400)
    with Server(where, 'write_deadline: "500ms"\nmax_pending: 16777216') as server:
        subscriber = Client(server.port, "framed.>")
        with socket.create_connection(("127.0.0.1", server.port)) as dead:
            dead.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            dead.sendall(b'CONNECT {"verbose":false}\r\nSUB framed.> 1\r\n')
            with Framed(where, config(where, {"a": f"{server.url}/framed.a"}, clip="fast")) as framed:
                cut = until(lambda: "Slow Consumer" in server.text(), 60 * PATIENCE)
                checks.check(cut, server.text()[-2000:])
                before = account(where, "a")["delivered"]
                until(lambda: account(where, "a")["delivered"] > before + 100, 10 * PATIENCE)
                checks.check(framed.stop() == 0, framed.errors())
        subscriber.flush()
    numbers = sequences(subscriber.payloads())
    checks.check(numbers == sorted(set(numbers)), "lines come twice or in another order")
    checks.check(adds_up(checks, framed, where, "a") == (len(numbers), 0), f"{len(numbers)} came")
    checks.check(said(framed, "warning", "error") == [0, 0], framed.errors())


def check_full(checks, where):
    """A stream that is full, a subject that no stream takes, one whose stream is silent, and a line that is too large: each
    costs its own lines, and is said once; with room again the lines go on."""
    with Server(where, jetstream=True) as server:
        client = Client(server.port, "silent.>")
        client.add_stream("SMALL", ["framed.full"], max_msgs=20)
        client.add_stream("LARGE", ["framed.well", "framed.large"], max_msg_size=1 << 16)
        names = ("full", "well", "nowhere")
        outputs = {name: f"{server.url}/framed.{name}" for name in names}
        outputs |= {"silent": f"{server.url}/silent.x", "u": f"unix:{where}/u.sock"}
        with Framed(where, config(where, outputs, "nats: {jetstream: true}")) as framed:
            until(lambda: os.path.exists(f"{where}/u.sock"), 10 * PATIENCE)
            reader = Lines(f"unix:{where}/u.sock")
            until(lambda: account(where, "full")["lost"] >= 20, 20 * PATIENCE)
            checks.check(account(where, "full")["delivered"] == 20 == client.count("SMALL"), f"{account(where, 'full')}")
            error = output(where, "full")["last_error"]
            checks.check(error and "maximum messages exceeded" in error["text"], f"{error}")
            client.ask("STREAM.PURGE.SMALL")
            client.ask("STREAM.UPDATE.SMALL", name="SMALL", subjects=["framed.full"], retention="limits", storage="memory",
                       num_replicas=1, discard="new", max_msgs=100000)
            until(lambda: said(framed, "output=o lines reach NATS again") == [1], 20 * PATIENCE)
            until(lambda: account(where, "silent")["lost"] >= 64, 40 * PATIENCE)
            well = account(where, "well")
            checks.check(well["offered"] - well["delivered"] < 10 * PATIENCE and well["lost"] == 0, f"{well}")
            checks.check(framed.stop() == 0, framed.errors())
        checks.check(adds_up(checks, framed, where, "full")[0] == client.count("SMALL") + 20, framed.errors())
        checks.check(adds_up(checks, framed, where, "well") == (client.count("LARGE"), 0), framed.errors())
    for name, why in (("full", "maximum messages exceeded"), ("nowhere", "no stream takes the subject"),
                      ("silent", "no stream has acknowledged it")):
        adds_up(checks, framed, where, name)
        count = said(framed, f"camera={name} output=o lines to NATS are lost: {why}", f"camera={name} output=o lines to NATS")
        checks.check(count == [1, 1], f"{name} said {count}: {framed.errors()}")
    reader.join(10)
    steady(checks, framed, where, reader)


class Mute:
    """Takes connections and says nothing."""

    def __init__(self):
        self.listener, self.peers = socket.create_server(("127.0.0.1", free_port())), []
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.peers.append(self.listener.accept()[0])


def check_refused(checks, where):
    """A server that says nothing, one that wants another password, one that takes no line so large, one that does not allow
    the subject, none at all: lines are lost to the outputs that name them, and the log has a line of each."""
    folders = [os.path.join(where, name) for name in ("large", "locked")]
    for path in folders:
        os.mkdir(path)
    login = f"authorization {{users: [{{user: framed, password: {PASSWORD}, permissions: {{publish: \"ok.>\"}}}}]}}"
    with Server(folders[0], "max_payload: 1000") as large, Server(folders[1], login) as locked:
        outputs = {"mute": f"nats://127.0.0.1:{Mute().port}/x", "large": f"{large.url}/x", "locked": f"{locked.url}/ok.x",
                   "denied": f"{locked.url}/forbidden", "none": f"nats://127.0.0.1:{free_port()}/x",
                   "u": f"unix:{where}/u.sock"}
        outputs |= {f"denied{i}": f"{locked.url}/forbidden.{i}" for i in range(23)}
        text = config(where, outputs, f"nats: {{user: framed, password: {WRONG}}}")
        with Framed(where, text) as framed:
            until(lambda: os.path.exists(f"{where}/u.sock"), 10 * PATIENCE)
            reader = Lines(f"unix:{where}/u.sock")
            until(lambda: said(framed, "no connection to NATS at") == [3], 20 * PATIENCE)
            until(lambda: account(where, "large")["lost"] >= 20, 20 * PATIENCE)
            time.sleep(3)  # for those that are tried again
            counts = said(framed, "no connection to NATS at", "lines to NATS are lost: a line has", "Authorization Violation")
            checks.check(counts == [3, 1, 1], f"said {counts}: {framed.errors()}")
            checks.check(account(where, "locked")["delivered"] == 0, f"{account(where, 'locked')}")
            with open(framed.config, "w") as file:
                file.write(text.replace(WRONG, PASSWORD))
            framed.child.send_signal(1)
            until(lambda: account(where, "locked")["delivered"] >= 20, 20 * PATIENCE)
            until(lambda: account(where, "denied")["lost"] >= 20, 20 * PATIENCE)
            counts = said(framed, "camera=denied output=o lines to NATS are lost: the server does not allow")
            checks.check(counts == [1] and account(where, "locked")["delivered"] >= 20, framed.errors())
            shown = json.dumps(status(where))
            checks.check(framed.stop() == 0, framed.errors())
        checks.check(PASSWORD not in shown + framed.errors() and WRONG not in shown + framed.errors(), "a password got out")
    for name in outputs:
        delivered, lost = adds_up(checks, framed, where, name)
        checks.check(name in ("u", "locked") or (lost > 0 and delivered == 0), f"{name}: {delivered}")
    reader.join(10)
    steady(checks, framed, where, reader)


def check_no_acks(checks, where):
    """A user who may not hear a stream's answers, and a server that knows no ids: nothing is sent, and the log says why, once."""
    folders = [os.path.join(where, name) for name in ("deaf", "old")]
    for path in folders:
        os.mkdir(path)
    login = 'authorization {users: [{user: framed, password: x, permissions: {subscribe: "framed.>"}}]}'
    with Server(folders[0], login) as deaf, Server(folders[1], "no_header_support: true") as old:
        outputs = {"deaf": f"{deaf.url}/framed.a", "old": f"{old.url}/framed.a"}
        with Framed(where, config(where, outputs, "nats: {user: framed, password: x, jetstream: true}")) as framed:
            until(lambda: said(framed, "no connection to NATS at") == [2], 20 * PATIENCE)
            time.sleep(2)  # for those that are tried again
            counts = said(framed, "may not subscribe to _INBOX.>, which", "knows no headers, which", "connected to NATS")
            checks.check(counts == [1, 1, 0], f"said {counts}: {framed.errors()}")
            checks.check(framed.stop() == 0, framed.errors())
    for name in outputs:
        checks.check(adds_up(checks, framed, where, name)[0] == 0, f"{name} delivered")


def check_tls(checks, where):
    """With `ca` nothing goes without TLS, nor to a server that somebody else vouches for."""
    good, _ = make_certificate(where, "good.pem")
    other, _ = make_certificate(where, "other.pem")
    trust = ssl.create_default_context(cafile=good)
    trust.check_hostname = False
    path = os.path.join(where, "plain")
    os.mkdir(path)
    with Server(where, f'tls {{cert_file: "{good}", key_file: "{good}.key"}}') as server, Server(path) as plain:
        subscriber, listener = Client(server.port, "framed.>", tls=trust), Client(plain.port, ">")
        outputs = {"a": f"{server.url}/framed.a", "plain": f"{plain.url}/framed.a"}
        text = config(where, outputs, f"nats: {{ca: {good}}}")
        with Framed(where, text) as framed:
            until(lambda: len(subscriber.payloads()) >= 10, 20 * PATIENCE)
            checks.check(len(subscriber.payloads()) >= 10, framed.errors())
            until(lambda: said(framed, "no connection to NATS at") == [1], 10 * PATIENCE)
            with open(framed.config, "w") as file:
                file.write(text.replace(good, other))
            framed.child.send_signal(1)
            until(lambda: said(framed, "no connection to NATS at") == [3], 10 * PATIENCE)
            checks.check("certificate" in framed.errors(), framed.errors())
            before = account(where, "a")["delivered"]
            time.sleep(1)
            checks.check(account(where, "a")["delivered"] == before, "lines go to a stranger")
            checks.check(framed.stop() == 0, framed.errors())
        checks.check(listener.payloads() == [], "a line went without TLS")


def check_alerts(checks, where, jetstream):
    """An event arrives; one that no server was there for arrives after a restart of both, once."""
    os.mkdir(f"{where}/state")
    state = {"STATE_DIRECTORY": f"{where}/state"}
    with Server(where, jetstream=jetstream) as server:
        camera = (f'{{url: "tcp://127.0.0.1:{free_port()}", connect_timeout: 1s, media_timeout: 1s, '
                  f'outputs: {{o: {{sink: "unix:{where}/NAME.sock"}}}}}}')
        text = (f'control: {where}/control.sock\nnats: {{jetstream: {str(jetstream).lower()}}}\n'
                f'notify: {{nats: "{server.url}/framed.alerts"}}\ncameras:\n  gate: {camera.replace("NAME", "gate")}\n')
        both = text + f'  yard: {camera.replace("NAME", "yard")}\n'
        client = Client(server.port, "framed.alerts")
        if jetstream:
            client.add_stream("ALERTS", ["framed.alerts"], storage="file")
        with Framed(where, text, state) as framed:
            until(lambda: client.payloads(), 20 * PATIENCE)
            until(lambda: framed.live_metrics().sum("framed_alert_events_total", target="nats", result="delivered") == 1, 5)
            server.stop()
            with open(framed.config, "w") as file:
                file.write(both)
            framed.child.send_signal(1)
            until(lambda: "alert not delivered to NATS yet" in framed.errors(), 20 * PATIENCE)
            checks.check(framed.stop() in (0, 1), framed.errors())
        server.start()
        again = Client(server.port, "framed.alerts")
        with Framed(where, both, state) as framed:
            until(lambda: again.payloads(), 20 * PATIENCE)
            time.sleep(0.5)
            checks.check(framed.stop() in (0, 1), framed.errors())
        events = [json.loads(payload) for payload in client.payloads() + again.payloads()]
        checks.check([(event["camera"], event["kind"], event["state"]) for event in events] ==
                     [("gate", "down", "raised"), ("yard", "down", "raised")], f"{events}\n{framed.errors()}")
        checks.check(not jetstream or again.count("ALERTS") == 2, "the stream has another number")


def main():
    checks = Checks("nats")
    if not INSTALLED:
        checks.skip("nats-server is not installed")
        checks.end()
    for check in (check_lines, check_jetstream, check_restart, check_long_outage, check_frozen, check_slow_subscriber,
                  check_full, check_refused, check_no_acks, check_tls):
        with folder() as where:
            make_clip(os.path.join(where, "clip.mp4"))
            check(checks, where)
    for jetstream in False, True:
        with folder() as where:
            check_alerts(checks, where, jetstream)
    checks.end()


main()
