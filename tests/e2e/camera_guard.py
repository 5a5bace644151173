"""A camera's login: the challenges that it sends and the answers that it accepts (RFC 2069, 7616, 7617)."""
import base64
import hashlib
import re
import time

REALM = "camera"
HASHES = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}


class Basic:
    scheme = "Basic"

    def challenge(self, _guard):
        return f'Basic realm="{REALM}"'

    def is_right(self, guard, _method, text):
        return text.strip() == base64.b64encode(guard.user.encode()).decode()


class Digest:
    """`more` follows the parameters; `named` sends the algorithm; `qop` offers "auth"."""

    scheme = "Digest"

    def __init__(self, algorithm="MD5", more="", named=False, qop=False):
        self.algorithm, self.more, self.named, self.qop = algorithm, more, named or algorithm != "MD5", qop

    def challenge(self, guard):
        text = f'Digest realm="{REALM}", nonce="{guard.nonce()}"'
        if self.named:
            text += f", algorithm={self.algorithm}"
        if self.qop:
            text += ', qop="auth"'
        return text + self.more

    def is_right(self, guard, method, text):
        fields = fields_of(text)
        if fields.get("algorithm", "MD5") != self.algorithm:
            return False
        digest = lambda data: HASHES[self.algorithm](data.encode()).hexdigest()
        name, password = guard.user.split(":", 1)
        secret = digest(f"{name}:{REALM}:{password}")
        request = digest(f"{method}:{fields.get('uri', '')}")
        nonce = fields.get("nonce", "")
        if "qop" in fields:
            nonce += ":" + ":".join(fields.get(part, "") for part in ("nc", "cnonce", "qop"))
        return fields.get("response") == digest(f"{secret}:{nonce}:{request}")


def fields_of(text):
    return {name.lower(): quoted or bare for name, quoted, bare in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', text)}


class Guard:
    """`user`: "NAME:PASSWORD"; `ways`: the challenges in their order, `joined` in one line or a line each; a nonce is valid for `nonce_seconds`."""

    def __init__(self, user, ways=None, nonce_seconds=None, joined=False):
        self.user, self.ways, self.nonce_seconds, self.joined = user, ways or [Digest()], nonce_seconds, joined
        self.begin = time.monotonic()
        self.signed, self.refused = [], []  # (when, Authorization) of all requests with one, and of those refused, except for a stale nonce
        self.stale = 0

    def nonce(self):
        period = int((time.monotonic() - self.begin) / self.nonce_seconds) if self.nonce_seconds else 0
        return f"5ca1ab1e{period:04}"

    def refusal(self, request):
        """Returns None if the request is allowed, else the challenges."""
        if request.method == "OPTIONS":
            return None
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        stale = False
        if scheme:
            self.signed.append((time.monotonic(), f"{scheme} {text}"))
            right = any(way.scheme == scheme and way.is_right(self, request.method, text) for way in self.ways)
            stale = right and scheme == "Digest" and fields_of(text).get("nonce") != self.nonce()
            if right and not stale:
                return None
            self.stale += stale
            if not stale:
                self.refused.append((time.monotonic(), f"{scheme} {text}"))
        mark = ", stale=true" if stale else ""
        challenges = [way.challenge(self) + mark for way in self.ways]
        return [", ".join(challenges)] if self.joined else challenges
