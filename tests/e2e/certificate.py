"""Makes certificates: one for a camera that speaks TLS, and an authority's."""
import os
import subprocess

# Python 3.13 rejects an authority without this extension.
AUTHORITY = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]


def make_certificate(where, name):
    """Returns (file of certificate and key, SHA-256 of the certificate)."""
    path = os.path.join(where, name)
    run = lambda *arguments: subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
        "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key", "-out", path)
    told = run("x509", "-in", path, "-noout", "-fingerprint", "-sha256")
    with open(path, "a") as both, open(path + ".key") as key:
        both.write(key.read())
    return path, told.strip().split("=")[1].replace(":", "").lower()


def make_authority(where):
    """Makes an authority, and its certificates for a server and a client; returns {name: file}."""
    run = lambda *arguments: subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=where)
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority", *AUTHORITY, "-keyout", "ca.key", "-out", "ca.pem")
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=other", *AUTHORITY, "-keyout", "other.key", "-out", "other.pem")
    with open(f"{where}/extensions", "w") as file:
        file.write("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\nauthorityKeyIdentifier=keyid\n")
    for name in ("server", "client"):
        run("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "extensions", "-out", f"{name}.pem")
    return {name: f"{where}/{name}" for name in ("ca.pem", "other.pem", "server.pem", "server.key", "client.pem", "client.key")}
