// DBOS: workflows of five no-op steps, checkpointed in PostgreSQL.

import { DBOS } from "@dbos-inc/dbos-sdk";
import { drive, emptyDatabase, expectCount, options, ownRssMib, print, versionOf, warmUp } from "./load.mjs";

const STEPS = 5;

// Of 10 (its default), 20 and 50 connections, 20 did best with 256 runs in flight.
const POOL_SIZE = 20;

const wanted = options(["w1"]);
const url = await emptyDatabase("dbos");

const workflow = DBOS.registerWorkflow(
  async () => {
    for (let step = 0; step < STEPS; step++) await DBOS.runStep(async () => null, { name: "noop" });
  },
  { name: "five" },
);

DBOS.setConfig({
  name: "bench",
  systemDatabaseUrl: url,
  systemDatabasePoolSize: POOL_SIZE,
  logLevel: "error",
  enableOTLP: false,
  tracingEnabled: false,
});
await DBOS.launch();

const warm = warmUp(wanted.runs, wanted.inFlight);
await drive({ ...wanted, runs: warm }, () => workflow());
const measured = await drive(wanted, () => workflow());

const rssMib = ownRssMib();
await DBOS.shutdown();

const runs = warm + wanted.runs;
await expectCount(url, runs, "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'");
await expectCount(url, runs * STEPS, "SELECT count(*) FROM dbos.operation_outputs");

print({
  peer: "dbos",
  version: versionOf("@dbos-inc/dbos-sdk"),
  workload: "w1",
  store: "postgres",
  steps: STEPS,
  ...wanted,
  ...measured,
  rssMib,
});
