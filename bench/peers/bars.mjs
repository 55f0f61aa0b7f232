// Holds a run of bench/peers/run to its bars: `bars.mjs MEASUREMENTS`. One that is missed ends this with code 1.

import { readFileSync } from "node:fs";
import { bars } from "./report.mjs";

let missed = 0;
for (const { name, value, least } of bars(readFileSync(process.argv[2], "utf8"))) {
  const held = value >= least;
  missed += held ? 0 : 1;
  console.error(`bench-peers: ${held ? "ok    " : "MISSED"} ${name}: ${value.toFixed(1)}, at least ${least}`);
}
process.exitCode = missed > 0 ? 1 : 0;
