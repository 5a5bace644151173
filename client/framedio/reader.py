"""Readers: one for loops, one for asyncio."""
import ctypes
import errno
import os
import select
import threading
import time

from .frame import Batch, Frame
from .library import NEWEST, ONCE, Counts, View, libframed

# A socket delivers a frame in pieces, and libframed waits for the next piece with less work than Python. Other threads
# wait for the reader equally long.
PIECES_MS = 10


class Gone(ConnectionError):
    """The connection failed or ended, and no other is made."""


class Timeout(TimeoutError):
    """No frame arrived in time."""


class Base:
    """The handle of a reader, and its counters. libframed allows one thread at a time, so each call holds `_lock`: any
    thread may send detections or release a frame while another one reads."""

    _handle = None

    def __init__(self, address, newest=True, reconnect=True, timeout=None):
        flags = (NEWEST if newest else 0) | (0 if reconnect else ONCE)
        self.address, self.timeout, self._lent = address, timeout, None
        self._lock, self._counts, self._error = threading.RLock(), Counts(), ""
        self._logged = b""
        self._handle = libframed.framed_open(os.fsencode(address), flags)
        if not self._handle:
            error = ctypes.get_errno()
            if error not in (errno.EINVAL, errno.ENAMETOOLONG):
                raise OSError(error, f"{address}: {os.strerror(error)}")
            raise ValueError(f"{address}: {os.strerror(error)} (unix:PATH, tcp:HOST:PORT or ring:PATH)")

    def _open_handle(self):
        if not self._handle:
            raise ValueError("the reader is closed")
        return self._handle

    def _poll(self, wait_ms=0):
        """Returns a Frame or Batch that is available now or within wait_ms; or None."""
        with self._lock:
            handle, self._lent, view = self._open_handle(), None, View()
            rc = libframed.framed_next(handle, view, wait_ms)
            if rc < 0:
                raise Gone(self.error)
            if rc > 0:
                self._lent = (Batch if view.batch.count else Frame)._of(self, view)
            elif (error := libframed.framed_error(handle)) != self._logged:
                self._log(error)
            return self._lent

    def _log(self, error):
        """Logs why there are no frames: a waiting program reports nothing else."""
        import logging

        self._logged = error
        logging.getLogger("framedio").warning(error.decode(errors="replace"))

    def _release(self, lent):
        with self._lock:
            if lent is not None and lent is self._lent:
                self._lent = None
                libframed.framed_release(self._handle, None, None, 0)

    def fileno(self):
        """Readable when there is work; then call poll(), unless a loop does."""
        with self._lock:
            return libframed.framed_fd(self._open_handle())

    def close(self):
        """Closes the connection. The counters stay."""
        with self._lock:
            if self._handle:
                self._update()
                libframed.framed_close(self._handle)
            self._handle = self._lent = None

    def __del__(self):
        if self._handle:
            self.close()

    def _update(self):
        with self._lock:
            if self._handle:
                libframed.framed_count(self._handle, self._counts)
                self._error = libframed.framed_error(self._handle).decode(errors="replace")

    @property
    def error(self):
        """Why the last connection failed or ended; "" if none did."""
        self._update()
        return self._error

    def counts(self):
        """Returns frames, skipped, torn, lost, connections, results, unsent, since the reader was opened."""
        self._update()
        return {name: getattr(self._counts, name) for name, _ in Counts._fields_}

    skipped = property(lambda self: self.counts()["skipped"], doc="Frames given back unread: newer ones were there.")
    torn = property(lambda self: self.counts()["torn"], doc="Frames that were taken away while they were out.")
    lost = property(lambda self: self.counts()["lost"], doc="Frames that framed had no room for.")
    unsent = property(lambda self: self.counts()["unsent"], doc="Lists of detections that framed did not take.")


class Reader(Base):
    """Frames or batches, as an iterator that never ends by itself."""

    def __iter__(self):
        return self

    def __next__(self):
        return self.next(self.timeout)

    def next(self, timeout=None):
        """Returns the next Frame or Batch. Timeout: none arrived for this many seconds. Gone: it ended, without reconnect."""
        end = None if timeout is None else time.monotonic() + timeout
        wait = select.poll()
        wait.register(self.fileno(), select.POLLIN)
        wait_ms = 0
        while (view := self._poll(wait_ms)) is None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise Timeout(f"{self.address}: no frame for {timeout} s {self.error}".rstrip())
            wait.poll(None if left is None else left * 1000 + 1)
            wait_ms = PIECES_MS
        return view

    def poll(self):
        """Returns the Frame or Batch that is available now, or None."""
        return self._poll()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class AsyncReader(Base):
    """The same for `async for`: the event loop watches the reader's descriptor, and there is no thread."""

    def __aiter__(self):
        return self

    async def __anext__(self):
        import asyncio

        self._release(self._lent)
        await asyncio.sleep(0)  # a reader that always has a frame would block all other tasks
        loop = asyncio.get_running_loop()
        end = None if self.timeout is None else loop.time() + self.timeout
        while (view := self._poll()) is None:
            if end is not None and loop.time() >= end:
                raise Timeout(f"{self.address}: no frame for {self.timeout} s {self.error}".rstrip())
            await self._readable(loop, end)
        return view

    async def _readable(self, loop, end):
        """Waits until there is work, or until the time is over."""
        ready = loop.create_future()

        def wake():
            if not ready.done():
                ready.set_result(None)

        descriptor = self.fileno()
        loop.add_reader(descriptor, wake)
        timer = loop.call_at(end, wake) if end is not None else None
        try:
            await ready
        finally:
            loop.remove_reader(descriptor)
            if timer:
                timer.cancel()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()
