#!/usr/bin/env python3
"""Shows that an image which `scripts/image.py` made works: its blobs are what their names say, anybody may read its files, and its
server starts on a read-only root, not as root, with nothing but what the image holds, and passes the image's own health check.

    scripts/image-check.py IMAGE.oci.tar

There is no container engine in this: bubblewrap makes the same of the image's configuration as one would.
"""

import hashlib
import io
import json
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

# Far more than it takes, also on a busy machine.
HEALTHY_SECONDS_MAX = 120


def fail(what):
    sys.exit(f"image-check: {what}")


def blob(layout, descriptor):
    data = layout.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
    if "sha256:" + hashlib.sha256(data).hexdigest() != descriptor["digest"] or len(data) != descriptor["size"]:
        fail(f"{descriptor['digest']} is not what its name says")
    return data


def unpack(image, root):
    """Writes the files of the image below a folder, and answers its configuration."""
    with tarfile.open(image) as layout:
        index = json.load(layout.extractfile("index.json"))
        manifest = json.loads(blob(layout, index["manifests"][0]))
        config = json.loads(blob(layout, manifest["config"]))["config"]
        user = int(config["User"].split(":")[0])
        for descriptor in manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(blob(layout, descriptor))) as layer:
                for entry in layer:
                    if entry.isfile() and not entry.mode & 0o004:
                        fail(f"{entry.name} cannot be read by user {user}")
                    if entry.name in (volume.strip("/") for volume in config["Volumes"]) and entry.uid != user:
                        fail(f"/{entry.name} is not user {user}'s")
                layer.extractall(root, members=[entry for entry in layer if not entry.isdir()])
    if user == 0:
        fail("it runs as root")
    return config


def sandbox(config, root, volumes, more_variables, arguments):
    user, group = config["User"].split(":")
    command = ["bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--uid", user, "--gid", group]
    command += ["--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for volume in config["Volumes"]:
        command += ["--bind", volumes, volume]
    command += ["--clearenv"]
    variables = dict(line.split("=", 1) for line in config["Env"]) | more_variables
    for name, value in variables.items():
        command += ["--setenv", name, value]
    return [*command, "--chdir", config["WorkingDir"], "--", *arguments]


def main():
    image = sys.argv[1]
    # What is killed at the end may still write while the folder goes.
    with tempfile.TemporaryDirectory(prefix="image-check-", ignore_cleanup_errors=True) as scratch:
        root, volumes = Path(scratch, "root"), Path(scratch, "volumes")
        volumes.mkdir()
        config = unpack(image, root)
        # Every engine makes these.
        for folder in ["proc", "dev", "tmp", *(volume.strip("/") for volume in config["Volumes"])]:
            (root / folder).mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
        variables = {"INTERLOCK_LISTEN": address, "INTERLOCK_SERVER": f"http://{address}"}
        kind, *health = config["Healthcheck"]["Test"]
        if kind != "CMD":
            fail("there is no shell for its health check")
        run = [*config["Entrypoint"], *config["Cmd"]]
        log = Path(scratch, "log")
        with log.open("w") as out:
            server = subprocess.Popen(sandbox(config, root, volumes, variables, run), stdout=out, stderr=out)
        try:
            ends = time.monotonic() + HEALTHY_SECONDS_MAX
            check = sandbox(config, root, volumes, variables, health)
            while (done := subprocess.run(check, capture_output=True, text=True)).returncode != 0:
                if server.poll() is not None or time.monotonic() > ends:
                    fail(f"its server does not get healthy: {done.stdout}{done.stderr}\n{log.read_text()}")
                time.sleep(0.2)
        finally:
            server.kill()
            server.wait()
        if not any(volumes.iterdir()):
            fail("its server keeps nothing in the volume")
    print("image-check: the image's server starts and is healthy, on a read-only root and not as root", file=sys.stderr)


if __name__ == "__main__":
    main()
