#!/usr/bin/env python3
"""What the binary is made of: other people's licences, and a bill of materials in CycloneDX 1.5.

    scripts/inventory.py licences FILE
    scripts/inventory.py sbom FILE

Both are made from the same list: the crates that are linked into the binary (not those that only build or test it), as
`cargo metadata` and Cargo.lock name them, and the packages that are bundled into the console, as its package-lock.json does.
The same commit gives the same bytes; SOURCE_DATE_EPOCH is the time that the bill carries.
"""

import base64
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLATFORM = "x86_64-unknown-linux-gnu"
PROGRAM = "interlock-cli"
LICENCE_NAMES = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|UNLICENSE|COPYRIGHT)([-._].*)?", re.IGNORECASE)
# Below a crate that brings another project's C sources, its licence stands with the sources.
DEPTH_MAX = 4
# Manifests of before SPDX expressions.
SPDX = {"MIT/Apache-2.0": "MIT OR Apache-2.0", "Apache-2.0/MIT": "Apache-2.0 OR MIT", "Unlicense/MIT": "Unlicense OR MIT"}

# What those name who ship their work without a text.
TEXTS = {
    "MIT": """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to
use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom
the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.""",
}


class Component:
    def __init__(self, kind, name, version, licence, folder):
        self.kind, self.name, self.version, self.folder = kind, name, version, folder
        self.licence = SPDX.get(licence, licence).replace("/", " OR ")
        self.hash, self.source, self.needs = None, None, []

    @property
    def purl(self):
        return f"pkg:{self.kind}/{self.name.replace('@', '%40')}@{self.version}"

    def texts(self):
        depth = DEPTH_MAX if self.name.endswith("-sys") else 1
        for path in sorted(self.folder.rglob("*")):
            inside = path.relative_to(self.folder)
            if len(inside.parts) > depth or any(part in ("tests", "node_modules") for part in inside.parts):
                continue
            if path.is_file() and LICENCE_NAMES.fullmatch(path.name) and path.suffix not in (".rs", ".py", ".toml"):
                yield path.read_text(errors="replace")


def built():
    """Name and version of every crate that the program is built from: metadata also lists what only features that are off,
    or the tests of other crates, would need."""
    command = ["cargo", "tree", "--locked", "-p", PROGRAM, "-e", "normal", "--target", PLATFORM, "--prefix", "none"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return {(name, version.removeprefix("v")) for name, version in (line.split()[:2] for line in lines if line)}


def crates():
    """Our program, and all crates that are linked into it, our own included."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", PLATFORM]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    sums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    is_macro = {id for id, package in packages.items() if any("proc-macro" in t["kind"] for t in package["targets"])}
    present = built()
    is_absent = {id for id, package in packages.items() if (package["name"], package["version"]) not in present}
    begin = next(id for id, package in packages.items() if package["name"] == PROGRAM)
    found, waiting = {}, [begin]
    while waiting:
        id = waiting.pop()
        if id in found:
            continue
        linked = [
            dep["pkg"] for dep in nodes[id]["deps"]
            if any(kind["kind"] is None for kind in dep["dep_kinds"]) and dep["pkg"] not in is_macro | is_absent
        ]
        found[id] = linked
        waiting.extend(linked)
    components = {}
    for id in found:
        package = packages[id]
        component = Component(
            "cargo", package["name"], package["version"], package["license"] or "", Path(package["manifest_path"]).parent
        )
        component.hash = sums.get((component.name, component.version))
        component.source = package["repository"]
        component.ours = package["source"] is None
        components[id] = component
    for id, linked in found.items():
        components[id].needs = [components[other] for other in linked]
    return components[begin], list(components.values())


def console_packages():
    """What the console's bundle may hold: the packages that are not only there to build or test it."""
    lock = json.loads((ROOT / "console/package-lock.json").read_text())
    for path, package in lock["packages"].items():
        if not path or package.get("dev") or package.get("devOptional") or package.get("optional"):
            continue
        name = path.removeprefix("node_modules/")
        component = Component("npm", name, package["version"], package.get("license", ""), ROOT / "console" / path)
        algorithm, _, digest = package.get("integrity", "").partition("-")
        component.hash = base64.b64decode(digest).hex() if algorithm == "sha512" else None
        component.ours = False
        yield component


def inventory():
    program, components = crates()
    return program, sorted([*components, *console_packages()], key=lambda c: (c.kind, c.name, c.version))


def licences():
    _, components = inventory()
    components = [component for component in components if not component.ours]
    texts, bearers, of_component = {}, {}, {}
    for component in components:
        if not component.licence:
            sys.exit(f"{component.name} {component.version} names no licence")
        # A choice is made for one that has a text.
        choices = [TEXTS[choice] for choice in component.licence.split(" OR ") if choice in TEXTS]
        found = list(component.texts()) or choices[:1]
        if not found:
            sys.exit(f"{component.name} {component.version} comes without the text of {component.licence}; add it to TEXTS")
        for text in found:
            key = re.sub(r"\s+", " ", text).strip()
            if key and key not in of_component.get(component, []):
                texts.setdefault(key, text.strip().replace("\r\n", "\n"))
                bearers.setdefault(key, []).append(component)
                of_component.setdefault(component, []).append(key)
    order = {key: number for number, key in enumerate(bearers, 1)}
    said = [
        "Interlock is under the Apache License 2.0, which stands in LICENSE.",
        "",
        "It contains the following works of others, each under the licence that it names. The numbers are those of the texts",
        "below, as they come with each work, or the text of the licence itself where a work comes without one.",
        "",
    ]
    for component in components:
        numbers = ", ".join(str(order[key]) for key in of_component[component])
        said.append(f"{component.name} {component.version} ({component.kind}): {component.licence} [{numbers}]")
    for key, number in order.items():
        said += ["", "=" * 100, f"{number}: " + ", ".join(f"{c.name} {c.version}" for c in bearers[key]), "=" * 100, "", texts[key]]
    return "\n".join(said) + "\n"


def bill():
    program, components = inventory()
    moment = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)

    def described(component):
        entry = {
            "type": "application" if component is program else "library",
            "bom-ref": component.purl,
            "name": "interlock" if component is program else component.name,
            "version": component.version,
            "licenses": [{"expression": component.licence}],
            "purl": component.purl,
        }
        if component.hash:
            algorithm = "SHA-256" if component.kind == "cargo" else "SHA-512"
            entry["hashes"] = [{"alg": algorithm, "content": component.hash}]
        if component.source and component.source.startswith("https://"):
            entry["externalReferences"] = [{"type": "vcs", "url": component.source}]
        return entry

    console = [component for component in components if component.kind == "npm"]
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": described(program),
            "properties": [{"name": "cdx:rustc:target", "value": PLATFORM}],
        },
        "components": [described(component) for component in components if component is not program],
        "dependencies": [
            {
                "ref": component.purl,
                "dependsOn": sorted({need.purl for need in component.needs + (console if component is program else [])}),
            }
            for component in components
        ],
    }
    # Named by what it says, so that two of the same commit are one.
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    body["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}"
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    what, file = sys.argv[1:]
    Path(file).write_text({"licences": licences, "sbom": bill}[what]())
