"""Reads the frames of framed: from a socket, or from a ring without a copy, across restarts of the daemon.

    import framedio
    for frame in framedio.open("ring:/run/framed/gate.ring"):
        boxes = detector(frame.numpy())
        print(frame.camera, frame.time, frame.to_source(boxes))

detect() turns a network's raw output into boxes, without PyTorch, and send() returns them to framed:

    for batch in framedio.open("ring:/run/framed/yard.ring"):
        boxes = framedio.detect(session.run(None, {"images": batch.numpy()}), batch)
        batch.send(boxes)

A frame, and every array made of it, is valid until the next frame is requested or frame.release() is called; frame.keep()
copies it. framed may take away a frame that is held for too long: check frame.whole after reading.

One thread reads from a reader; any thread may call send() and release().

The arrays of a ring are read-only. PyTorch has no read-only tensors: frame.torch() is the ring's own memory nevertheless, and
writing to it ends the process. Use frame.torch().clone() for code that writes.
"""
from .cluster import AsyncClusterReader, ClusterReader
from .detection import Extras, detect
from .frame import CAPTURE_CLOCK, DAMAGED, EMPTY, FIRST_OF_EPOCH, HDR, INTERLACED, KEYFRAME, Batch, Frame, Torn
from .interpolation import trilinear, trilinear_backward
from .reader import AsyncReader, Gone, Reader, Timeout
from .tiles import merge


def open(address, newest=True, reconnect=True, timeout=None, token=None, *, user=None, password=None, ca=None, certificate=None,
         keyfile=None):
    """Returns a Reader of `unix:PATH`, `tcp:HOST:PORT` or `ring:PATH`, the address of an output's sink; or a ClusterReader of
    `cluster:etcd://HOST[:PORT],.../SITE/CAMERA/OUTPUT`, which follows the camera from box to box until it is closed.

    newest: skip to the newest frame; otherwise return each in turn. reconnect: connect again after 0.1, 0.2 ... 5 s, forever; otherwise
    Gone is raised. timeout: seconds without a frame until Timeout is raised. The reason why a connection failed or ended is logged as a
    warning by the logger "framedio".

    For a cluster only: token is the http_token or the http_read_token of the boxes, by default FRAMED_HTTP_TOKEN; user and password are
    etcd's, by default FRAMED_ETCD_USER and FRAMED_ETCD_PASSWORD. With TLS the address begins with `cluster:etcds://`; then ca is a file
    of trusted authorities (default: the system's), and certificate and keyfile are the reader's own files.
    """
    etcd = {"user": user, "password": password, "ca": ca, "certificate": certificate, "keyfile": keyfile}
    if address.startswith("cluster:"):
        return ClusterReader(address, newest, timeout, token, **etcd)
    _refuse(etcd)
    return Reader(address, newest, reconnect, timeout)


def aopen(address, newest=True, reconnect=True, timeout=None, token=None, *, user=None, password=None, ca=None, certificate=None,
          keyfile=None):
    """Returns the same as an AsyncReader or AsyncClusterReader, for `async for`."""
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
