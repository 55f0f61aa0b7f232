// pg-boss: single no-op jobs on PostgreSQL, fetched and settled in batches, with workers
// that fetch again at once while their batches come back full. Every job of a batch has
// an outcome of its own, as with the others; that measured no slower than one for all.

import { PgBoss } from "pg-boss";
import { drive, emptyDatabase, expectCount, onDatabase, options, ownRssMib, print, versionOf, warmUp } from "./load.mjs";

const QUEUE = "noop";
const INSERT_CHUNK = 5_000;
const WARM_UP_JOBS = 2_000;

// Of 10, 25 and 64 connections, 25 did best with 64 callers. Of batches of 100, 500 and
// 1,000 on 1, 2 and 4 workers, 500 on 4 did best or as well as any.
const POOL_SIZE = 25;
const BATCH_SIZE = 500;
const WORKERS = 4;

const wanted = options(["w2-processed", "w2-started"]);
const connectionString = await emptyDatabase("pgboss");
const boss = new PgBoss({ connectionString, max: POOL_SIZE, schedule: false });
boss.on("error", (error) => {
  process.stderr.write(`pg-boss: ${error.stack}\n`);
  process.exit(1);
});
await boss.start();
await boss.createQueue(QUEUE);

const measured = wanted.workload === "w2-started" ? await started() : await processed();
await boss.stop({ graceful: true, timeout: 10_000 });

print({
  peer: "pg-boss",
  version: versionOf("pg-boss"),
  store: "postgres",
  steps: 1,
  ...wanted,
  ...measured,
  rssMib: ownRssMib(),
});

/** One call, one insert, one commit, over the given number of callers. */
async function started() {
  const warm = warmUp(wanted.runs, wanted.inFlight);
  await drive({ ...wanted, runs: warm }, () => boss.send(QUEUE, {}));
  const answer = await drive(wanted, () => boss.send(QUEUE, {}));
  await expectJobs(warm + wanted.runs, "created");
  return answer;
}

/** Everything is there before the clock starts; it stops when the last completion is committed. */
async function processed() {
  await insert(WARM_UP_JOBS);
  await work(WARM_UP_JOBS);
  await insert(wanted.runs);
  await expectJobs(wanted.runs, "created");
  const before = performance.now();
  await work(wanted.runs);
  const elapsed = (performance.now() - before) / 1_000;
  await expectJobs(WARM_UP_JOBS + wanted.runs, "completed");
  return { elapsed, inFlight: BATCH_SIZE * WORKERS };
}

async function insert(jobs) {
  for (let done = 0; done < jobs; done += INSERT_CHUNK) {
    const count = Math.min(INSERT_CHUNK, jobs - done);
    await boss.insert(QUEUE, Array.from({ length: count }, () => ({ data: {} })));
  }
  await onDatabase(connectionString, (client) => client.query("ANALYZE"));
}

/** Works until `jobs` jobs were handled, then waits for the batches in hand to be completed. */
async function work(jobs) {
  let handled = 0;
  const { promise, resolve } = Promise.withResolvers();
  await boss.work(
    QUEUE,
    {
      batchSize: BATCH_SIZE,
      localConcurrency: WORKERS,
      burstWhenBatchFull: true,
      perJobResults: true,
      pollingIntervalSeconds: 0.5,
    },
    async (batch) => {
      handled += batch.length;
      if (handled >= jobs) resolve();
      return batch.map(({ id }) => ({ id, status: "completed" }));
    },
  );
  await promise;
  await boss.offWork(QUEUE, { wait: true });
}

async function expectJobs(jobs, state) {
  await expectCount(
    connectionString,
    jobs,
    "SELECT count(*) FROM pgboss.job WHERE name = $1 AND state = $2::pgboss.job_state",
    [QUEUE, state],
  );
}
