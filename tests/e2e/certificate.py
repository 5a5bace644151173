"""A certificate of a camera that speaks TLS."""
import os
import subprocess


def make_certificate(where, name):
    """(file of certificate and key, SHA-256 of the certificate)"""
    path = os.path.join(where, name)
    run = lambda *arguments: subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
        "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key", "-out", path)
    told = run("x509", "-in", path, "-noout", "-fingerprint", "-sha256")
    with open(path, "a") as both, open(path + ".key") as key:
        both.write(key.read())
    return path, told.strip().split("=")[1].replace(":", "").lower()
