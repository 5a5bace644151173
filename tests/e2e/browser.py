"""Debian's chromium-headless-shell, driven over its pipe: JSON messages, each ended by a zero byte, on the browser's descriptors 3 and 4. A Page
records its console and its requests."""
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from framed_client import PATIENCE

PROGRAM = shutil.which("chromium-headless-shell")
PACKAGE = "chromium-headless-shell"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--force-color-profile=srgb",
         "--enable-precise-memory-info"]
# Gives the browser its two descriptors: a shell handles only those below ten, and preexec_fn is not safe beside threads.
START = "import os, sys; a, b = map(int, sys.argv[1:3]); os.dup2(a, 3); os.dup2(b, 4); os.execvp(sys.argv[3], sys.argv[3:])"


class Failure(Exception):
    """The browser refused a call, or a script threw."""


class Navigated(Failure):
    """The page was replaced while a script ran in it."""


class Browser:
    """Kills the browser when its with-block ends."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="framed-browser-", ignore_cleanup_errors=True)
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        inside = [to_browser, from_browser]
        self.child = subprocess.Popen(
            [sys.executable, "-c", START, *map(str, inside), PROGRAM, "--remote-debugging-pipe",
             f"--user-data-dir={self.folder.name}", *FLAGS],
            pass_fds=inside, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        for end in inside:
            os.close(end)
        self.serial, self.answers, self.pages, self.news = 0, {}, {}, threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *_):
        os.killpg(self.child.pid, signal.SIGKILL)  # its helpers hold the pipe, too
        self.child.wait()
        self.reader.join(5)
        os.close(self.write_end)
        os.close(self.read_end)
        self.folder.cleanup()

    def read(self):
        rest = b""
        while data := os.read(self.read_end, 1 << 16):
            *messages, rest = (rest + data).split(b"\0")
            for message in map(json.loads, messages):
                with self.news:
                    if "id" in message:
                        self.answers[message["id"]] = message
                    elif message.get("sessionId") in self.pages:
                        self.pages[message["sessionId"]].note(message["method"], message["params"])
                    self.news.notify_all()

    def call(self, method, session=None, seconds=20, **parameters):
        """Returns the browser's answer."""
        with self.news:
            self.serial += 1
            serial = self.serial
        message = {"id": serial, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        with self.news:
            if not self.news.wait_for(lambda: serial in self.answers, seconds * PATIENCE):
                raise Failure(f"{method}: no answer")
            answer = self.answers.pop(serial)
        if "error" in answer:
            raise (Navigated if "navigated" in str(answer["error"]) else Failure)(f"{method}: {answer['error']}")
        return answer["result"]

    def page(self, url="about:blank", width=1280, height=800, dark=False, before=None):
        """Opens a page with its own storage. `before`: a script that runs before the page's own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, context)
        with self.news:
            self.pages[session] = page
        for domain in ("Runtime", "Network", "Log", "Page"):
            page.call(f"{domain}.enable")
        page.size(width, height)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        if before:
            page.call("Page.addScriptToEvaluateOnNewDocument", source=before)
        page.open(url)
        return page


class Page:
    """console: lines of errors and warnings; requests: URLs; failures: requests without an answer."""

    def __init__(self, browser, session, context):
        self.browser, self.session, self.context = browser, session, context
        self.console, self.requests, self.failures = [], [], []

    def note(self, method, told):
        """Records an event."""
        if method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.console.append(" ".join(str(argument.get("value", argument.get("description"))) for argument in told["args"]))
        elif method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.console.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Network.loadingFailed" and not told.get("canceled"):
            self.failures.append(told["errorText"])

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, script):
        """Returns the value of an expression, which may be a promise."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise Failure(f"{script}: {told['exceptionDetails'].get('exception', {}).get('description')}")
        return told["result"].get("value")

    def until(self, script, seconds=5):
        """Waits until an expression is true; returns its last value, True for an element."""
        end = time.monotonic() + seconds * PATIENCE
        while not (value := self.value_of(f"((value) => value instanceof Node || value)({script})")) and time.monotonic() < end:
            time.sleep(0.03)
        return value

    def value_of(self, script):
        """As run(); None while the page is replaced."""
        try:
            return self.run(script)
        except Navigated:
            return None

    def hide(self, hidden=True):
        """Makes the page hidden, like a tab behind another one."""
        self.run(f"""Object.defineProperty(document, 'visibilityState', {{value: '{'hidden' if hidden else 'visible'}', configurable: true}});
            Object.defineProperty(document, 'hidden', {{value: {str(hidden).lower()}, configurable: true}});
            document.dispatchEvent(new Event('visibilitychange'))""")

    def press(self, key, **more):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **more)

    def heap(self):
        """Returns the bytes in use after a collection."""
        self.call("HeapProfiler.collectGarbage")
        return self.call("Runtime.getHeapUsage")["usedSize"]

    def controls(self):
        """Returns (role, name) of all controls that a screen reader can operate."""
        roles = {"button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "tab", "slider", "image", "img"}
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
                if not node["ignored"] and node["role"]["value"] in roles]

    def picture(self, path):
        """Writes the whole page, from top to end, as a PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)  # closes its connections, too
