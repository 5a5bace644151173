"""Makes the wheel of framedio where pip asks for it (PEP 517), with nothing but Python: so pip needs no network."""
import base64
import glob
import hashlib
import re
import zipfile

WHEEL = "Wheel-Version: 1.0\nGenerator: framed\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {description}
License: Apache-2.0
Requires-Python: {requires-python}
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
"""


def contents():
    """(name of the wheel, path -> bytes of each file in it but the list of them); pip calls in the project's folder."""
    with open("pyproject.toml") as file:
        project = dict(re.findall(r'^([\w-]+) = "(.*)"$', file.read(), re.M))
    name = f"{project['name'].replace('-', '_')}-{project['version']}"
    files = {}
    for path in sorted(glob.glob("framedio/*.py")):
        with open(path, "rb") as file:
            files[path] = file.read()
    files[f"{name}.dist-info/METADATA"] = METADATA.format(**project).encode()
    files[f"{name}.dist-info/WHEEL"] = WHEEL.encode()
    return name, files


def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, files = contents()
    record = ""
    with zipfile.ZipFile(f"{folder}/{name}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
        wheel.writestr(f"{name}.dist-info/RECORD", f"{record}{name}.dist-info/RECORD,,\n")
    return f"{name}-py3-none-any.whl"
