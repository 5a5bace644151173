"""Reads the frames of framed: from a socket, or from a ring without a copy, over restarts of the daemon.

    import framedio
    for frame in framedio.open("ring:/run/framed/gate.ring"):
        boxes = detector(frame.numpy())
        print(frame.camera, frame.time, frame.to_source(boxes))

detect() makes boxes of a network's raw output, without PyTorch, and send() tells framed of them:

    for batch in framedio.open("ring:/run/framed/yard.ring"):
        boxes = framedio.detect(session.run(None, {"images": batch.numpy()}), batch)
        batch.send(boxes)

A frame, and every array that was made of it, is valid until the next frame is asked for or frame.release() is called;
frame.keep() copies it. framed may take a frame away that is held for too long: ask frame.whole behind the reading.

A reader is read by one thread; any thread may call send() and release().

The arrays of a ring are read-only. PyTorch has no tensors that are: frame.torch() is the ring's own memory all the same,
and writing into it ends the process. Use frame.torch().clone() where something writes.
"""
from .cluster import AsyncClusterReader, ClusterReader
from .detection import Extras, detect
from .frame import CAPTURE_CLOCK, DAMAGED, EMPTY, FIRST_OF_EPOCH, HDR, INTERLACED, KEYFRAME, Batch, Frame, Torn
from .interpolation import trilinear, trilinear_backward
from .reader import AsyncReader, Gone, Reader, Timeout
from .tiles import merge


def open(address, newest=True, reconnect=True, timeout=None, token=None, *, user=None, password=None, ca=None, certificate=None,
         keyfile=None):
    """A Reader of `unix:PATH`, `tcp:HOST:PORT` or `ring:PATH`, the address of an output's sink; or a ClusterReader of
    `cluster:etcd://HOST[:PORT],.../SITE/CAMERA/OUTPUT`, which follows the camera from box to box, until it is closed.

    newest: skip to the newest frame, else each in turn. reconnect: connect again after 0.1, 0.2 ... 5 s, for ever; else
    Gone is raised. timeout: seconds without a frame behind which Timeout is raised. Why a connection could not be made, or
    ended, is a warning of logging's "framedio".

    Of a cluster alone: token is the http_token or the http_read_token of the boxes, if not in FRAMED_HTTP_TOKEN; user and password are those of etcd,
    if not in FRAMED_ETCD_USER and FRAMED_ETCD_PASSWORD. With TLS the address begins with `cluster:etcds://`; then ca is a
    file with the authorities that count (those of the system), and certificate and keyfile are files of the reader's own.
    """
    etcd = {"user": user, "password": password, "ca": ca, "certificate": certificate, "keyfile": keyfile}
    if address.startswith("cluster:"):
        return ClusterReader(address, newest, timeout, token, **etcd)
    _refuse(etcd)
    return Reader(address, newest, reconnect, timeout)


def aopen(address, newest=True, reconnect=True, timeout=None, token=None, *, user=None, password=None, ca=None, certificate=None,
          keyfile=None):
    """The same as an AsyncReader or AsyncClusterReader, for `async for`."""
    etcd = {"user": user, "password": password, "ca": ca, "certificate": certificate, "keyfile": keyfile}
    if address.startswith("cluster:"):
        return AsyncClusterReader(address, newest, timeout, token, **etcd)
    _refuse(etcd)
    return AsyncReader(address, newest, reconnect, timeout)


def _refuse(etcd):
    given = [name for name, value in etcd.items() if value is not None]
    if given:
        raise ValueError(f"{', '.join(given)}: only for the address of a cluster (cluster:etcd://HOST/SITE/CAMERA/OUTPUT)")


__all__ = [
    "open", "aopen", "detect", "merge", "trilinear", "trilinear_backward", "Reader", "ClusterReader", "Frame", "Batch", "Extras",
    "Gone", "Timeout", "Torn", "DAMAGED", "KEYFRAME", "FIRST_OF_EPOCH", "CAPTURE_CLOCK", "INTERLACED", "HDR", "EMPTY",
]
