"""Frames and batches of a reader, as arrays of the library that reads them."""
import ctypes
import errno
import os
import time

from .dlpack import CPU, CUDA, capsule_of
from .library import CLIP, HOST, ElementHeader, Header, libframed
from .rows import on_host, packed

IN_SOURCE = 2  # enum framed_result_flags
DAMAGED, KEYFRAME, FIRST_OF_EPOCH, CAPTURE_CLOCK, INTERLACED, HDR, EMPTY = (1 << bit for bit in range(7))
TYPES = {b"u8": "|u1", b"s8": "|i1", b"f16": "<f2", b"f32": "<f4"}
CHANNELS = {b"rgb": 3, b"bgr": 3, b"gray": 1}


class Torn(Exception):
    """framed took the frame away while it was being read."""


class Memory:
    """Keeps a frame's memory mapped as long as an object refers to it."""

    def __init__(self, reader):
        self.handle = libframed.framed_hold(reader)

    def __del__(self, drop=libframed.framed_drop):
        drop(self.handle)


def shape_of(header, bytes_):
    """Returns C x H x W or H x W x C of a tensor; for other formats the number of bytes."""
    channels = CHANNELS.get(header.format)
    if channels and header.layout == b"nchw":
        return channels, header.height, header.width
    if channels and header.layout == b"nhwc":
        return header.height, header.width, channels
    return (bytes_,)


class Payload:
    """An array in memory of the host or of a GPU. `owner` keeps that memory alive."""

    header = None  # of the frame or of the first element

    def place(self, address, bytes_, shape, device, readonly, owner):
        self._address, self.bytes, self.shape, self._owner = address, bytes_, shape, owner
        self._device, self._readonly = device, readonly

    @property
    def on_gpu(self):
        return self._device is not None

    @property
    def pointer(self):
        """The address of the payload, on the host or on the GPU."""
        return self._address

    def _interface(self, readonly):
        return {"shape": self.shape, "typestr": TYPES[self.header.dtype], "data": (self._address, readonly), "version": 3}

    @property
    def __array_interface__(self):
        if self.on_gpu:
            raise AttributeError("the frame is on a GPU: use torch(), cupy() or __cuda_array_interface__")
        return self._interface(self._readonly)

    @property
    def __cuda_array_interface__(self):
        if not self.on_gpu:
            raise AttributeError("the frame is in host memory: use numpy()")
        return self._interface(False)  # PyTorch refuses arrays marked read-only

    def __dlpack_device__(self):
        return (CUDA, self._device) if self.on_gpu else (CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Returns the array in place, on its own device. For a ring's host memory it is a copy, unless the consumer supports read-only
        arrays. BufferError: the array is not available on that device, without a copy, or on a GPU with one."""
        device = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != device:
            raise BufferError(f"the frame is on DLPack's device {device}, and is not moved to {tuple(dl_device)}")
        if self.on_gpu:
            if copy:
                raise BufferError("a frame on a GPU is not copied: use torch().clone()")
            return capsule_of(self, TYPES[self.header.dtype], max_version)
        import numpy

        array = self.numpy()
        told = max_version and max_version[0] >= 1 and numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0"
        if self._readonly and not told and copy is False:
            raise BufferError("the frame is read-only, and the consumer cannot be told so: it gets a copy (copy=None)")
        if copy or (self._readonly and not told):
            array = array.copy()
        return array.__dlpack__(max_version=max_version) if told else array.__dlpack__()

    def numpy(self):
        """Returns the array in place; read-only for a ring."""
        import numpy

        if self.on_gpu:
            raise ValueError("the frame is on a GPU: use torch() or cupy()")
        return numpy.asarray(self)

    def torch(self):
        """Returns the tensor in place. A ring's tensor must not be written to."""
        import torch

        if self.on_gpu:
            return torch.as_tensor(self, device=f"cuda:{self._device}")
        return torch.from_numpy(_Writable(self).numpy())

    def cupy(self):
        import cupy

        if not self.on_gpu:
            raise ValueError("the frame is in host memory: use numpy()")
        return cupy.asarray(self)

    @property
    def data(self):
        """The bytes, for programs without numpy: a memoryview, read-only for a ring."""
        if self.on_gpu:
            raise ValueError("the frame is on a GPU: use torch() or cupy()")
        array = (ctypes.c_ubyte * self.bytes).from_address(self._address)
        array.owner = self
        view = memoryview(array).cast("B")
        return view.toreadonly() if self._readonly else view


class _Writable:
    """A payload for a library that refuses read-only arrays."""

    def __init__(self, payload):
        self.payload = payload
        self.__array_interface__ = payload._interface(False)

    def numpy(self):
        import numpy

        return numpy.asarray(self)


class Picture(Payload):
    """Properties of a picture, for frames and elements of batches."""

    def _text(name):
        return property(lambda self: getattr(self.header, name).decode(errors="replace"))

    camera, output, format, dtype, layout = map(_text, ("camera", "output", "format", "dtype", "layout"))
    sequence = property(lambda self: self.header.sequence)
    epoch = property(lambda self: self.header.epoch)
    flags = property(lambda self: self.header.flags)
    lost = property(lambda self: self.header.lost)
    time = property(lambda self: self.header.capture_ns / 1e9, doc="When it was captured, seconds since 1970.")
    pts = property(lambda self: self.header.pts_ns / 1e9, doc="Presentation time, seconds.")
    age = property(lambda self: (time.monotonic_ns() - self.header.received_ns) / 1e9,
                   doc="Seconds since the picture's first packet came.")
    source_size = property(lambda self: (self.header.source_width, self.header.source_height))

    def to_source(self, boxes, clip=True):
        """Maps boxes x1, y1, x2, y2 in the tensor, N rows of four columns or more, to boxes in the camera's picture:
        returns a new float32 array, or lists if boxes are lists."""
        return _mapped(libframed.framed_to_source, 4, self.header, boxes, clip)

    def points_to_source(self, points, clip=False):
        """Does the same for points x, y."""
        return _mapped(libframed.framed_points_to_source, 2, self.header, points, clip)


def _mapped(function, columns, header, rows, clip):
    flags = CLIP if clip else 0
    if isinstance(rows, (list, tuple)):
        width = len(rows[0]) if rows else columns
        if width < columns or any(len(row) != width for row in rows):
            raise ValueError(f"rows of {columns} numbers or more are wanted, all of one length")
        numbers = (ctypes.c_float * (len(rows) * width))(*(number for row in rows for number in row))
        function(header, numbers, len(rows), width, flags)
        return [list(numbers[at : at + width]) for at in range(0, len(numbers), width)]
    import numpy

    array = numpy.array(on_host(rows), "f4", order="C")
    if array.size and (array.ndim != 2 or array.shape[1] < columns):
        raise ValueError(f"an array of N x {columns} is wanted, not {array.shape}")
    if array.size:
        function(header, array.ctypes.data, len(array), array.shape[1], flags)
    return array


class Lent:
    """A reader's view: validity, release and copy.

    For a ring, for programs that open its memory themselves, as Triton does: `bytes` at `offset` of `memory_bytes`;
    `shared` is the name of the POSIX object, `ipc_handle` the cudaIpcMemHandle_t, or None. If `memory_number` changes, the
    memory may be another. For a socket and for a copy all are 0 and None.
    """

    offset = memory_bytes = memory_number = 0
    shared = ipc_handle = None

    def _lend(self, reader, view):
        self._reader, self._view, self._sent_by = reader, view, reader
        self.header = Header.from_buffer_copy(view.header)
        self.offset, self.memory_bytes, self.memory_number = view.offset, view.memory_bytes, view.memory_number
        self.shared = view.shared.decode() if view.shared else None
        self.ipc_handle = ctypes.string_at(view.ipc_handle, 64) if view.ipc_handle else None
        device = None if view.memory == HOST else view.device
        self.place(view.data, view.bytes, None, device, view.ticket != 0, Memory(reader._handle))

    @property
    def valid(self):
        """True while the reader holds it, and for a copy."""
        return self._reader is None or self._reader._lent is self

    @property
    def whole(self):
        """True if all data read from it so far was this frame's."""
        if self._reader is None:
            return True
        with self._reader._lock:
            return self.valid and bool(libframed.framed_whole(self._reader._handle, self._view))

    def _send(self, index, detections, source, model):
        """Returns False if the daemon accepts no result now, or is gone."""
        boxes, count = packed(detections)
        if not 0 <= model < 1 << 32:
            raise ValueError(f"model is a number from 0 to {(1 << 32) - 1}, not {model}")
        with self._sent_by._lock:
            handle, flags = self._sent_by._open_handle(), IN_SOURCE if source else 0
            if libframed.framed_send(handle, self._view, index, boxes, count, flags, model) == 0:
                return True
            error = ctypes.get_errno()
        if error in (errno.EAGAIN, errno.EPIPE, errno.ESTALE):
            return False
        if error == errno.ENOTSUP:
            raise ValueError("detections go back over a ring alone: sink: ring:PATH")
        raise ValueError(f"{count} detections: {os.strerror(error)} (300 at most)")

    def release(self):
        """Releases it to framed before the next request."""
        if self._reader is not None:
            self._reader._release(self)

    def _copy(self):
        """Returns a copy of the bytes. Torn: it is not whole."""
        if self.on_gpu:
            raise ValueError("the frame is on a GPU: keep torch().clone()")
        copied = ctypes.create_string_buffer(self.bytes)
        ctypes.memmove(copied, self._address, self.bytes)
        if not self.whole:
            raise Torn(f"frame {self.header.sequence} was taken away")
        return copied


class Frame(Lent, Picture):
    """One frame. header: every field of the wire's header."""

    @classmethod
    def _of(cls, reader, view):
        frame = cls()
        frame._lend(reader, view)
        frame.shape = shape_of(frame.header, view.bytes)
        return frame

    def keep(self):
        """Returns a copy that stays valid forever. Torn: framed has taken the frame away."""
        copied, frame = self._copy(), Frame()
        frame._reader, frame._view, frame._sent_by, frame.header = None, self._view, self._sent_by, self.header
        frame.place(ctypes.addressof(copied), self.bytes, self.shape, None, False, copied)
        return frame

    def send(self, detections, source=True, model=0):
        """Sends the detections of the frame to framed, which publishes them: rows x1, y1, x2, y2, score, class, and track if there are
        seven columns; as returned by detect(), in the camera's picture, or with source=False in the tensor. An empty list is a result,
        too. model: your own number, which is passed on. The frame stays valid; it may also have been released, or be a copy. Returns
        False if framed accepts no result now, is gone or has restarted; the detections are lost."""
        return self._send(0, detections, source, model)

    def __repr__(self):
        return f"<framedio.Frame {self.camera} {self.sequence}: {self.format} {self.dtype} {self.shape}>"


class Scene:
    """The camera's analysis of the whole picture: moving, light (it became lighter or darker at once), learning; alarms, a
    list of names; fingerprint, 64 bits; mean and sharpness of luma."""

    ALARMS = ["dark", "glare", "frozen", "blurred", "moved"]  # from bit 8 on

    def __init__(self, element):
        flags = element.scene
        self.moving, self.light, self.learning = bool(flags & 2), bool(flags & 4), bool(flags & 8)
        self.alarms = [name for i, name in enumerate(self.ALARMS) if flags >> 8 + i & 1]
        self.fingerprint, self.mean, self.sharpness = element.fingerprint, element.luma_mean, element.sharpness

    def __repr__(self):
        return f"<framedio.Scene {'moving' if self.moving else 'still'} {self.fingerprint:016x} {' '.join(self.alarms)}>"


class Element(Picture):
    """One picture of a batch. header: the wire's header; region, part, parts; scene, a Scene, or None if the picture was
    not analysed. For crops also object, the index of the box in its result, and parent_sequence, the number of the picture
    in the output in which the box was found."""

    def __init__(self, batch, index, element):
        self.batch, self.index, self.header = batch, index, element.header
        self.region, self.part, self.parts = element.region.decode(errors="replace"), element.part, element.parts
        self.object, self.parent_sequence = element.object, element.parent_sequence
        self.scene = Scene(element) if element.scene & 1 else None
        size = batch.info.element_bytes
        self.place(batch.pointer + index * size, size, shape_of(self.header, size), batch._device, batch._readonly, batch)

    @property
    def empty(self):
        """True if there is no picture."""
        return bool(self.header.flags & EMPTY)

    def send(self, detections, source=True, model=0):
        """See Frame.send."""
        return self.batch._send(self.index, detections, source, model)

    def __repr__(self):
        return f"<framedio.Element {self.index}: {self.camera} {self.sequence}>"


class Batch(Lent, Payload):
    """Pictures of several cameras, or several parts of pictures: an array of count x C x H x W. A sequence of Elements;
    empty ones have no picture. info: every field of the wire's struct framed_batch."""

    @classmethod
    def _of(cls, reader, view):
        batch = cls()
        batch._lend(reader, view)
        batch.info = type(view.batch).from_buffer_copy(view.batch)
        batch._set_elements(ctypes.string_at(view.elements, view.batch.count * ctypes.sizeof(ElementHeader)))
        return batch

    def _set_elements(self, headers):
        self.headers = (ElementHeader * self.info.count).from_buffer_copy(headers)
        self.shape = (self.info.count, *shape_of(self.header, self.info.element_bytes))
        self.elements = [Element(self, index, element) for index, element in enumerate(self.headers)]

    count = property(lambda self: self.info.count)
    capacity = property(lambda self: self.info.capacity)
    sequence = property(lambda self: self.info.sequence)
    lost = property(lambda self: self.info.lost)
    cameras = property(lambda self: [element.camera for element in self.elements])

    def __len__(self):
        return self.info.count

    def __getitem__(self, index):
        return self.elements[index]

    @property
    def matrices(self):
        """count x 2 x 3: each element's matrix from its pixels to the camera's picture (pixel centres)."""
        import numpy

        rows = [element.header.dst_to_src[:] for element in self.elements]
        return numpy.array(rows, "f4").reshape(-1, 2, 3)

    def to_source(self, boxes, clip=True):
        """Maps each element's boxes, a list as long as the batch, to boxes in its camera's picture."""
        if len(boxes) != len(self):
            raise ValueError(f"{len(boxes)} lists of boxes for {len(self)} elements")
        return [element.to_source(rows, clip) for element, rows in zip(self.elements, boxes)]

    def send(self, detections, source=True, model=0):
        """See Frame.send: takes each element's detections, a list as long as the batch, as returned by detect(). For empty
        elements nothing is sent. Returns False if not all were sent."""
        if len(detections) != len(self):
            raise ValueError(f"{len(detections)} lists of detections for {len(self)} elements")
        sent = [element.send(rows, source, model) for element, rows in zip(self.elements, detections) if not element.empty]
        return all(sent)

    def keep(self):
        """Returns a copy that stays valid forever. Torn: framed has taken the batch away."""
        copied, batch = self._copy(), Batch()
        batch._reader, batch._view, batch._sent_by = None, self._view, self._sent_by
        batch.header, batch.info = self.header, self.info
        batch.place(ctypes.addressof(copied), self.bytes, None, None, False, copied)
        batch._set_elements(bytes(self.headers))
        return batch

    def __repr__(self):
        return f"<framedio.Batch {self.sequence}: {self.info.elements} of {self.capacity}, {self.shape}>"
