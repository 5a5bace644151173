"""A proxy on loopback that serves another server's pages below a path of its own, and strips that path from requests."""
import re
import select
import socket
import threading


class StrippingProxy:
    """Stops listening when its with-block ends."""

    def __init__(self, port, prefix):
        self.inner, self.prefix = port, prefix.encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        """Forwards one request; either side's close ends both."""
        with peer, socket.create_connection(("127.0.0.1", self.inner)) as server:
            head = b""
            while b"\r\n\r\n" not in head and (data := peer.recv(65536)):
                head += data
            inside = re.match(rb"\w+ " + self.prefix + rb"/\S* HTTP/1.1", head)
            if not inside:
                peer.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            server.sendall(inside[0].replace(self.prefix, b"", 1) + b"\r\nConnection: close\r\n" + head[head.index(b"\r\n") + 2 :])
            ends = {peer: server, server: peer}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)
