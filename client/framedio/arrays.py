"""Arrays of other libraries, by pointer: numpy, PyTorch, CuPy, ONNX Runtime's OrtValue, and every type with
__cuda_array_interface__, __array_interface__, DLPack or the buffer protocol."""
import ctypes
import sys

from .dlpack import CODES, CPU, CUDA, Managed, Tensor, Versioned

NAMES = {
    "<f4": "f32", "<f2": "f16", "|i1": "s8", "|u1": "u8", "<i4": "s32", "<i8": "s64",
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "s8", "uint8": "u8", "int32": "s32", "int64": "s64",
    "float": "f32",
    "f": "f32", "e": "f16", "b": "s8", "B": "u8", "i": "s32", "l": "s64", "q": "s64",
}
DLPACK = {**{code: NAMES[typestr] for typestr, code in CODES.items()}, (4, 16): "bf16", (0, 32): "s32", (0, 64): "s64"}
LEGACY_STREAM = 1


class Array:
    """Location and content of an array. device: CUDA's number, or None on the host. stream: the stream that makes the
    content, if the library reports it. owner: keeps the array alive."""

    __slots__ = "pointer", "shape", "dtype", "device", "stream", "owner"

    def __init__(self, pointer, shape, dtype, device, stream, owner):
        self.pointer, self.shape, self.device, self.stream, self.owner = pointer, tuple(shape), device, stream, owner
        self.dtype = NAMES.get(dtype, dtype)


def _packed(shape, strides, unit):
    """Returns True if strides, in units of `unit` bytes, match a packed array."""
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != unit:
            return False
        unit *= size
    return True


def _refuse_gaps(value):
    raise ValueError(f"a {type(value).__name__} that is not contiguous: make it so (numpy.ascontiguousarray, .contiguous())")


def _of_torch(tensor):
    if not tensor.is_contiguous():
        _refuse_gaps(tensor)
    on_gpu = tensor.device.type == "cuda"
    if not on_gpu and tensor.device.type != "cpu":
        raise ValueError(f"a tensor on {tensor.device}: only the CPU and CUDA are known")
    stream = sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream if on_gpu else None
    dtype = str(tensor.dtype).rpartition(".")[2]
    return Array(tensor.data_ptr(), tensor.shape, dtype, tensor.device.index if on_gpu else None, stream, tensor)


def _of_ort(value):
    on_gpu = value.device_name().lower() == "cuda"
    dtype = value.data_type()[len("tensor("):-1]
    return Array(value.data_ptr(), value.shape(), dtype, 0 if on_gpu else None, None, value)


def _of_interface(value, interface, device):
    strides = interface.get("strides")
    if strides is not None and not _packed(interface["shape"], strides, int(interface["typestr"][2:])):
        _refuse_gaps(value)
    if interface.get("data") is None:
        return _of_buffer(value)
    return Array(interface["data"][0], interface["shape"], interface["typestr"], device, interface.get("stream"), value)


def _of_dlpack(value):
    device_type, device = value.__dlpack_device__()
    if device_type not in (CPU, CUDA):
        raise ValueError(f"a {type(value).__name__} on DLPack's device {device_type}: only the CPU and CUDA are known")
    capsule = value.__dlpack__(stream=LEGACY_STREAM) if device_type == CUDA else value.__dlpack__()
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    kind = Versioned if name == b"dltensor_versioned" else Managed
    address = pointer_of(capsule, name)
    tensor = Tensor.from_address(address + kind.tensor.offset)
    shape = (ctypes.c_int64 * tensor.ndim).from_address(tensor.shape)[:]
    if tensor.strides and not _packed(shape, (ctypes.c_int64 * tensor.ndim).from_address(tensor.strides)[:], 1):
        _refuse_gaps(value)
    dtype = DLPACK.get((tensor.code, tensor.bits), f"DLPack's type {tensor.code} of {tensor.bits} bits")
    # The capsule is not consumed: it frees the array when it is freed itself.
    return Array(tensor.data + tensor.byte_offset, shape, dtype, device if device_type == CUDA else None, None, capsule)


def _of_buffer(value):
    view = memoryview(value)
    if not view.c_contiguous:
        _refuse_gaps(value)
    held = (ctypes.c_char * view.nbytes).from_buffer(view) if not view.readonly else None
    if held is None:
        raise ValueError("a buffer that is read-only: numpy.asarray of it will do")
    return Array(ctypes.addressof(held), view.shape, view.format, None, None, held)


def array_of(value):
    """Returns an Array of the value, without a copy. ValueError: it has gaps, or is on an unknown device. TypeError: it
    is not an array."""
    library = type(value).__module__.partition(".")[0]
    if library == "torch":
        return _of_torch(value)
    if hasattr(value, "data_ptr") and hasattr(value, "device_name"):
        return _of_ort(value)
    if (interface := getattr(value, "__cuda_array_interface__", None)) is not None:
        device = getattr(getattr(value, "device", None), "id", None)
        return _of_interface(value, interface, 0 if device is None else int(device))
    if (interface := getattr(value, "__array_interface__", None)) is not None:
        return _of_interface(value, interface, None)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value)
    try:
        return _of_buffer(value)
    except TypeError:
        raise TypeError(f"a {type(value).__name__} is no array that is known here") from None
