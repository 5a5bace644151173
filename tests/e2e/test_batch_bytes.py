#!/usr/bin/python3
"""Batches of files at full pace, in every kind of sink, and of the regions and tiles of a picture: nothing is lost, and each element has the bytes
and the matrix of an ordinary output with the same contents."""
import collections
import os

import numpy

from batch_client import BatchReader, check_ledger, check_order, read_file
from framed_client import Checks, Framed, consume, folder, free_port, make_clip

FRAMES = 60
SIZE = (320, 240)
TENSOR = "size: 64x48, tensor: {dtype: u8}, overflow: wait"
ROIS = {"door": (16, 8, 120, 90), "lane": (101, 33, 64, 200)}
TILES = "tiles: {size: 160, overlap: 10%, full: true}"
# The resulting grid: as few columns and rows as the overlap allows, evenly spaced.
TILE_RECTS = [(x, y, 160, 160) for y in (0, 80) for x in (0, 80, 160)] + [(0, 0, *SIZE)]
CAMERAS = ("a", "b", "c")


def output(where, name, keys, sink=None):
    return f'{name}: {{{TENSOR}{keys}, sink: "{sink or f"file:{where}/{name}.framed"}"}}'


def config_of(where, port):
    crops = {**ROIS, **{f"tile{i}": rect for i, rect in enumerate(TILE_RECTS)}}
    shown = [output(where, name, f", crop: {list(rect)}") for name, rect in crops.items()]
    rois = ", ".join(f"{name}: {list(rect)}" for name, rect in ROIS.items())
    rows = ""
    for name in CAMERAS:
        outputs = ", ".join([output(where, f"plain_{name}", "")] + (shown if name == "a" else []))
        more = f", rois: {{{rois}}}" if name == "a" else ""
        rows += f"  {name}: {{url: {where}/{name}.mp4{more}, outputs: {{{outputs}}}}}\n"
    everyone = ', cameras: "*", count: 4'
    batches = [
        output(where, "framed", everyone),
        output(where, "npy", everyone + ", tail: zero", f"file:{where}/batches.npy"),
        output(where, "ring", everyone, f"ring:{where}/ring"),
        output(where, "tcp", everyone, f"tcp:127.0.0.1:{port}"),
        output(where, "regions", ", cameras: a, roi: all"),
        output(where, "tiles", f", cameras: a, {TILES}"),
    ]
    return f"cameras:\n{rows}batches:\n" + "".join(f"  {batch}\n" for batch in batches)


def read_plain(where, name):
    """Returns sequence -> (payload, matrix) of an ordinary output."""
    with open(f"{where}/{name}.framed", "rb") as file:
        return {header.sequence: (payload, header.dst_to_src) for header, payload in consume.read_frames(file)}


def check_element(checks, what, element, shown):
    payload, matrix = shown[element.sequence]
    checks.check(element.payload == payload, f"{what}: other bytes in {element[:-1]}")
    checks.check(element.matrix == tuple(matrix), f"{what}: {element.matrix}, not {matrix}")


def check_whole(checks, name, batches, plain):
    """Each picture of each camera comes once, with its bytes, at the place given by its header."""
    check_order(checks, name, batches)
    elements = [element for batch in batches for element in batch.elements]
    counts = collections.Counter((element.camera, element.sequence) for element in elements)
    wanted = {(camera, sequence) for camera in CAMERAS for sequence in range(FRAMES)}
    checks.check(set(counts) == wanted, f"{name}: missing {sorted(wanted - set(counts))[:9]}")
    checks.check(max(counts.values()) == 1, f"{name}: twice {[key for key, n in counts.items() if n > 1][:9]}")
    for element in elements:
        check_element(checks, name, element, plain[element.camera])
        checks.check((element.region, element.part, element.parts) == ("", 0, 1), f"{name}: {element[:-1]}")


def check_npy(checks, path, batches, plain):
    """Records are 4 x 3 x 48 x 64 and contain each picture once; the rest is fill."""
    pictures, records = collections.Counter(), 0
    with open(path, "rb") as file:
        while file.peek(1):
            record = numpy.load(file)
            records += 1
            checks.check((record.shape, record.dtype) == ((4, 3, 48, 64), numpy.uint8), f"npy: {record.shape}")
            pictures.update(picture.tobytes() for picture in record)
    wanted = collections.Counter(payload for shown in plain.values() for payload, _ in shown.values())
    rest = pictures - wanted
    checks.check(not wanted - pictures, f"npy: {sum((wanted - pictures).values())} pictures are missing")
    checks.check(sum(rest.values()) == 4 * records - sum(wanted.values()), f"npy: {len(rest)} in {records} records")
    checks.check(records == batches, f"npy: {records} records of {batches} batches")
    checks.check(all(set(picture) == {114} for picture in rest), "npy: what is not filled holds no fill")


def check_parts(checks, name, where, parts):
    """The elements of a picture follow each other; parts: (region, ordinary output)."""
    batches = read_file(f"{where}/{name}.framed")
    elements = [element for batch in batches for element in batch.elements]
    shown = [read_plain(where, plain) for _, plain in parts]
    checks.check(len(elements) == FRAMES * len(parts), f"{name}: {len(elements)} elements")
    for i, element in enumerate(elements):
        number = i % len(parts)
        says = (element.sequence, element.region, element.part, element.parts)
        wanted = (i // len(parts), parts[number][0], number, len(parts))
        if checks.check(says == wanted, f"{name}: {says}, not {wanted}"):
            check_element(checks, f"{name} {element.part}", element, shown[number])


def main():
    checks = Checks("batch_bytes")
    with folder() as where:
        for i, name in enumerate(CAMERAS):
            make_clip(os.path.join(where, f"{name}.mp4"), frames=FRAMES, rate=(25, 10, 13)[i])
        port = free_port()
        with Framed(where, config_of(where, port)) as framed:
            addresses = {"ring": f"ring:{where}/ring", "tcp": f"tcp:127.0.0.1:{port}"}
            readers = {name: BatchReader(address, keep=True) for name, address in addresses.items()}
            code = framed.wait(60)
            checks.check(code == 0, f"exit {code}:\n{framed.errors()[-3000:]}")
            for reader in readers.values():
                reader.join(5)
                checks.check(not reader.error, f"{reader.address}: {reader.error}")
        metrics = framed.metrics()
        plain = {name: read_plain(where, f"plain_{name}") for name in CAMERAS}
        found = {"framed": read_file(f"{where}/framed.framed"), **{n: r.batches for n, r in readers.items()}}
        for name, batches in found.items():
            check_whole(checks, name, batches, plain)
        for name in (*found, "npy"):
            lost = check_ledger(checks, metrics, name, dict.fromkeys(CAMERAS, FRAMES))
            checks.check(not any(lost.values()), f"{name}: lost {lost}")
        check_npy(checks, f"{where}/batches.npy", metrics.sum("framed_batches_total", batch="npy"), plain)
        check_parts(checks, "regions", where, [(name, name) for name in ROIS])
        check_parts(checks, "tiles", where, [("", f"tile{i}") for i in range(len(TILE_RECTS))])
    checks.end()


main()
