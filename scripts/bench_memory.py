#!/usr/bin/python3
"""Compares the memory that `framed check` plans for a set of cameras with the memory that framed uses for them.

usage: bench_memory.py [--framed BINARY] [--backend cpu|cuda] [--clips FOLDER] [--make-clips] [--seconds 8]
                       [--pace realtime|full] [SETUP...]

A SETUP is COUNTxWIDTHxHEIGHT or COUNTxFILE. Clips missing from FOLDER are made there by the ffmpeg program; --make-clips does
only that, for use on a machine without ffmpeg. Every output has a client that connects and never reads, so that all its slots
are in use. Used is the most memory of the process, minus its memory with a camera that never connects.
"""
import argparse
import glob
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

SETUPS = ["8x320x180", "8x768x432", "4x1920x1080", "1x3840x2160"]
RATE, PICTURES = 10, 60
TOP = "backend: {backend}\nlog: {{level: warning}}\ncontrol: off\ncameras:\n"
CAMERA = """
  camera{i}:
    url: '{url}'
    loop: true
    pace: {pace}
    outputs: {{o: {{overflow: drop_oldest, sink: 'unix:{where}/{i}.sock'}}}}
"""
MIB = 1 << 20


def make_clip(path, width, height):
    """Makes a clip with B-frames used as references, and as many reference pictures as this size's level allows."""
    macroblocks = -(-width // 16) * -(-height // 16)
    most_macroblocks = 184320 if macroblocks > 8192 else 32768 if macroblocks > 3600 else 8100
    level = "5.1" if macroblocks > 8192 else "4.0" if macroblocks > 3600 else "3.0"
    references = min(16, most_macroblocks // macroblocks)
    coder = ["-c:v", "libx264", "-preset", "veryfast", "-refs", str(references), "-bf", "5", "-level", level,
             "-x264-params", "b-pyramid=normal:keyint=30:scenecut=0:b-adapt=0", "-pix_fmt", "yuv420p"]
    source = f"testsrc2=size={width}x{height}:rate={RATE}"
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-frames:v", str(PICTURES), *coder,
                    "-b:v", f"{macroblocks * 60}", path], check=True)


def clip_of(folder, width, height):
    path = os.path.join(folder, f"{width}x{height}.mp4")
    if not os.path.exists(path):
        make_clip(path, width, height)
    return path


def resident(pid):
    """Returns the process's memory in bytes, without programs and libraries, which belong to files."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(size) << 10 for size in re.findall(r"^Pss_(?:Anon|Shmem): +(\d+) kB", file.read(), re.M))


def device_used():
    """Returns the bytes in use on the first GPU."""
    asked = ["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return int(subprocess.run(asked, capture_output=True, check=True, text=True).stdout) * MIB


def measure(options, where, config, cameras):
    """Returns the most host and device memory of a framed with that configuration."""
    for path in glob.glob(f"{where}/*.sock"):
        os.unlink(path)
    before = device_used() if options.backend == "cuda" else 0
    host = device = 0
    with subprocess.Popen([options.framed, "run", "-c", config], stdout=subprocess.DEVNULL) as child:
        clients, end = [], time.monotonic() + options.seconds
        while time.monotonic() < end and child.poll() is None:
            while len(clients) < cameras and os.path.exists(f"{where}/{len(clients)}.sock"):
                client = socket.socket(socket.AF_UNIX)
                client.connect(f"{where}/{len(clients)}.sock")
                clients.append(client)
            time.sleep(0.25)
            host = max(host, resident(child.pid))
            if options.backend == "cuda":
                device = max(device, device_used() - before)
        if child.poll() is not None:
            sys.exit(f"{config}: framed ended with {child.returncode}")
        child.send_signal(signal.SIGTERM)
        child.wait(30)
        for client in clients:
            client.close()
    return host, device


def planned(options, config):
    """Returns host and device memory of all cameras from the table of `framed check`."""
    told = subprocess.run([options.framed, "check", "-c", config], capture_output=True, text=True)
    sums = re.search(r"^sum +([\d. ]+)$", told.stdout, re.M)
    if not sums:
        sys.exit(told.stdout + told.stderr)
    figures = [float(figure) * MIB for figure in sums[1].split()]
    return figures[-1], figures[0] if len(figures) > 1 else 0


def write(path, options, where, urls):
    with open(path, "w") as file:
        file.write(TOP.format(backend=options.backend))
        file.writelines(CAMERA.format(i=i, url=url, where=where, pace=options.pace) for i, url in enumerate(urls))


def row(name, kind, plan, used):
    print(f"{name:<24} {kind:<7} {plan / MIB:>9.1f} {used / MIB:>9.1f} {plan / used if used > 0 else 0:>6.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("setups", nargs="*", default=SETUPS)
    parser.add_argument("--framed", default="build/framed")
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--clips", default="build/memory")
    parser.add_argument("--make-clips", action="store_true")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--pace", choices=["realtime", "full"], default="realtime")
    options = parser.parse_args()
    os.makedirs(options.clips, exist_ok=True)
    setups = []
    for setup in options.setups:
        count, clip = setup.split("x", 1)
        if not os.path.exists(clip):
            clip = clip_of(options.clips, *map(int, clip.split("x")))
        setups.append((f"{count}x{os.path.basename(clip)}", int(count), os.path.abspath(clip)))
    if options.make_clips:
        return
    with tempfile.TemporaryDirectory(prefix="framed-memory-") as where:
        path = f"{where}/framed.yaml"
        write(path, options, where, ["tcp://127.0.0.1:1"])
        host_alone, device_alone = measure(options, where, path, 0)
        print(f"memory in MiB with backend {options.backend}; framed alone takes {host_alone / MIB:.1f} on the host"
              + (f", {device_alone / MIB:.1f} on the device" if options.backend == "cuda" else ""))
        print(f"{'cameras':<24} {'memory':<7} {'planned':>9} {'used':>9} {'ratio':>6}")
        for setup, count, clip in setups:
            write(path, options, where, [clip] * count)
            host_plan, device_plan = planned(options, path)
            host, device = measure(options, where, path, count)
            row(setup, "host", host_plan, host - host_alone)
            if options.backend == "cuda":
                row(setup, "device", device_plan, device - device_alone)


main()
