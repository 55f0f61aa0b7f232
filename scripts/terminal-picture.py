#!/usr/bin/env python3
"""Draws what commands print, with its colours, as an SVG: docs/guide/images/terminal.svg.

    scripts/terminal-picture.py INTERLOCK OUT.svg

Starts a server on a free port, runs the first workflow of the README with a task that fails once, and keeps what is printed.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS, LINE, CHAR, MARGIN = 104, 18, 7.83, 16
PAPER, INK = "#16181d", "#d6d9e0"
COLOURS = {"31": "#f47067", "32": "#7ec97b", "33": "#e0b050", "34": "#6cb6ff", "35": "#c792ea", "36": "#5fc9c9", "90": "#7d8590"}
WORKFLOW = """\
name: deploy
inputs: { version: { type: string, required: true } }
subject: ${{ inputs.version }}
steps:
  - { id: test, task: test, effect: read }
  - id: ship
    task: ship
    retry: { max_attempts: 3, backoff: 1s }
  - { id: settle, wait: { for: 1s } }
  - { id: ok, approval: { message: "Ship ${{ inputs.version }} to everybody?" } }
"""
SHOWN = ["interlock workflow apply deploy.yaml", "interlock run start deploy -i version=v42", "interlock run watch v42", "interlock run why v42"]


def recorded(program):
    """Each shown command with what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "deploy.yaml").write_text(WORKFLOW)
        (folder / "test.sh").write_text("#!/bin/sh\nsleep 0.4; echo '{\"passed\": 212}'\n")
        ship = "#!/bin/sh\nsleep 0.3\n[ -e tried ] || { touch tried; echo 'the registry does not answer' >&2; exit 75; }\necho '{\"hosts\": 12}'\n"
        (folder / "ship.sh").write_text(ship)
        for name in ("test.sh", "ship.sh"):
            (folder / name).chmod(0o755)
        (folder / "interlock").symlink_to(program)
        env = {"HOME": str(folder), "PATH": f"{folder}:{os.environ['PATH']}", "INTERLOCK_LISTEN": "127.0.0.1:0", "CLICOLOR_FORCE": "1"}
        env |= {"INTERLOCK_CONFIG_DIR": str(folder / "config"), "LANG": "C.UTF-8"}
        up = subprocess.Popen(["interlock", "up", "--no-demo"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
        worker = None
        try:
            while "Ctrl-C" not in up.stdout.readline():
                pass
            worker = subprocess.Popen(
                ["interlock", "worker", "--task", "test=./test.sh", "--task", "ship=./ship.sh"],
                cwd=folder, env=env, stderr=subprocess.PIPE, text=True,
            )
            worker.stderr.readline()
            for command in SHOWN:
                # A watcher of a run that waits for a person does not end by itself.
                limited = f"timeout 6 {command}" if "watch" in command else command
                done = subprocess.run(limited, shell=True, cwd=folder, env=env, capture_output=True, text=True)
                yield command, (done.stdout + done.stderr).rstrip()
        finally:
            for process in (worker, up):
                if process:
                    process.kill()
                    process.wait()


def spans(line):
    """The line in pieces of one colour and weight."""
    colour, bold, dim = None, False, False
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        codes = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if not codes:
            if piece:
                yield piece, "#7d8590" if dim and not colour else colour or INK, bold
            continue
        for code in (codes[1] or "0").split(";"):
            if code == "0":
                colour, bold, dim = None, False, False
            elif code == "1":
                bold = True
            elif code == "2":
                dim = True
            else:
                colour = COLOURS.get(code, colour)


def wrapped(line):
    """A line that is too long goes on below, from a space on; colours go on, too."""
    column, space = 0, None
    for match in re.finditer(r"\x1b\[[0-9;]*m|.", line):
        if match[0].startswith("\x1b"):
            continue
        column += 1
        if column > COLUMNS and space:
            begun = re.findall(r"\x1b\[[0-9;]*m", line[:space])
            return [line[:space], *wrapped("    " + (begun[-1] if begun else "") + line[space + 1 :])]
        if match[0] == " ":
            space = match.start()
    return [line]


def main():
    program, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    lines = []
    for command, printed in recorded(program):
        lines += [f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m"]
        lines += [part for line in printed.splitlines() for part in wrapped(line)] + [""]
    lines.pop()
    width, height = int(COLUMNS * CHAR + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="A terminal: a workflow is applied, a run is started, watched and explained">',
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="13">',
    ]
    for number, line in enumerate(lines):
        column, y = 0, MARGIN + LINE * number + 13
        for text, colour, bold in spans(line):
            weight = ' font-weight="bold"' if bold else ""
            # Spaces that a browser keeps.
            shown = text.replace(" ", "\u00a0")
            x, length = MARGIN + column * CHAR, len(text) * CHAR
            drawn.append(f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}" fill="{colour}"{weight}>{html.escape(shown)}</text>')
            column += len(text)
    out.write_text("\n".join([*drawn, "</g>", "</svg>"]) + "\n")


if __name__ == "__main__":
    main()
