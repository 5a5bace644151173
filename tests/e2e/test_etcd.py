#!/usr/bin/python3
"""The client of etcd with a real etcd: transactions, leases, watches over restarts and compaction, TLS, users."""
import itertools
import threading
import time

from certificate import make_authority
from etcd_client import Client
from etcd_server import INSTALLED, Etcd, add_users, cluster
from framed_client import SANITIZED, Checks, folder, until

LEASE = 2  # seconds: the shortest that etcd grants


def check_requests(checks, etcd):
    with Client(etcd.url) as client:
        empty = client.ask("get", 2000, "/framed/")
        checks.check(empty["rc"] == 0 and empty["entries"] == [] and empty["revision"] > 0, f"an empty store: {empty}")
        wrote = client.ask("commit", 2000, "version /framed/a 0 put /framed/a ä 0 put /framed/b {} 0 put /framed0 out 0")
        checks.check(wrote["rc"] == 0 and wrote["succeeded"] and wrote["revision"] == empty["revision"] + 1, f"{wrote}")
        read = client.ask("get", 2000, "/framed/")
        entries = [(e["key"], e["value"].encode("latin-1").decode(), e["mod"], e["version"]) for e in read["entries"]]
        checks.check(entries == [("/framed/a", "ä", wrote["revision"], 1), ("/framed/b", "{}", wrote["revision"], 1)],
                     f"keys below the prefix: {read}")
        for holds, comparison in ((False, "version /framed/a 0"), (True, "version /framed/a 1"), (True, "above /framed/a 0"),
                                  (False, "above /framed/a 1"), (False, "above /framed/none 0"), (True, "version /framed/none 0"),
                                  (True, f"mod /framed/a {wrote['revision']}"), (False, f"mod /framed/a {wrote['revision'] - 1}"),
                                  (True, "mod /framed/none 0"), (False, "version /framed/a 1 version /framed/b 2")):
            answer = client.ask("commit", 2000, f"{comparison} put /else x 0 delete /framed/none")
            checks.check(answer["rc"] == 0 and answer["succeeded"] == holds, f"{comparison}: {answer}")
        gone = client.ask("commit", 2000, "delete /framed/a delete /framed/b delete /framed0 delete /else")
        read = client.ask("get", 2000, "")
        checks.check(gone["succeeded"] and not read["entries"], f"after all were deleted: {read}")
        checks.check((status := client.close()) == 0, f"the client ends with {status}")


def check_lease(checks, etcd):
    with Client(etcd.url) as client:
        lease = client.ask("grant", 2000, LEASE)
        checks.check(lease["rc"] == 0 and lease["lease"] > 0 and lease["ttl"] == LEASE, f"a lease: {lease}")
        wrote = client.ask("commit", 2000, f"put /framed/node/a alive {lease['lease']}")
        client.watch("/framed/", wrote["revision"] + 1)
        read = client.ask("get", 2000, "/framed/node/")
        checks.check([e["lease"] for e in read["entries"]] == [lease["lease"]], f"a key on a lease: {read}")
        for _ in range(8):
            kept = client.ask("keepalive", 1000, lease["lease"])
            checks.check(kept["rc"] == 0 and kept["ttl"] == LEASE and 0 <= kept["sent_ms"] <= kept["ms"], f"kept: {kept}")
            time.sleep(LEASE / 5)
        checks.check(not client.told, f"a lease that is kept ends: {client.told}")
        client.wait_for(lambda: client.told, LEASE + 5)
        checks.check([event[:2] for event in client.events()] == [("/framed/node/a", None)], f"its end: {client.told}")
        gone = client.ask("keepalive", 1000, lease["lease"])
        checks.check(gone["rc"] == 0 and gone["ttl"] == 0, f"of a lease that has ended: {gone}")
        late = client.ask("commit", 1000, f"put /framed/node/a again {lease['lease']}")
        checks.check(late["errno"] == "ENOENT" and "lease not found" in late["error"], f"a key on it: {late}")
        lease = client.ask("grant", 2000, 60)["lease"]
        client.ask("commit", 2000, f"put /framed/node/b alive {lease}")
        revoked = client.ask("revoke", 1000, lease)
        again = client.ask("revoke", 1000, lease)
        left = client.ask("get", 1000, "/framed/")
        checks.check(revoked["rc"] == 0 and again["rc"] == 0 and not left["entries"], f"revoked: {revoked} {again} {left}")
        checks.check((status := client.close()) == 0, f"the client ends with {status}")


def check_restarts(checks, etcd):
    """One client writes while etcd is killed and restarted; the other's watch misses no change and gets none twice."""
    with Client(etcd.url) as writer, Client(etcd.url) as reader:
        first = writer.ask("commit", 2000, "put /framed/n begin 0")["revision"]
        reader.watch("/framed/", first)
        running, written = [True], []

        def write():
            for n in range(100000):
                if not running[0]:
                    return
                answer = writer.ask("commit", 1000, f"put /framed/n {n} 0")
                if answer["rc"] == 0:
                    written.append((str(n), answer["revision"]))
                else:
                    time.sleep(0.02)
        thread = threading.Thread(target=write)
        thread.start()
        for _ in range(3):
            n = len(written)
            until(lambda: len(written) > n + 50, 20)
            etcd.stop()
            time.sleep(0.3)
            etcd.start()
        n = len(written)
        until(lambda: len(written) > n + 50, 20)
        running[0] = False
        thread.join()
        last = writer.ask("commit", 5000, "put /framed/n end 0")["revision"]
        reader.wait_for(lambda: reader.told and reader.told[-1]["entries"][-1]["mod"] >= last, 10)
        told = [event[2] for event in reader.events()]
        checks.check(told == list(range(first, last + 1)), f"revisions {first} to {last}: {len(told)} came, {told[:3]}...{told[-3:]}")
        values = {event[2]: event[1] for event in reader.events()}
        checks.check(all(values[revision] == value for value, revision in written), "a change has another's value")
        checks.check(len(written) > 200 and reader.close() == 0 and writer.close() == 0, f"{len(written)} written")


def check_compaction(checks, etcd):
    with Client(etcd.url) as client:
        first = client.ask("commit", 2000, "put /framed/x 0 0")["revision"]
        for n in range(5):
            last = client.ask("commit", 2000, f"put /framed/x {n} 0")["revision"]
        etcd.ask("kv/compaction", {"revision": str(last)})
        client.watch("/framed/", first)
        client.wait_for(lambda: client.told)
        checks.check([answer["errno"] for answer in client.told] == ["EOVERFLOW"], f"a compacted revision: {client.told}")
        client.watch("/framed/", last)
        client.wait_for(lambda: len(client.told) > 1)
        checks.check(client.events() == [("/framed/x", "4", last)], f"from the revision of compaction: {client.told}")
        client.send("unwatch")
        client.ask("commit", 2000, "put /framed/x unseen 0")
        time.sleep(0.3)
        checks.check(len(client.told) == 2 and client.close() == 0, f"after the watch was ended: {client.told}")


def check_tls(checks, where):
    files = make_authority(where)
    own = {"cert": files["client.pem"], "key": files["client.key"]}
    with Etcd(where, "tls", "https", ["--cert-file", files["server.pem"], "--key-file", files["server.key"],
                                      "--trusted-ca-file", files["ca.pem"], "--client-cert-auth"]) as etcd:
        with Client(etcd.url, ca=files["ca.pem"], **own) as client:
            until(lambda: client.ask("get", 1000, "/")["rc"] == 0, 20)
            wrote = client.ask("commit", 2000, "put /framed/a x 0")
            client.watch("/framed/", wrote["revision"])
            client.wait_for(lambda: client.told)
            checks.check(client.events() == [("/framed/a", "x", wrote["revision"])], f"by TLS: {client.told}")
            checks.check((status := client.close()) == 0, f"the client ends with {status}")
        for name, options in (("no certificate", {"ca": files["ca.pem"]}), ("another authority", {"ca": files["other.pem"], **own}),
                              ("the system's authorities", own), ("no such file", {"ca": f"{where}/none.pem"})):
            with Client(etcd.url, **options) as client:
                answer = client.ask("get", 1000, "/")
                checks.check(answer["errno"] == "EACCES" and answer["error"].startswith(f"{etcd.url}: "), f"{name}: {answer}")
                checks.check((status := client.close()) == 0, f"the client ends with {status}")


def check_users(checks, where):
    with Etcd(where, "users", options=["--auth-token", "simple", "--bcrypt-cost", "4"]) as etcd:
        etcd.wait()
        with Client(etcd.url, user="framed", password="s3cret") as client:
            before = client.ask("get", 2000, "/framed/")
            add_users(etcd)
            wrote = client.ask("commit", 2000, "put /framed/a x 0")
            checks.check(before["rc"] == 0 and wrote["rc"] == 0, f"before and after users were added: {before} {wrote}")
            client.watch("/framed/", wrote["revision"])
            client.wait_for(lambda: client.told)
            etcd.stop()  # etcd forgets all tokens
            etcd.start()
            until(lambda: client.ask("get", 1000, "/framed/")["rc"] == 0, 20)
            again = client.ask("commit", 2000, "put /framed/a y 0")
            client.wait_for(lambda: len(client.told) > 1)
            checks.check([event[1] for event in client.events()] == ["x", "y"], f"a watch over a restart: {client.told}")
            checks.check(again["rc"] == 0, f"a token that etcd has forgotten: {again}")
            out = client.ask("get", 2000, "/else/")
            checks.check(out["errno"] == "EACCES" and "permission denied" in out["error"], f"outside of its keys: {out}")
            client.watch("/else/", 1)
            client.wait_for(lambda: len(client.told) > 2)
            checks.check(client.told[-1]["errno"] == "EACCES", f"a watch outside of its keys: {client.told[-1]}")
            checks.check((status := client.close()) == 0, f"the client ends with {status}")
        for options in ({"user": "framed", "password": "wr0ng"}, {"user": "nobody", "password": "wr0ng"}, {}):
            with Client(etcd.url, **options) as client:
                answer = client.ask("get", 2000, "/framed/")
                good = answer["errno"] == "EACCES" and "etcdserver: " in answer["error"] and "wr0ng" not in str(answer)
                checks.check(good, f"{options}: {answer}")
                checks.check((status := client.close()) == 0, f"the client ends with {status}")


def check_quota(checks, where):
    with Etcd(where, "quota", options=["--quota-backend-bytes", "65536"]) as etcd, Client(etcd.url) as client:
        etcd.wait()
        n = itertools.count()
        full = until(lambda: (answer := client.ask("commit", 2000, f"put /framed/{next(n)} {'x' * 4000} 0"))["rc"] and answer, 20)
        checks.check(full["errno"] == "ENOSPC" and "space exceeded" in full["error"], f"a full disk: {full}")
        checks.check((status := client.close()) == 0, f"the client ends with {status}")


def check_cluster(checks, where):
    """One of three members is frozen, so that it accepts connections without answering: a lease is kept all the same. If it was the leader, that
    takes until the others have elected another one."""
    with cluster(where, 3) as (leader, *followers):
        for frozen, longest in ((followers[0], 1), (leader, 4)):
            living = next(follower for follower in followers if follower is not frozen)
            with Client(frozen.url, *(member.url for member in (leader, *followers) if member is not frozen)) as client:
                lease = client.ask("grant", 2000, 30)["lease"]
                first = client.ask("commit", 2000, f"put /framed/node alive {lease}")["revision"]
                client.watch("/framed/", first)
                client.wait_for(lambda: client.told)
                frozen.freeze()
                begun, last, waits, failed = time.monotonic(), time.monotonic(), [], 0
                while time.monotonic() < begun + 5:
                    kept = client.ask("keepalive", 1000, lease)
                    failed += kept["rc"] != 0
                    if kept["rc"] == 0:
                        waits.append(time.monotonic() - last)
                        last = time.monotonic()
                    time.sleep(0.2)
                name = "a follower" if frozen is not leader else "the leader"
                checks.check(waits and max(waits) < longest * (2 if SANITIZED else 1), f"{name} frozen: {max(waits, default=0):.2f} s without a lease kept")
                checks.check(frozen is leader or failed == 0, f"{name} frozen: {failed} keepalives failed")
                client.watch("/framed/", first + 1)  # the caller's way to replace a silent watch
                with Client(living.url) as other:
                    wrote = other.ask("commit", 3000, "put /framed/x 1 0")
                client.wait_for(lambda: len(client.told) > 1)
                checks.check(wrote["rc"] == 0 and client.events()[1:] == [("/framed/x", "1", wrote["revision"])], f"{name}: a watch elsewhere: {client.told}")
                checks.check((status := client.close()) == 0, f"the client ends with {status}")
                frozen.thaw()
                frozen.wait()


def main():
    checks = Checks("etcd")
    if not INSTALLED:
        checks.skip("etcd-server is not installed")
        checks.end()
    with folder() as where, Etcd(where) as etcd:
        etcd.wait()
        check_requests(checks, etcd)
        check_lease(checks, etcd)
        check_restarts(checks, etcd)
        check_compaction(checks, etcd)
        check_tls(checks, where)
        check_users(checks, where)
        check_quota(checks, where)
        check_cluster(checks, where)
    checks.end()


main()
