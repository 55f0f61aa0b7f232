#!/usr/bin/env python3
"""Holds a build to the figures that docs/reference/performance.md gives as bars, on a machine that has nothing else to do.

    scripts/bars.py INTERLOCK

Each line is a workload of `interlock bench`, a figure of its report, and the bound. All are measured before one that is missed
ends this with code 1.
"""

import json
import subprocess
import sys

# Workload and its flags; the figure; the bound, and on which side of it the figure has to be.
BARS = [
    (("sandbox",), "added_p95_ms", "at most", 25),
    (("output",), "chunks_per_s", "at least", 1_000),
    (("output",), "p99_ms", "at most", 300),
    (("output",), "flood_mb_per_s", "at least", 50),
    (("output",), "flood_rss_growth_mib", "at most", 64),
    (("output",), "flood_cut_mark", "at least", True),
    (("approvals",), "p99_ms", "at most", 500),
    (("w1", "--runs", "10000", "--remote=websocket"), "steps_per_s", "at least", 8_000),
]


def main() -> None:
    reports: dict[tuple[str, ...], dict] = {}
    missed = 0
    for workload, figure, side, bound in BARS:
        if workload not in reports:
            command = [sys.argv[1], "bench", *workload, "--json"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if done.returncode:
                sys.exit(f"{' '.join(command)} ended with {done.returncode}")
            reports[workload] = json.loads(done.stdout.splitlines()[-1])
        value = reports[workload][figure]
        is_held = value <= bound if side == "at most" else value >= bound
        missed += not is_held
        shown = f"{value:.1f}" if isinstance(value, float) else value
        print(f"{'ok    ' if is_held else 'MISSED'} bench {' '.join(workload)}: {figure} is {shown}, {side} {bound}", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
