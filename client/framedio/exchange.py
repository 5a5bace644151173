"""One HTTP request, limited in time and size however slow or long the response is."""
import functools
import http.client
import io
import json
import time

LIMIT_BYTES = 8 << 20  # of a response


class Until(io.RawIOBase):
    """A socket's data until `end`, of time.monotonic()."""

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
        self._kept = self.fp  # keeps the socket open
        self.fp = io.BufferedReader(Until(sock, end))

    def close(self):
        super().close()
        self._kept.close()


def left_until(end):
    """Returns the seconds left. TimeoutError: there are none."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left


def ask(host, path, end, body=None, headers=None, context=None):
    """Returns (status, the response's JSON, or the start of its text if it is not JSON). `host` may have a port; `context`:
    of TLS. Redirections are not followed. OSError: no complete response until `end`."""
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
    except OSError:  # includes certificate errors, which are also ValueErrors
        raise
    except (http.client.HTTPException, ValueError) as error:
        # Drop the error's text: it quotes headers, which have secrets.
        raise OSError(f"no HTTP ({type(error).__name__})") from None
    if len(text) > LIMIT_BYTES:
        raise OSError("the answer is too long")
    try:
        return response.status, json.loads(text)
    except (ValueError, RecursionError):
        return response.status, text[:200].decode(errors="replace").strip()
