// Prints what a reader must know of the machine to judge the figures, as one line of JSON.

import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { onDatabase, percentile } from "./load.mjs";

const SYNCS = 200;

const { rows } = await onDatabase(process.env.INTERLOCK_TEST_POSTGRES, (client) =>
  client.query("SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync"),
);
if (rows[0].fsync !== "on") throw new Error("this PostgreSQL runs without fsync: nothing measured on it would count");

const machine = {
  date: new Date().toISOString().slice(0, 10),
  cores: os.availableParallelism(),
  processor: os.cpus()[0].model,
  memory_gib: Math.round(os.totalmem() / 2 ** 30),
  kernel: `${os.type()} ${os.release()}`,
  system: /^PRETTY_NAME="(.*)"$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "unknown",
  postgres: rows[0].version.split(" ")[0],
  node: process.versions.node,
  fdatasync_us: Math.round(syncMicroseconds()),
};
process.stdout.write(`${JSON.stringify({ machine })}\n`);

/** The median time of a 4 KiB write that is on the disk when it returns. */
function syncMicroseconds() {
  const folder = mkdtempSync(join(os.tmpdir(), "bench-sync-"));
  const file = openSync(join(folder, "file"), "w");
  const block = Buffer.alloc(4_096, 1);
  const times = [];
  try {
    for (let sync = 0; sync < SYNCS; sync++) {
      const before = performance.now();
      writeSync(file, block);
      fdatasyncSync(file);
      times.push((performance.now() - before) * 1_000);
    }
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
  return percentile(times, 0.5);
}
