#!/usr/bin/python3
"""scripts/repo makes a folder an apt source: apt finds and fetches packages in it, for its own architecture only; if the
folder is signed, apt refuses it after a change."""
import os
import shutil
import subprocess

from framed_client import ROOT, Checks, folder

CONTROL = "Package: framed\nVersion: {}\nArchitecture: {}\nMaintainer: a <a@example.org>\nDescription: nothing\n"
KEY = "framed test <test@example.org>"


def output_of(*arguments, **more):
    """Returns (exit code, output)."""
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    return done.returncode, done.stdout


def package(where, version, machine):
    tree = f"{where}/{version}-{machine}"
    os.makedirs(f"{tree}/DEBIAN")
    with open(f"{tree}/DEBIAN/control", "w") as file:
        file.write(CONTROL.format(version, machine))
    path = f"{where}/framed_{version}_{machine}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, path], check=True, stdout=subprocess.DEVNULL)
    return path


class Apt:
    """An apt with its own folders and one source line."""

    def __init__(self, where, line):
        for name in ("lists/partial", "cache/archives/partial", "etc"):
            os.makedirs(f"{where}/{name}", exist_ok=True)
        with open(f"{where}/etc/sources.list", "w") as file:
            file.write(line + "\n")
        with open(f"{where}/status", "w"):
            pass
        settings = {"Dir::Etc": f"{where}/etc", "Dir::State::lists": f"{where}/lists", "Dir::State::status": f"{where}/status",
                    "Dir::Cache": f"{where}/cache", "APT::Architecture": "amd64", "APT::Architectures": "amd64",
                    "APT::Sandbox::User": ""}
        self.where, self.settings = where, [f"-o{key}={value}" for key, value in settings.items()]

    def __call__(self, program, *arguments):
        return output_of(program, *self.settings, *arguments, cwd=self.where)


def check_found(checks, where, line):
    apt = Apt(where, line)
    code, said = apt("apt-get", "update")
    checks.check(code == 0 and "W:" not in said, f"apt-get update: {code}: {said}")
    said = apt("apt-cache", "madison", "framed")[1]
    versions = [row.split("|")[1].strip() for row in said.splitlines()]
    checks.check(versions == ["0.2", "0.1"], f"apt finds {versions} of two for this machine and one for another")
    code, said = apt("apt-get", "download", "framed")
    checks.check(code == 0 and os.path.exists(f"{where}/framed_0.2_amd64.deb"), f"apt-get download: {code}: {said}")


def check_changed(checks, apt, repo):
    """A list changed after signing is refused."""
    with open(f"{repo}/Packages", "a") as file:
        file.write("\nPackage: other\nVersion: 1\nArchitecture: amd64\nFilename: ./other.deb\nSize: 1\n")
    os.remove(f"{repo}/Packages.gz")
    code, said = apt("apt-get", "update")
    refused = code != 0 and "Hash Sum mismatch" in said and not apt("apt-cache", "madison", "other")[1].strip()
    checks.check(refused, f"a list that was changed: {code}: {said}")


def main():
    checks = Checks("repo")
    missing = [name for name in ("dpkg-deb", "dpkg-scanpackages", "apt-get", "gpg", "gpgv") if not shutil.which(name)]
    if missing:
        checks.skip(f"{missing[0]} is not installed")
        return checks.end()
    with folder() as where:
        packages = [package(where, version, machine) for version, machine in (("0.1", "amd64"), ("0.2", "amd64"), ("0.3", "arm64"))]
        code, said = output_of(f"{ROOT}/scripts/repo", f"{where}/open", *packages)
        checks.check(code == 0, f"scripts/repo: {said}")
        check_found(checks, f"{where}/apt", said.splitlines()[-1])
        os.mkdir(f"{where}/keys", 0o700)
        environment = {**os.environ, "GNUPGHOME": f"{where}/keys", "KEY": KEY}
        subprocess.run(["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", KEY, "ed25519", "sign"],
                       check=True, env=environment, stderr=subprocess.DEVNULL)
        code, said = output_of(f"{ROOT}/scripts/repo", f"{where}/signed", *packages, env=environment)
        checks.check(code == 0 and "signed-by=" in said, f"scripts/repo with a key: {said}")
        line = said.splitlines()[-1]
        check_found(checks, f"{where}/apt-signed", line)
        check_changed(checks, Apt(f"{where}/apt-changed", line), f"{where}/signed")
        subprocess.run(["gpgconf", "--kill", "all"], env=environment)
    return checks.end()


main()
