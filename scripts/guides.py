#!/usr/bin/env python3
"""Runs the commands of the guides as a reader would type them, against real servers on loopback.

    scripts/guides.py INTERLOCK [PAGE…]

Every ```console block of docs/guide and README.md is run, top to bottom, each page in a folder and beside a server of its own; lines below a
command are what it prints, with `…` for anything and any number for a number. What stands above a block tells otherwise:

    <!-- file: NAME -->        the block below is written to this file first
    <!-- not run: REASON -->   the block below is not run; that the binary knows its commands and their flags is checked
    <!-- on: PostgreSQL -->     the block below is run where there is one: `scripts/with-postgres scripts/guides.py …`
    <!-- setup: COMMAND -->    run first, for what the page takes for granted and readers have

`run_…` in a command is the id of that kind that was printed last. A command whose comment begins with `refused` has to fail. Servers
and workers stay until the page ends; what follows or watches is stopped once it has printed what the page says, after a moment at the
soonest. Every command reads the same password from its input.
"""

import concurrent.futures
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs/guide"
PASSWORD = "seven grey herons stand in line\n"
# Far more than any of them takes, also on a busy machine.
COMMAND_SECONDS_MAX = 120
READY_SECONDS_MAX = 120
# What follows or watches is left alone for so long.
WATCH_SECONDS = 2
# Those who stay, and what they say once they are there.
STAYS = [
    (re.compile(r"interlock up\b"), re.compile(r"Press Ctrl-C to stop")),
    (re.compile(r"interlock server\b"), re.compile(r"listens on")),
    (re.compile(r"interlock worker --"), re.compile(r"connected to")),
    (re.compile(r"\S*=\S+ .*examples/workers/"), re.compile(r"")),
]
WATCHES = re.compile(r"--follow\b|--watch\b|\brun watch\b")
PRINTED_ADDRESS = "127.0.0.1:8420"
PRINTED_STORE = "postgres://interlock@db.example.org/"
# A throw-away server's address ends with a database and parameters, which pages name themselves.
POSTGRES = re.sub(r"[^/]*$", "", os.environ.get("INTERLOCK_TEST_POSTGRES", ""))


class Failed(Exception):
    pass


class Block:
    """A fenced block, with the line that it begins in and what the comment above it asks for."""

    def __init__(self, language, text, line, ask, value):
        self.language, self.text, self.line, self.ask, self.value = language, text, line, ask, value


def blocks(text):
    lines = text.splitlines()
    at = 0
    ask, value = "run", ""
    while at < len(lines):
        # A block may stand in a list.
        line = lines[at].strip()
        setup = re.fullmatch(r"<!-- setup: (.+) -->", line)
        if setup:
            yield Block("console", f"$ {setup[1]}\n", at, "run", "")
            at += 1
            continue
        asked = re.fullmatch(r"<!-- (file|not run|on): (.+) -->", line)
        if asked:
            ask, value = asked.groups()
        elif line.startswith("```"):
            end = next(number for number in range(at + 1, len(lines)) if lines[number].strip().startswith("```"))
            yield Block(line[3:].strip(), textwrap.dedent("\n".join(lines[at + 1 : end]) + "\n"), at + 1, ask, value)
            ask, value = "run", ""
            at = end
        elif line:
            if ask != "run":
                raise Failed(f"line {at + 1}: `<!-- {ask}: … -->` has no block below it")
        at += 1


def commands(block):
    """(line, command, what it prints) for each; a command may go on over lines, or hold a document."""
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            raise Failed(f"line {block.line + at + 1}: a console block begins with a command (`$ …`)")
        line, command = block.line + at + 1, [lines[at][2:]]
        at += 1
        document = re.search(r"<<-?'?(\w+)'?", command[0])
        while at < len(lines) and (document or command[-1].endswith("\\")):
            command.append(lines[at])
            at += 1
            if document and command[-1] == document[1]:
                document = None
        printed = []
        while at < len(lines) and not lines[at].startswith("$ "):
            printed.append(lines[at])
            at += 1
        yield line, "\n".join(command), printed


def matches(printed, said):
    """The first printed line that is not said, in the order in which they are printed."""
    lines = [line.rstrip() for line in said.splitlines()]
    at = 0
    for line in printed:
        if not line.strip() or line.strip() == "…":
            continue
        pattern = ".*".join(re.escape(part) for part in line.strip().split("…"))
        pattern = re.sub(r"\d+", r"\\d+", pattern).replace("\\ ", " ")
        pattern = re.sub(r" +", r"\\s+", pattern)
        found = next((number for number in range(at, len(lines)) if re.match(r"\s*" + pattern, lines[number])), None)
        if found is None:
            return line
        at = found + 1
    return None


def refusal(program, command):
    """What the binary has against a command that is not run: it reads all that stands before `--help`, and then does nothing."""
    code = re.sub(r" {2,}# .*$", "", command.replace("\\\n", " "), flags=re.MULTILINE)
    code = re.sub(r"\b([a-z]{3}_)…", r"\g<1>" + 32 * "0", code)
    # `2>FILE`: the number is no word of the command.
    for part in re.split(r"&&|(?<=\s)\d>|[|;&<>\n]", code):
        try:
            words = shlex.split(part)
        except ValueError:
            # A part of a text in quotes.
            continue
        while words and (words[0] == "sudo" or re.match(r"[A-Z_]+=", words[0])):
            words.pop(0)
        if words and Path(words[0]).name == "interlock":
            asks = words[1:] if words[1:2] == ["help"] else [*words[1:], "--help"]
            done = subprocess.run([program, *asks], capture_output=True, text=True, env={})
            if done.returncode != 0:
                return done.stderr
    return None


class Reader:
    """One page's folder, its shell and its server."""

    def __init__(self, page, program, folder):
        self.page, self.folder, self.address, self.count = page, folder, None, 0
        programs = folder / ".bin"
        programs.mkdir()
        (programs / "interlock").symlink_to(program)
        for name in ("examples", "deploy"):
            (folder / name).symlink_to(ROOT / name)
        (folder / ".input").write_text(PASSWORD * 4)
        env = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
        path = [str(programs), env["PATH"]]
        if POSTGRES:
            # Its own tools, such as pg_dump: others may be older than the server.
            path.insert(1, subprocess.run([ROOT / "scripts/postgres-bin"], capture_output=True, text=True, check=True).stdout.strip())
        env |= {
            "HOME": str(folder),
            "PATH": ":".join(path),
            "INTERLOCK_LISTEN": "127.0.0.1:0",
            "INTERLOCK_CONFIG_DIR": str(folder / ".config"),
        }
        self.shell = subprocess.Popen(
            ["bash", "--norc"], cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )

    def close(self):
        try:
            os.killpg(self.shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.shell.wait()

    def said(self):
        return (self.folder / f".out{self.count}").read_text(errors="replace")

    def newest(self, shortened):
        """The first id of this kind in the newest output that has one."""
        for count in range(self.count - 1, 0, -1):
            found = re.search(shortened[1] + r"[0-9a-f]{32}", (self.folder / f".out{count}").read_text(errors="replace"))
            if found:
                return found[0]
        return shortened[0]

    def tell(self, line):
        self.shell.stdin.write(line + "\n")
        self.shell.stdin.flush()

    def run(self, line, command, printed):
        self.count += 1
        if self.address:
            command = command.replace(PRINTED_ADDRESS, self.address)
        command = command.replace(PRINTED_STORE, POSTGRES or PRINTED_STORE)
        command = re.sub(r"\b([a-z]{3}_)…", self.newest, command)
        stays = next((ready for begins, ready in STAYS if begins.match(command)), None)
        # The comment on the last line is for the reader.
        code, _, comment = command.rpartition("  # ")
        refused = comment.strip().startswith("refused") and code
        if stays is not None:
            self.stay(line, command.removesuffix("&").rstrip(), stays)
        elif WATCHES.search(command):
            self.watch(line, command, printed, bool(refused))
        else:
            self.once(line, command, bool(refused))
        missing = matches(printed, self.said())
        if missing is not None:
            raise Failed(f"line {line}: `{command}` does not print `{missing}`, but\n{self.said()}")

    def once(self, line, command, refused):
        status = self.folder / f".status{self.count}"
        script = self.folder / f".command{self.count}"
        script.write_text(command + "\n")
        # In this shell, so that `cd` and variables stay.
        self.tell(f"{{ source {script}; }} <.input >.out{self.count} 2>&1; echo $? >{status}.part; mv {status}.part {status}")
        ends = time.monotonic() + COMMAND_SECONDS_MAX
        while not status.exists():
            if time.monotonic() > ends or self.shell.poll() is not None:
                raise Failed(f"line {line}: `{command}` does not end:\n{self.said()}")
            time.sleep(0.01)
        self.check(line, command, int(status.read_text()), refused)

    def watch(self, line, command, printed, refused):
        """In a shell of its own, which is stopped as soon as it has printed what it should."""
        status, process = self.folder / f".status{self.count}", self.folder / f".process{self.count}"
        script, out = self.folder / f".command{self.count}", self.folder / f".out{self.count}"
        script.write_text(command + "\n")
        out.touch()
        self.tell(
            f"timeout {COMMAND_SECONDS_MAX} bash {script} <.input >{out} 2>&1 & echo $! >{process}.part; mv {process}.part {process}; "
            f"wait $!; echo $? >{status}.part; mv {status}.part {status}"
        )
        began, stopped = time.monotonic(), False
        while not status.exists():
            waited = time.monotonic() - began
            if waited > 2 * COMMAND_SECONDS_MAX or self.shell.poll() is not None:
                raise Failed(f"line {line}: `{command}` cannot be stopped:\n{self.said()}")
            if not stopped and waited > WATCH_SECONDS and process.exists() and matches(printed, self.said()) is None:
                stopped = True
                try:
                    os.kill(int(process.read_text()), signal.SIGTERM)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)
        code = int(status.read_text())
        if not stopped and code != 124:
            self.check(line, command, code, refused)

    def check(self, line, command, code, refused):
        if (code != 0) != refused:
            wish = "is not refused" if refused else f"ends with {code}"
            raise Failed(f"line {line}: `{command}` {wish}:\n{self.said()}")

    def stay(self, line, command, ready):
        out = self.folder / f".out{self.count}"
        script = self.folder / f".command{self.count}"
        script.write_text(command + "\n")
        self.tell(f"bash {script} <.input >{out} 2>&1 &")
        ends = time.monotonic() + READY_SECONDS_MAX
        while not out.exists() or not ready.search(out.read_text(errors="replace")):
            if time.monotonic() > ends:
                raise Failed(f"line {line}: `{command}` does not get ready:\n{out.read_text() if out.exists() else ''}")
            time.sleep(0.02)
        if shlex.split(command)[1:2] in (["up"], ["server"]):
            self.address = re.search(r"127\.0\.0\.1:\d+", out.read_text())[0]


def read(page, program):
    """Runs a page. How many commands it has, how many blocks are not run, and how long it took."""
    began, ran, left = time.monotonic(), 0, 0
    text = page.read_text()
    if not any(block.language == "console" for block in blocks(text)):
        return 0, 0, 0.0
    with tempfile.TemporaryDirectory(prefix=f"guide-{page.stem}-") as folder:
        reader = Reader(page, program, Path(folder))
        try:
            if not re.search(r"^ *(\$|<!-- setup:) interlock up\b", text, re.MULTILINE):
                reader.run(0, "interlock up --no-demo", [])
            for block in blocks(text):
                if block.ask == "file":
                    (reader.folder / block.value).write_text(block.text)
                elif block.language != "console":
                    continue
                elif block.ask == "not run" or (block.ask == "on" and not POSTGRES):
                    left += 1
                    for line, command, _ in commands(block):
                        said = refusal(program, command)
                        if said is not None:
                            raise Failed(f"line {line}: `{command}` is not known:\n{said}")
                else:
                    for line, command, printed in commands(block):
                        reader.run(line, command, printed)
                        ran += 1
        finally:
            reader.close()
    return ran, left, time.monotonic() - began


def main():
    program = Path(sys.argv[1]).resolve()
    pages = [Path(name).resolve() for name in sys.argv[2:]] or [ROOT / "README.md", *sorted(GUIDE.glob("*.md"))]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        reading = {pool.submit(read, page, program): page for page in pages}
        for done in concurrent.futures.as_completed(reading):
            name = reading[done].relative_to(ROOT)
            try:
                ran, left, seconds = done.result()
                print(f"{name}: {ran} commands ran, {left} blocks are not run, {seconds:.1f} s")
            except Failed as failure:
                failed += 1
                print(f"{name}: {failure}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
