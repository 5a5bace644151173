"""One question by HTTP, bounded in time and size however slowly and however much the other end answers."""
import functools
import http.client
import io
import json
import time

LIMIT_BYTES = 8 << 20  # of an answer


class Until(io.RawIOBase):
    """What a socket gives until `end`, of time.monotonic(), and no longer."""

    def __init__(self, sock, end):
        self._sock, self._end = sock, end

    def readable(self):
        return True

    def readinto(self, buffer):
        self._sock.settimeout(left_until(self._end))
        return self._sock.recv_into(buffer)


class Response(http.client.HTTPResponse):
    def __init__(self, sock, end, **options):
        super().__init__(sock, **options)
        self._kept = self.fp  # as long as it is open, the socket is
        self.fp = io.BufferedReader(Until(sock, end))

    def close(self):
        super().close()
        self._kept.close()


def left_until(end):
    """Seconds. TimeoutError: there are none."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left


def ask(host, path, end, body=None, headers=None, context=None):
    """(status, the answer's JSON, or the begin of its text where it has none). `host` may have a port; `context`: of TLS. No redirection is
    followed. OSError: there was no whole answer until `end`."""
    wait = left_until(end)
    try:
        if context:
            connection = http.client.HTTPSConnection(host, timeout=wait, context=context)
        else:
            connection = http.client.HTTPConnection(host, timeout=wait)
        connection.response_class = functools.partial(Response, end=end)
        try:
            connection.request("GET" if body is None else "POST", path, body, headers or {})
            with connection.getresponse() as response:
                text = response.read(LIMIT_BYTES + 1)
        finally:
            connection.close()
    except OSError:  # also of a certificate, which is a ValueError, too
        raise
    except (http.client.HTTPException, ValueError) as error:
        # None of the error's words: they quote headers, and these have secrets.
        raise OSError(f"no HTTP ({type(error).__name__})") from None
    if len(text) > LIMIT_BYTES:
        raise OSError("the answer is too long")
    try:
        return response.status, json.loads(text)
    except (ValueError, RecursionError):
        return response.status, text[:200].decode(errors="replace").strip()
