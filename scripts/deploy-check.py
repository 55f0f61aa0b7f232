#!/usr/bin/env python3
"""Checks the files in deploy/ with the tools that read them, and that what they name exists.

    scripts/deploy-check.py PROMTOOL INTERLOCK

Alerts are checked and tested by promtool, the dashboards' queries are checked by it as rules, every metric that either names is
one that a server has and every metric of a server is named by one of them, the subjects that operators look for have rows of their own
with panels, every bound of a histogram that is asked for is one of a server's, every alert leads to a section of the runbooks, every
variable and every command with its flags in the compose file, the manifests, the units and the images is one that the binary knows, and
a worker that is deployed by them to run commands can make sandboxes.
"""

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
VARIABLES = {"$job": "interlock", "$instance": ".*", "$__rate_interval": "5m"}
# What the dashboards have a row for, with panels that ask for something.
SUBJECTS = {"Assignments", "Run states", "Approval latency", "Command SLOs"}
# Variables of the compose file itself, which no command of ours reads.
OF_COMPOSE = {"INTERLOCK_IMAGE", "INTERLOCK_WORKER_IMAGE"}


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


def settings(*units: str) -> dict[str, str]:
    """What a unit and its drop-ins say in the end."""
    return dict(re.findall(r"^(\w+)=(.*)$", "\n".join(units), re.MULTILINE))


def without_sandboxes(worker_image: str, unit: str, manifest: str) -> list[str]:
    """What would keep a worker from making sandboxes: in its image, its unit with the drop-in, its manifest."""
    found = []
    last_stage = re.split(r"^FROM .*$", worker_image.replace("\\\n", " "), flags=re.MULTILINE)[-1]
    if not re.search(r"^RUN .*apt-get install .*\bbubblewrap\b", last_stage, re.MULTILINE):
        found.append("the worker's image has no bubblewrap")

    said = settings(unit)
    is_on = lambda name: said.get(name, "no").lower() not in ("no", "false", "off", "0", "")
    # A user namespace may mount a /proc of its own only where the one outside is whole.
    for name in ("ProtectKernelTunables", "ProtectKernelLogs"):
        if is_on(name):
            found.append(f"the worker's unit masks parts of /proc: {name}={said[name]}")
    for name in ("ReadOnlyPaths", "InaccessiblePaths", "TemporaryFileSystem", "BindPaths", "BindReadOnlyPaths"):
        if "/proc" in said.get(name, ""):
            found.append(f"the worker's unit masks parts of /proc: {name}={said[name]}")
    if said.get("ProcSubset", "all") != "all":
        found.append(f"the worker's unit hides parts of /proc: ProcSubset={said['ProcSubset']}")
    if is_on("RestrictNamespaces"):
        found.append("the worker's unit may make no namespaces: RestrictNamespaces")
    if is_on("ProtectControlGroups"):
        found.append("the worker's unit may write no cgroups: ProtectControlGroups")
    if missing := {"pids", "memory", "cpu"} - set(said.get("Delegate", "").split()):
        found.append(f"the worker's unit is delegated no cgroups for {', '.join(sorted(missing))}")

    manifest = re.sub(r"(?m)(^|\s)#.*$", "", manifest)
    for needed in ("procMount: Unmasked", "hostUsers: false", "INTERLOCK_WORKER_IDENTITY", "INTERLOCK_COMMANDS", 'value: "https://'):
        if needed not in manifest:
            found.append(f"the manifest of workers that run commands does not say {needed}")
    for refusing in ("seccompProfile: { type: RuntimeDefault }", "appArmorProfile: { type: RuntimeDefault }"):
        if refusing in manifest:
            found.append(f"the manifest of workers that run commands has a filter that refuses namespaces: {refusing}")
    return found


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
