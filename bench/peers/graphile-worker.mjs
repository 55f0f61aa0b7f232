// graphile-worker: single no-op jobs on PostgreSQL, with the batching that its manual
// measures its best figures with (a local queue, completions in batches without a delay).

import { Logger, makeWorkerUtils, runOnce } from "graphile-worker";
import { drive, emptyDatabase, expectCount, onDatabase, options, ownRssMib, print, versionOf, warmUp } from "./load.mjs";

const INSERT_CHUNK = 5_000;
const WARM_UP_JOBS = 2_000;

const wanted = options(["w2-processed", "w2-started"]);
const connectionString = await emptyDatabase("graphile");
const preset = {
  worker: {
    connectionString,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger: new Logger(() => () => {}),
  },
};

let executed = 0;
const taskList = {
  noop: async () => {
    executed++;
  },
};

const utils = await makeWorkerUtils({ preset });
await utils.migrate();

const measured = wanted.workload === "w2-started" ? await started() : await processed();
await utils.release();

print({
  peer: "graphile-worker",
  version: versionOf("graphile-worker"),
  store: "postgres",
  steps: 1,
  ...wanted,
  ...measured,
  rssMib: ownRssMib(),
});

/** One call, one insert, one commit, over the given number of callers. */
async function started() {
  const warm = warmUp(wanted.runs, wanted.inFlight);
  await drive({ ...wanted, runs: warm }, () => utils.addJob("noop", {}));
  const answer = await drive(wanted, () => utils.addJob("noop", {}));
  await expectCount(connectionString, warm + wanted.runs, "SELECT count(*) FROM graphile_worker.jobs");
  return answer;
}

/** Everything is there before the clock starts; it stops when the last completion is committed. */
async function processed() {
  await insert(WARM_UP_JOBS);
  await runOnce({ preset, taskList });
  await insert(wanted.runs);
  await expectCount(connectionString, wanted.runs, "SELECT count(*) FROM graphile_worker.jobs");
  const before = performance.now();
  await runOnce({ preset, taskList });
  const elapsed = (performance.now() - before) / 1_000;
  if (executed !== WARM_UP_JOBS + wanted.runs) throw new Error(`executed ${executed} jobs`);
  await expectCount(connectionString, 0, "SELECT count(*) FROM graphile_worker.jobs");
  return { elapsed, inFlight: preset.worker.concurrentJobs };
}

async function insert(jobs) {
  for (let done = 0; done < jobs; done += INSERT_CHUNK) {
    const count = Math.min(INSERT_CHUNK, jobs - done);
    await utils.addJobs(Array.from({ length: count }, () => ({ identifier: "noop", payload: {} })));
  }
  await onDatabase(connectionString, (client) => client.query("ANALYZE"));
}
