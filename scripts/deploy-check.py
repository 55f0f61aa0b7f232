#!/usr/bin/env python3
"""Checks the files in deploy/ with the tools that read them, and that what they name exists.

    scripts/deploy-check.py PROMTOOL INTERLOCK

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
import textwrap
import tomllib
import urllib.request
from pathlib import Path

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


def without_runbook(rules: str) -> list[str]:
    """Alerts whose `runbook` is not the heading of a section."""
    led = dict(re.findall(r"- alert: (\w+)\n(?:(?!- alert:)[\s\S])*?runbook: \"(\S+)\"", rules))
    lost = []
    for alert in re.findall(r"- alert: (\w+)", rules):
        page, _, anchor = led.get(alert, "").partition("#")
        path = DEPLOY.parent / page
        headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE) if path.is_file() else []
        if anchor not in {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}:
            lost.append(alert)
    return lost


def commands(text: str) -> list[list[str]]:
    """The arguments with which a file starts the binary: `command`, `args`, `test`, `CMD`, `ExecStart`, `ExecStartPre`."""
    lists = re.findall(r"(?:command|args|test|CMD|ENTRYPOINT)[: ]+\[(.+)\]", text)
    found = [[word.strip().strip('"') for word in words.split(",")] for words in lists]
    found += [line.split() for line in re.findall(r"^ExecStart(?:Pre)?=(.+)$", text, re.MULTILINE)]
    ours = [words[1:] if words[0] == "CMD" else words for words in found]
    ours = [words[1:] if words[0].endswith("/interlock") else words for words in ours]
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


def values(text: str, key: str) -> list[str]:
    """What YAML without comments says for a key, wherever that stands: in a line, in braces, or in the lines below, further in.
    Python comes without a reader of YAML; what this one does not find is refused as missing."""
    found = []
    for at in re.finditer(rf"""(?<![\w"'.-])["']?{re.escape(key)}["']?:(?=[\s"'{{\[])""", text):
        column = at.start() - (text.rfind("\n", 0, at.start()) + 1)
        head, _, below = text[at.end() :].partition("\n")
        # An anchor or a tag, which says nothing.
        head = re.sub(r"^(\s*[&!]\S+)+", "", head).strip()
        if head[:1] in ("{", "["):
            rest, depth = text[text.index(head, at.end()) :], 0
            for index, letter in enumerate(rest):
                depth += (letter in "{[") - (letter in "}]")
                if depth == 0:
                    found.append(rest[: index + 1])
                    break
        elif head and head[0] not in "|>":
            found.append(re.match(r"""["']?([^,}\]"']*)""", head)[1].strip())
        else:
            inside = []
            for line in below.splitlines():
                indent = len(line) - len(line.lstrip())
                # The items of a list may stand below the key itself.
                if line.strip() and indent <= column and not (indent == column and line.lstrip().startswith("- ")):
                    break
                inside.append(line)
            found.append("\n".join(inside))
    return found


def items(text: str) -> list[str]:
    """The items of a YAML list that is written in lines."""
    return [f"  {item}" for item in re.split(r"(?m)^- ", textwrap.dedent(text))[1:]]


def manifest_without_sandboxes(manifest: str) -> list[str]:
    """What would keep a worker from making sandboxes in its manifest, or lets it seem to keep what it does not."""
    invited = {name for names in re.findall(r"token create .*--profile ([\w,-]+)", manifest) for name in names.split(",")}
    plain = re.sub(r"(?m)(^|[ \t])#.*$", "", manifest)
    documents = re.split(r"(?m)^---$", plain)
    found, workers = [], []
    for document in documents:
        for pod in values(document, "template"):
            here = [one for listed in values(pod, "containers") for one in items(listed) if "INTERLOCK_COMMANDS" in one]
            workers += here
            for key, needed in (("hostUsers", "false"), ("shareProcessNamespace", "true")):
                if here and values(pod, key) != [needed]:
                    found.append(f"the pod of workers that run commands does not say {key}: {needed}")
    if not workers:
        found.append("no container of the manifest of workers that run commands names INTERLOCK_COMMANDS")
    for container in workers:
        for needed in ("INTERLOCK_WORKER_IDENTITY", "https://"):
            if needed not in container:
                found.append(f"the container of workers that run commands does not say {needed}")
        if values(container, "procMount") != ["Unmasked"]:
            found.append("the container of workers that run commands does not say procMount: Unmasked")
        for filter_of in ("seccompProfile", "appArmorProfile"):
            types = [kind for profile in values(container, filter_of) for kind in values(profile, "type")]
            if types not in (["Unconfined"], ["Localhost"]):
                found.append(f"the container of workers that run commands has a filter that refuses namespaces: {filter_of} is {types}")

    lists = values(manifest, "commands.toml")
    if not lists:
        found.append("the manifest of workers that run commands has no commands.toml")
    for text in lists:
        said = tomllib.loads(textwrap.dedent(text))
        offered = set(said.get("profiles", []))
        if not offered or offered - invited:
            found.append(f"the worker offers the profiles {sorted(offered) or 'of its host'}, and its token is for {sorted(invited)}")
        if said.get("allow") and offered <= WITHOUT_ALLOW_LIST:
            found.append(f"commands.toml has a list `allow`, which {', '.join(sorted(offered))} does not read")
        if offered & ON_THE_HOSTS_NETWORK and not any(
            values(document, "kind") == ["NetworkPolicy"] and "Egress" in "".join(values(document, "policyTypes"))
            for document in documents
        ):
            found.append("commands have the pod's network, and no NetworkPolicy says where they may connect to")
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
        for words in commands(path.read_text()):
            # Whatever is wrong is told before the help.
            done = subprocess.run([sys.argv[2], *words, "--help"], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{path}: `{' '.join(words)}`: {done.stderr}")
            ran += 1
    print(f"deploy: alerts tested, {len(used)} metrics named, all of them there, {ran} commands known")


if __name__ == "__main__":
    main()
