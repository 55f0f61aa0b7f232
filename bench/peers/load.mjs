// What every peer's program shares: its options, a bounded driver that keeps a fixed
// number of calls in flight, and the one JSON line it prints.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import pg from "pg";

const RUNS_MAX = 1_000_000;
const IN_FLIGHT_MAX = 4_096;
const SECONDS_MAX = 600;

/** Reads `WORKLOAD --runs N [--in-flight N] [--seconds N]` and refuses anything out of bounds. */
export function options(workloads) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      runs: { type: "string" },
      "in-flight": { type: "string", default: "1" },
      seconds: { type: "string", default: "240" },
    },
  });
  const [workload] = positionals;
  if (positionals.length !== 1 || !workloads.includes(workload)) {
    throw new Error(`name one workload of: ${workloads.join(", ")}`);
  }
  return {
    workload,
    runs: within("runs", values.runs, RUNS_MAX),
    inFlight: within("in-flight", values["in-flight"], IN_FLIGHT_MAX),
    seconds: within("seconds", values.seconds, SECONDS_MAX),
  };
}

function within(name, text, max) {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > max) {
    throw new Error(`--${name} must be a whole number from 1 to ${max}, not ${text}`);
  }
  return value;
}

/**
 * Makes `runs` calls, `inFlight` at a time, and answers the seconds they took and each
 * call's milliseconds. The first failure, or the deadline, ends it.
 */
export async function drive({ runs, inFlight, seconds }, call) {
  const milliseconds = new Float64Array(runs);
  const started = performance.now();
  const deadline = started + seconds * 1_000;
  let next = 0;

  async function caller() {
    while (next < runs) {
      const run = next++;
      const before = performance.now();
      if (before > deadline) throw new Error(`only ${run} of ${runs} runs in ${seconds} s`);
      await call(run);
      milliseconds[run] = performance.now() - before;
    }
  }

  await Promise.all(Array.from({ length: Math.min(inFlight, runs) }, caller));
  return { elapsed: (performance.now() - started) / 1_000, milliseconds };
}

/** How many calls go before the measured ones, so that compilers and caches are warm. */
export function warmUp(runs, inFlight) {
  return Math.min(runs, Math.max(50, 2 * inFlight));
}

/** The value at or below which the given share of the values lies. */
export function percentile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}

/** Prints the measurement as one line of JSON. */
export function print(measurement) {
  const { peer, version, workload, store, runs, steps, inFlight, elapsed, milliseconds, rssMib } = measurement;
  const latency = (share) => (milliseconds ? rounded(percentile(milliseconds, share), 3) : null);
  const line = {
    peer,
    version,
    workload,
    store,
    runs,
    steps,
    in_flight: inFlight,
    runs_per_s: rounded(runs / elapsed, 1),
    steps_per_s: rounded((runs * steps) / elapsed, 1),
    p50_ms: latency(0.5),
    p99_ms: latency(0.99),
    rss_mib: rounded(rssMib, 1),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function rounded(value, digits) {
  return Number(value.toFixed(digits));
}

/** The most memory this process has held, in MiB. */
export function ownRssMib() {
  return process.resourceUsage().maxRSS / 1_024;
}

/** The most memory another process has held, in MiB. */
export function rssMibOf(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)[1]) / 1_024;
}

/** The installed version of a package. */
export function versionOf(name) {
  const require = createRequire(import.meta.url);
  for (const folder of require.resolve.paths(name)) {
    try {
      return JSON.parse(readFileSync(`${folder}/${name}/package.json`, "utf8")).version;
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  throw new Error(`the package ${name} is not installed`);
}

/** Creates an empty database on the server that the run was given, and answers its URL. */
export async function emptyDatabase(name) {
  const given = process.env.INTERLOCK_TEST_POSTGRES;
  if (!given) throw new Error("INTERLOCK_TEST_POSTGRES is not set: start this through scripts/with-postgres");
  await onDatabase(given, (client) => client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`));
  const url = new URL(given);
  url.pathname = `/${name}`;
  return url.href;
}

/** Runs one function with a connection of its own. */
export async function onDatabase(url, use) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/** Fails unless the query's first column counts what it should. */
export async function expectCount(url, expected, query, values = []) {
  const { rows } = await onDatabase(url, (client) => client.query({ text: query, values, rowMode: "array" }));
  const counted = Number(rows[0][0]);
  if (counted !== expected) throw new Error(`expected ${expected} and counted ${counted}: ${query}`);
}
