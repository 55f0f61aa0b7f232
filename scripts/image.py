#!/usr/bin/env python3
"""Makes a container image from a release's tarball, without a daemon and without a base image: an OCI layout in a tar file,
which `podman load`, `docker load` and `skopeo` take.

    scripts/image.py TARBALL IMAGE.oci.tar

Below the release stand the parts of Debian packages that the binary needs (libc6, libgcc-s1, ca-certificates), as
`apt-get download` gives them. There is no shell and no package manager. The same tarball and packages give the same bytes.
"""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ["libc6", "libgcc-s1", "gcc-12-base", "ca-certificates"]
USER = 65532
# What the binary reads at run time, and the licences of these packages.
WANTED = re.compile(r"(usr/)?lib(64)?/(x86_64-linux-gnu/)?[^/]+\.so[.0-9]*$|usr/share/doc/[^/]+/copyright$")
HEALTH = ["CMD", "/usr/local/bin/interlock", "health"]
SECOND = 1_000_000_000


def base_packages():
    """The packages' files, fetched once and kept below target/."""
    kept = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "image-base"
    kept.mkdir(parents=True, exist_ok=True)
    absent = [name for name in PACKAGES if not list(kept.glob(f"{name}_*.deb"))]
    if absent:
        subprocess.run(["apt-get", "-q", "download", *absent], cwd=kept, check=True, stdout=sys.stderr)
    return [sorted(kept.glob(f"{name}_*.deb"))[-1] for name in PACKAGES]


class Layer:
    """Files, written in the order of their names with one time and no names of people."""

    def __init__(self, moment):
        self.moment, self.entries = moment, {}

    def put(self, path, data=None, *, mode=0o644, owner=0, link=None):
        entry = tarfile.TarInfo(path.strip("/"))
        entry.mtime, entry.mode, entry.uid, entry.gid = self.moment, mode, owner, owner
        if link is not None:
            entry.type, entry.linkname = tarfile.SYMTYPE, link
        elif data is None:
            entry.type = tarfile.DIRTYPE
        else:
            entry.size = len(data)
        self.entries[entry.name] = (entry, data)

    def packed(self):
        for name in list(self.entries):
            for parent in Path(name).parents:
                if str(parent) not in (".", *self.entries):
                    self.put(str(parent), mode=0o755)
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name in sorted(self.entries):
                entry, data = self.entries[name]
                archive.addfile(entry, io.BytesIO(data) if data is not None and entry.isfile() else None)
        plain = plain.getvalue()
        packed = io.BytesIO()
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0, filename="") as stream:
            stream.write(plain)
        return plain, packed.getvalue()


def base(moment, packages):
    layer = Layer(moment)
    certificates = []
    for package in packages:
        archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for file in sorted(files, key=lambda file: file.name):
                path = file.name.removeprefix("./")
                if file.isfile() and path.startswith("usr/share/ca-certificates/mozilla/"):
                    certificates.append(files.extractfile(file).read())
                elif not WANTED.match(path):
                    continue
                elif file.issym():
                    layer.put(path, link=file.linkname)
                elif file.isfile():
                    layer.put(path, files.extractfile(file).read(), mode=file.mode)
        # Where scanners of images look for what is inside.
        control = subprocess.run(["dpkg-deb", "--field", package], check=True, capture_output=True).stdout
        layer.put(f"var/lib/dpkg/status.d/{package.name.split('_')[0]}", control)
    layer.put("etc/ssl/certs/ca-certificates.crt", b"".join(certificates))
    layer.put("etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\ninterlock:x:{USER}:{USER}::/var/lib/interlock:/sbin/nologin\n".encode())
    layer.put("etc/group", f"root:x:0:\ninterlock:x:{USER}:\n".encode())
    layer.put("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    layer.put("etc/os-release", b'NAME="Interlock"\nID=interlock\nID_LIKE=debian\nVERSION_ID="12"\n')
    layer.put("tmp", mode=0o1777)
    return layer


def release(moment, tarball):
    layer = Layer(moment)
    with tarfile.open(tarball) as files:
        for file in files:
            _, _, path = file.name.partition("/")
            if file.isfile() and path and not path.startswith(("lib/", "share/bash", "share/zsh", "share/fish", "share/man")):
                layer.put(f"usr/local/{path}", files.extractfile(file).read(), mode=file.mode)
    # A volume that is mounted on one of these begins with its owner and mode.
    for folder in ("var/lib/interlock", "run/interlock/admin", "run/interlock/worker"):
        layer.put(folder, mode=0o700, owner=USER)
    return layer


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def main():
    tarball, out = map(Path, sys.argv[1:])
    version = re.fullmatch(r"interlock-(.+)-linux-x86_64\.tar\.gz", tarball.name)[1]
    with tarfile.open(tarball) as files:
        moment = next(iter(files)).mtime
    created = datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    packages = base_packages()
    layers = [base(moment, packages).packed(), release(moment, tarball).packed()]
    labels = {
        "org.opencontainers.image.title": "interlock",
        "org.opencontainers.image.description": "Durable execution for work that changes real systems.",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.created": created,
    }
    config = json.dumps({
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": [
                "PATH=/usr/local/bin:/usr/bin:/bin",
                "INTERLOCK_DATA=/var/lib/interlock",
                "INTERLOCK_LISTEN=0.0.0.0:8420",
                "INTERLOCK_LOG=info",
                "INTERLOCK_LOG_FORMAT=json",
            ],
            "Entrypoint": ["/usr/local/bin/interlock"],
            "Cmd": ["server"],
            "WorkingDir": "/var/lib/interlock",
            "Volumes": {"/var/lib/interlock": {}},
            "ExposedPorts": {"8420/tcp": {}},
            "StopSignal": "SIGTERM",
            "Labels": labels,
            # Docker's own; what follows the OCI specification to the letter leaves it aside.
            "Healthcheck": {"Test": HEALTH, "Interval": 10 * SECOND, "Timeout": 6 * SECOND, "StartPeriod": 20 * SECOND},
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(plain) for plain, _ in layers]},
        "history": [
            {"created": created, "created_by": " ".join(package.name.removesuffix(".deb") for package in packages)},
            {"created": created, "created_by": tarball.name},
        ],
    }, sort_keys=True).encode()
    media = "application/vnd.oci.image"

    def descriptor(kind, data, **more):
        return {"mediaType": f"{media}.{kind}", "digest": digest(data), "size": len(data), **more}

    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": f"{media}.manifest.v1+json",
        "config": descriptor("config.v1+json", config),
        "layers": [descriptor("layer.v1.tar+gzip", packed) for _, packed in layers],
        "annotations": labels,
    }, sort_keys=True).encode()
    blobs = {digest(data): data for data in [config, manifest, *(packed for _, packed in layers)]}
    name = {"annotations": {"org.opencontainers.image.ref.name": f"interlock:{version}"}}
    platform = {"platform": {"architecture": "amd64", "os": "linux"}}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{media}.index.v1+json",
        "manifests": [descriptor("manifest.v1+json", manifest, **name, **platform)],
    }

    def blob(data):
        return "blobs/" + digest(data).replace(":", "/")

    # What Docker reads where it does not read the layout.
    archive = [{
        "Config": blob(config),
        "RepoTags": [f"interlock:{version}", "interlock:latest"],
        "Layers": [blob(packed) for _, packed in layers],
    }]
    files = {blob(data): data for data in blobs.values()} | {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": json.dumps(index, sort_keys=True).encode(),
        "manifest.json": json.dumps(archive, sort_keys=True).encode(),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as layout:
        for path in sorted(files):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(files[path]), moment, 0o644
            layout.addfile(entry, io.BytesIO(files[path]))
    print(f"image: {out}, {out.stat().st_size / 1e6:.1f} MB, {digest(manifest)}", file=sys.stderr)


if __name__ == "__main__":
    main()
