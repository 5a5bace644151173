"""Keys of an etcd, which may require a user, TLS or both."""
import base64
import json
import os
import re
import ssl
import time

from .exchange import ask

ASK_SECONDS = 2.0  # for one answer of one member
REFUSED_SECONDS = 10.0  # until a refused user is tried again: etcd compares passwords slowly, on purpose
SIGN_IN = "invalid auth token", "user name is empty", "auth store is old"  # etcd's messages about a missing or expired token
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^][:@/\s]+)(:\d{1,5})?")


class NotThere(Exception):
    """No member answers, or the answer does not contain the requested data."""


def hosts_of(text):
    """Returns HOST:PORT of each in a list, or None for any other text."""
    hosts = text.split(",")
    if not all(map(HOST.fullmatch, hosts)):
        return None
    return [host if HOST.fullmatch(host)[2] else f"{host}:2379" for host in hosts]


def user_of(user, password):
    """Returns (user, password), by default from the environment. ValueError: one is without the other."""
    user = user or os.environ.get("FRAMED_ETCD_USER") or None
    password = password or os.environ.get("FRAMED_ETCD_PASSWORD") or None
    if password and not user:
        raise ValueError("the password of etcd has no user beside it (user=, or FRAMED_ETCD_USER)")
    if user and not password:
        raise ValueError("the user of etcd has no password beside it (password=, or FRAMED_ETCD_PASSWORD)")
    return user, password


def context_of(has_tls, ca=None, certificate=None, keyfile=None):
    """Returns the TLS context, or None without TLS. ValueError: a file is wrong, or has no use."""
    for name, file in (("ca", ca), ("certificate", certificate), ("keyfile", keyfile)):
        if file and not has_tls:
            raise ValueError(f"{name} is only for an etcd with TLS (cluster:etcds://)")
    if bool(certificate) != bool(keyfile):
        raise ValueError("certificate and keyfile of etcd go together")
    if not has_tls:
        return None
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise ValueError(f"ca: {ca}: {error.strerror or error}") from error
    try:
        if certificate:
            # Otherwise a key with a passphrase would prompt for it at the terminal.
            context.load_cert_chain(certificate, keyfile, password=lambda: b"")
    except (OSError, ValueError) as error:
        raise ValueError(f"certificate {certificate}, keyfile {keyfile}: {getattr(error, 'strerror', None) or error}") from error
    return context


class Etcd:
    """Reads from any member that answers. `user`: (name, password), or (None, None)."""

    def __init__(self, hosts, user=(None, None), context=None):
        self._hosts, self._user, self._context = hosts, user, context
        self._token, self._refused, self._refused_until = None, None, 0.0

    def value(self, key, end):
        """Returns the JSON of a key, or None if there is none. NotThere: no member answers until `end`, of time.monotonic()."""
        wanted = {"key": base64.b64encode(key.encode()).decode()}
        for _ in range(len(self._hosts)):
            try:
                pairs = self._call("kv/range", wanted, end).get("kvs") or []
                return json.loads(base64.b64decode(pairs[0]["value"])) if pairs else None
            except OSError as error:
                why = f"etcd at {self._hosts[0]}: {error}"
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                why = f"etcd at {self._hosts[0]}: {key} cannot be read"
            self._hosts.append(self._hosts.pop(0))  # the next request starts with another member
            if time.monotonic() >= end:
                break
        raise NotThere(why)

    def _call(self, path, body, end):
        """Returns the answer. NotThere: etcd refuses the user. OSError: the member cannot answer."""
        status, answer = self._post(path, body, end, self._token)
        said = words_of(answer)
        if status != 200 and self._user[0] and (status == 401 or any(words in said for words in SIGN_IN)):
            self._sign_in(end)
            status, answer = self._post(path, body, end, self._token)
        if status == 200:
            return answer
        self._refuse(status, answer)

    def _sign_in(self, end):
        if time.monotonic() < self._refused_until:
            raise NotThere(self._refused)
        self._token = None
        status, answer = self._post("auth/authenticate", dict(zip(("name", "password"), self._user)), end, None)
        if status != 200:
            self._refused_until = time.monotonic() + REFUSED_SECONDS
            self._refuse(status, answer)
        token = answer.get("token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise OSError("gives no token")
        self._token = token

    def _refuse(self, status, answer):
        said = (words_of(answer) or f"HTTP {status}").replace(self._user[1] or "\0", "***")
        if status not in (400, 401, 403):
            raise OSError(said)
        hint = "" if self._user[0] else " (user= and password=, or FRAMED_ETCD_USER and FRAMED_ETCD_PASSWORD)"
        self._refused = f"etcd at {self._hosts[0]}: {said}{hint}"
        raise NotThere(self._refused)

    def _post(self, path, body, end, token):
        headers = {"Content-Type": "application/json", **({"Authorization": token} if token else {})}
        until = min(end, time.monotonic() + ASK_SECONDS)
        return ask(self._hosts[0], f"/v3/{path}", until, json.dumps(body), headers, self._context)


def words_of(answer):
    """Returns etcd's error message."""
    said = (answer.get("message") or answer.get("error")) if isinstance(answer, dict) else answer
    return said if isinstance(said, str) else ""
