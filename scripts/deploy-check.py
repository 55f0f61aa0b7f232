#!/usr/bin/env python3
"""Checks the files in deploy/ with the tools that read them, and that what they name exists.

    PYTHON scripts/deploy-check.py PROMTOOL INTERLOCK

PYTHON has PyYAML, as the environment of schemathesis has (`scripts/need schemathesis`).

Alerts are checked and tested by promtool, the dashboards' queries are checked by it as rules, every metric that either names is
one that a server has and every metric of a server is named by one of them, the subjects that operators look for have rows of their own
with panels, every bound of a histogram that is asked for is one of a server's, every alert leads to a section of the runbooks, every
variable and every command with its flags in the compose file, the manifests, the units and the images is one that the binary knows, and
a worker that is deployed by them to run commands can make sandboxes, is let in with the profiles that it offers, and has no list that
none of them reads.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
VARIABLES = {"$job": "interlock", "$instance": ".*", "$__rate_interval": "5m"}
# What the dashboards have a row for, with panels that ask for something.
SUBJECTS = {"Assignments", "Run states", "Approval latency", "Command SLOs"}
# Variables of the compose file itself, which no command of ours reads.
OF_COMPOSE = {"INTERLOCK_IMAGE", "INTERLOCK_WORKER_IMAGE"}
# Of the profiles of commands (docs/reference/sandbox.md).
WITHOUT_ALLOW_LIST = {"dev-flex"}
ON_THE_HOSTS_NETWORK = {"dev-flex"}
# System calls that sandboxes are made with, and groups of systemd that have some of them.
OF_SANDBOXES = {
    "@mount", "@privileged", "@process", "@sandbox", "clone", "mount", "pivot_root", "sethostname", "umount2", "unshare",
}


def promtool(program: str, *arguments: str) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"promtool {' '.join(arguments)}:\n{done.stdout}{done.stderr}")


def metrics_of(interlock: str) -> str:
    """The metrics of a server after a request with a key."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        env = {"HOME": folder, "INTERLOCK_CONFIG_DIR": folder}
        command = [interlock, "up", "--no-demo", "--listen", "127.0.0.1:0", "--data", str(data)]
        server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        try:
            address = re.search(r"http://[0-9.:]+", server.stdout.readline())[0]
            while "Ctrl-C" not in server.stdout.readline():
                pass
            head = {"authorization": f"Bearer {(data / 'local.key').read_text().strip()}"}
            step = {"key": "pack", "kind": "task", "handler": "demo.pack", "queue": "demo"}
            plan = {"workflow": "check", "version": 1, "steps": [step]}
            body = json.dumps({"plan": plan, "inputs": {"order": "mine", "cents": 100}}).encode()
            more = head | {"content-type": "application/json", "idempotency-key": "deploy-check"}
            urllib.request.urlopen(urllib.request.Request(f"{address}/api/v1/runs", body, more)).read()
            return urllib.request.urlopen(urllib.request.Request(f"{address}/metrics", headers=head)).read().decode()
        finally:
            server.kill()
            server.wait()


def expressions(dashboard: dict) -> list[str]:
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    for variable, value in VARIABLES.items():
        found = [expression.replace(variable, value) for expression in found]
    return found


def rows(dashboard: dict) -> dict[str, int]:
    """The rows of a dashboard, and how many queries stand under each."""
    counts, title = {}, None
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            title = panel["title"]
            counts[title] = 0
        elif title is not None:
            counts[title] += len(panel.get("targets", []))
    return counts


def known_metrics(text: str) -> set[str]:
    names = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names


class OnceEach(yaml.SafeLoader):
    """Of two fields of one name PyYAML takes the last one; Kubernetes refuses both."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise yaml.constructor.ConstructorError(problem=f"{', '.join(twice)} stands twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def documents(text: str) -> list[Any]:
    return [document for document in yaml.load_all(text, OnceEach) if document is not None]


def maps(node: Any) -> Iterator[dict]:
    """All maps in a document, wherever they stand."""
    if isinstance(node, dict):
        yield node
    inside = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for value in inside:
        yield from maps(value)


def at(node: Any, *path: str) -> Any:
    """What stands in a document at a place; nothing where something on the way there is missing."""
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node


def without_runbook(rules: str) -> list[str]:
    """Alerts whose `runbook` is not the heading of a section."""
    lost = []
    for rule in (found for document in documents(rules) for found in maps(document) if "alert" in found):
        page, _, anchor = str(at(rule, "annotations", "runbook") or "").partition("#")
        path = DEPLOY.parent / page
        headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE) if path.is_file() else []
        if anchor not in {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}:
            lost.append(rule["alert"])
    return lost


def commands(path: Path) -> list[list[str]]:
    """The arguments with which a file starts the binary: `command`, `args`, `test`, `CMD`, `ExecStart`, `ExecStartPre`."""
    text = path.read_text()
    if path.suffix == ".yaml":
        lists = [found.get(key) for document in documents(text) for found in maps(document) for key in ("command", "args", "test")]
        found = [[str(word) for word in words] for words in lists if isinstance(words, list)]
    else:
        lists = re.findall(r"(?:CMD|ENTRYPOINT)[ ]+\[(.+)\]", text)
        found = [[word.strip().strip('"') for word in words.split(",")] for words in lists]
        found += [line.split() for line in re.findall(r"^ExecStart(?:Pre)?=(.+)$", text, re.MULTILINE)]
    ours = [words[1:] if words[0] == "CMD" else words for words in found if words]
    ours = [words[1:] if words and words[0].endswith("/interlock") else words for words in ours]
    return [words for words in ours if words and "pg_isready" not in words]


def settings(unit: str) -> dict[str, list[str]]:
    """What a unit and its drop-ins say, in their order: many settings add up, and an empty one takes back those before it."""
    said: dict[str, list[str]] = {}
    for name, value in re.findall(r"^[ \t]*(\w+)[ \t]*=[ \t]*(.*?)[ \t]*$", unit.replace("\\\n", " "), re.MULTILINE):
        said[name] = [*said.get(name, []), value] if value else []
    return said


def unit_without_sandboxes(unit: str) -> list[str]:
    """What would keep a worker from making sandboxes in its unit with the drop-in."""
    found = []
    said = settings(unit)
    last = lambda name: (said.get(name) or ["no"])[-1]
    is_on = lambda name: last(name).lower() not in ("no", "false", "off", "0")
    # A user namespace may mount a /proc of its own only where the one outside is whole.
    for name in ("ProtectKernelTunables", "ProtectKernelLogs"):
        if is_on(name):
            found.append(f"the worker's unit masks parts of /proc: {name}={last(name)}")
    for name in ("ReadOnlyPaths", "InaccessiblePaths", "TemporaryFileSystem", "BindPaths", "BindReadOnlyPaths"):
        for value in said.get(name, []):
            if "/proc" in value:
                found.append(f"the worker's unit masks parts of /proc: {name}={value}")
    if (said.get("ProcSubset") or ["all"])[-1] != "all":
        found.append(f"the worker's unit hides parts of /proc: ProcSubset={last('ProcSubset')}")
    if is_on("RestrictNamespaces"):
        found.append("the worker's unit may make no namespaces: RestrictNamespaces")
    if is_on("PrivateUsers"):
        found.append(f"the worker's unit has users of its own, in which sandboxes have not been tried: PrivateUsers={last('PrivateUsers')}")
    if is_on("ProtectControlGroups"):
        found.append("the worker's unit may write no cgroups: ProtectControlGroups")
    delegated = {word for value in said.get("Delegate", []) for word in value.split()} if is_on("Delegate") else set()
    missing = {"pids", "memory", "cpu"} - delegated
    if missing and last("Delegate").lower() not in ("yes", "true", "on", "1"):
        found.append(f"the worker's unit is delegated no cgroups for {', '.join(sorted(missing))}")
    if filters := said.get("SystemCallFilter"):
        allowed = {word for value in filters if not value.startswith("~") for word in value.split()}
        denied = {word.split(":")[0] for value in filters if value.startswith("~") for word in value[1:].split()}
        if "@mount" not in allowed or not allowed & {"sethostname", "@privileged"} or denied & OF_SANDBOXES:
            found.append(f"the worker's unit may not make all system calls of sandboxes: SystemCallFilter={' '.join(filters)}")
    return found


def of_container(container: dict) -> list[str]:
    """What would keep a worker from making sandboxes in its container."""
    found = []
    variables = {at(entry, "name"): str(at(entry, "value") or "") for entry in container.get("env") or []}
    if "INTERLOCK_WORKER_IDENTITY" not in variables:
        found.append("the container of workers that run commands does not say INTERLOCK_WORKER_IDENTITY")
    if not variables.get("INTERLOCK_SERVER", "").startswith("https://"):
        found.append("the container of workers that run commands has a server without https://")
    if at(container, "securityContext", "procMount") != "Unmasked":
        found.append("the container of workers that run commands does not say procMount: Unmasked")
    for filter_of in ("seccompProfile", "appArmorProfile"):
        kind = at(container, "securityContext", filter_of, "type")
        if kind not in ("Unconfined", "Localhost"):
            found.append(f"the container of workers that run commands has a filter that refuses namespaces: {filter_of} is {kind}")
    return found


def of_commands(text: str, invited: set[str], has_egress: bool) -> list[str]:
    """What is wrong with the file that says which commands a worker lets through."""
    found = []
    said = tomllib.loads(text)
    offered = set(said.get("profiles", []))
    if not offered or offered - invited:
        found.append(f"the worker offers the profiles {sorted(offered) or 'of its host'}, and its token is for {sorted(invited)}")
    if said.get("allow") and offered <= WITHOUT_ALLOW_LIST:
        found.append(f"commands.toml has a list `allow`, which {', '.join(sorted(offered))} does not read")
    if offered & ON_THE_HOSTS_NETWORK and not has_egress:
        found.append("commands have the pod's network, and no NetworkPolicy says where they may connect to")
    return found


def manifest_without_sandboxes(manifest: str) -> list[str]:
    """What would keep a worker from making sandboxes in its manifest, or lets it seem to keep what it does not."""
    invited = {name for names in re.findall(r"token create .*--profile ([\w,-]+)", manifest) for name in names.split(",")}
    parts = documents(manifest)
    found, workers = [], []
    for pod in (pod for part in parts for pod in maps(part) if isinstance(pod.get("containers"), list)):
        here = [
            container
            for container in pod["containers"]
            if any(at(entry, "name") == "INTERLOCK_COMMANDS" for entry in at(container, "env") or [])
        ]
        workers += here
        for key, needed in (("hostUsers", False), ("shareProcessNamespace", True)):
            if here and pod.get(key) is not needed:
                found.append(f"the pod of workers that run commands does not say {key}: {str(needed).lower()}")
    if not workers:
        found.append("no container of the manifest of workers that run commands names INTERLOCK_COMMANDS")
    for container in workers:
        found += of_container(container)

    lists = [text for part in parts if (text := at(part, "data", "commands.toml")) is not None]
    if not lists:
        found.append("the manifest of workers that run commands has no commands.toml")
    has_egress = any(
        at(part, "kind") == "NetworkPolicy" and "Egress" in (at(part, "spec", "policyTypes") or []) for part in parts
    )
    for text in lists:
        found += of_commands(text, invited, has_egress)
    return found


def without_sandboxes(worker_image: str, unit: str, manifest: str) -> list[str]:
    """What would keep a worker from making sandboxes: in its image, its unit with the drop-in, its manifest."""
    last_stage = re.split(r"^FROM .*$", worker_image.replace("\\\n", " "), flags=re.MULTILINE)[-1]
    has_bubblewrap = re.search(r"^RUN .*apt-get install .*\bbubblewrap\b", last_stage, re.MULTILINE)
    of_image = [] if has_bubblewrap else ["the worker's image has no bubblewrap"]
    return of_image + unit_without_sandboxes(unit) + manifest_without_sandboxes(manifest)


def main() -> None:
    program, metrics = sys.argv[1], metrics_of(sys.argv[2])
    alerts = DEPLOY / "prometheus/alerts.yaml"
    promtool(program, "check", "rules", str(alerts))
    promtool(program, "test", "rules", str(DEPLOY / "prometheus/alerts.test.yaml"))

    if lost := without_runbook(alerts.read_text()):
        sys.exit(f"no section of a runbook for {', '.join(lost)}")

    used = set(re.findall(r"\binterlock_[a-z_]+", alerts.read_text()))
    shown = set()
    bounds = set(re.findall(r'le="([^"]+)"', metrics))
    if strange := set(re.findall(r'le="([^"]+)"', alerts.read_text())) - bounds:
        sys.exit(f"{alerts}: no histogram has the bounds {', '.join(sorted(strange))}")
    for path in sorted((DEPLOY / "grafana").glob("*.json")):
        dashboard = json.loads(path.read_text())
        shown |= {title for title, count in rows(dashboard).items() if count}
        ids = [panel["id"] for panel in dashboard["panels"]]
        if len(ids) != len(set(ids)):
            sys.exit(f"{path}: two panels have the same id")
        queries = expressions(dashboard)
        if strange := {bound for query in queries for bound in re.findall(r'le="([^"]+)"', query)} - bounds:
            sys.exit(f"{path}: no histogram has the bounds {', '.join(sorted(strange))}")
        used |= {name for query in queries for name in re.findall(r"\binterlock_[a-z_]+", query)}
        rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            # JSON is YAML.
            json.dump({"groups": [{"name": path.stem, "rules": rules}]}, file)
            file.flush()
            promtool(program, "check", "rules", file.name)
    if missing := sorted(SUBJECTS - shown):
        sys.exit(f"no dashboard has a row with panels for {', '.join(missing)}")
    known = known_metrics(metrics)
    if absent := sorted(used - known):
        sys.exit(f"no server has these metrics: {', '.join(absent)}; it has {', '.join(sorted(known))}")
    if unused := sorted({re.sub(r"_(bucket|sum|count)$", "", name) for name in known}
                        - {re.sub(r"_(bucket|sum|count)$", "", name) for name in used}):
        sys.exit(f"no dashboard and no alert uses {', '.join(unused)}")

    systemd = DEPLOY / "systemd"
    unit = [systemd / "interlock-worker.service", systemd / "interlock-worker.service.d/commands.conf"]
    if hindrances := without_sandboxes(
        (DEPLOY / "worker.Dockerfile").read_text(),
        "\n".join(path.read_text() for path in unit),
        (DEPLOY / "kubernetes-worker.yaml").read_text(),
    ):
        sys.exit("\n".join(hindrances))

    ran = 0
    reference = (DEPLOY.parent / "docs/reference/config.md").read_text() + (DEPLOY.parent / "docs/reference/cli.md").read_text()
    for path in [*DEPLOY.glob("*.yaml"), *DEPLOY.glob("*Dockerfile"), *filter(Path.is_file, systemd.rglob("*"))]:
        for name in set(re.findall(r"\bINTERLOCK_[A-Z_]+", path.read_text())) - OF_COMPOSE:
            if f"`{name}`" not in reference:
                sys.exit(f"{path}: nothing reads {name}")
        for words in commands(path):
            # Whatever is wrong is told before the help.
            done = subprocess.run([sys.argv[2], *words, "--help"], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{path}: `{' '.join(words)}`: {done.stderr}")
            ran += 1
    print(f"deploy: alerts tested, {len(used)} metrics named, all of them there, {ran} commands known")


if __name__ == "__main__":
    main()
