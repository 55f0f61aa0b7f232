// Reads what one measured process printed, checks that it is one complete line, and prints
// it with the round it belongs to: `record.mjs ROUND PEER [VERSION]`.
//
// Interlock's own benchmark prints no name and no version, and both halves of W2 in one
// line; here it gets them, and the line is parted into the two that the peers print.

import { readFileSync } from "node:fs";

const FIELDS = ["workload", "store", "runs", "steps", "in_flight", "runs_per_s", "steps_per_s", "rss_mib"];

const [round, peer, version] = process.argv.slice(2);
const lines = readFileSync(0, "utf8").split("\n").filter(Boolean);
if (lines.length !== 1) throw new Error(`${peer} printed ${lines.length} lines, not one`);

const printed = { peer, version, ...JSON.parse(lines[0]) };
if (printed.peer !== peer) throw new Error(`${printed.peer} printed what was asked of ${peer}`);
const fields = printed.workload === "w1" ? [...FIELDS, "p50_ms", "p99_ms"] : FIELDS;
for (const field of fields) {
  if (printed[field] === undefined || printed[field] === null) throw new Error(`${peer} printed no ${field}`);
}
// `postgres://…` and `sqlite:…` say where; the table needs only which.
const store = printed.store.split(":")[0].replace("postgresql", "postgres");

for (const part of parts(printed)) {
  process.stdout.write(`${JSON.stringify({ round: Number(round), ...part, store })}\n`);
}

function parts(line) {
  if (line.workload === "w1" && line.remote) return [{ ...line, workload: "w1-remote" }];
  if (line.workload !== "w2") return [line];
  const part = (half) => {
    const rate = line[`${half}_per_s`];
    if (!(rate > 0)) throw new Error(`${peer} printed no ${half}_per_s`);
    return { ...line, workload: `w2-${half}`, runs_per_s: rate, steps_per_s: rate, p50_ms: null, p99_ms: null };
  };
  return [part("processed"), part("started")];
}
