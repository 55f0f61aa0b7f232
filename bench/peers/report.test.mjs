// node --test bench/peers

import assert from "node:assert/strict";
import test from "node:test";
import { bars, placed, report } from "./report.mjs";

const MACHINE = {
  date: "2026-01-02",
  cores: 2,
  processor: "A processor",
  memory_gib: 24,
  kernel: "Linux 6",
  system: "A system",
  postgres: "15.1",
  node: "22.1.0",
  fdatasync_us: 60,
};

const line = (round, peer, store, workload, in_flight, rate, p50_ms = 1) => ({
  round,
  peer,
  version: "1.0.0",
  workload,
  store,
  runs: 100,
  steps: workload === "w1" ? 5 : 1,
  in_flight,
  runs_per_s: rate,
  steps_per_s: rate,
  p50_ms,
  p99_ms: p50_ms * 3,
  rss_mib: 50,
});

const text = (lines) => [{ machine: MACHINE }, ...lines].map((each) => JSON.stringify(each)).join("\n");

test("a ratio is taken within a round, and then the median", () => {
  const { section } = report(
    text([
      line(1, "interlock", "postgres", "w1", 256, 1_000),
      line(1, "dbos", "postgres", "w1", 256, 100),
      line(2, "interlock", "postgres", "w1", 256, 3_000),
      line(2, "dbos", "postgres", "w1", 256, 150),
      line(3, "interlock", "postgres", "w1", 256, 1_200),
      line(3, "dbos", "postgres", "w1", 256, 100),
    ]),
  );
  assert.match(section, /Interlock on PostgreSQL ÷ DBOS \| \*\*12×\*\* \(10–20\)/);
  assert.match(section, /\*\*Interlock\*\* \| PostgreSQL \| 1,200 /);
});

test("for a latency, less is better", () => {
  const { section } = report(
    text([
      line(1, "interlock", "sqlite", "w1", 256, 1_000),
      line(1, "interlock", "sqlite", "w1", 1, 100, 2),
      line(1, "restate", "restate", "w1", 256, 100),
      line(1, "restate", "restate", "w1", 1, 10, 11),
    ]),
  );
  assert.match(section, /Interlock on SQLite ÷ Restate \| \*\*10×\*\* \| \*\*5\.5×\*\* \| \*\*5\.5×\*\* \|/);
  assert.doesNotMatch(section, /Interlock on PostgreSQL ÷/);
});

test("a remote worker is held to Restate in the same round", () => {
  const lines = [
    line(1, "interlock", "sqlite", "w1-remote", 256, 9_000),
    line(1, "restate", "restate", "w1", 256, 3_001),
    line(2, "interlock", "sqlite", "w1-remote", 256, 9_000),
    line(2, "restate", "restate", "w1", 256, 2_000),
  ];
  const { section } = report(text(lines));
  assert.match(section, /W1 with its tasks in another process/);
  assert.match(section, /Interlock ÷ Restate \| \*\*3\.7×\*\* \(3\.0–4\.5\)/);
  const held = (of) => bars(text(of)).map(({ value, least }) => value >= least);
  assert.deepEqual(held(lines), [true, true]);
  assert.deepEqual(held(lines.slice(0, 2)), [true, false]);
  assert.throws(() => bars(text(lines.slice(0, 1))), /not in one round/);
});

test("both halves of W2 are set against the same peer, whatever it keeps in flight", () => {
  const { section, svg } = report(
    text([
      line(1, "interlock", "postgres", "w2-processed", 64, 50_000),
      line(1, "interlock", "postgres", "w2-started", 64, 9_000),
      line(1, "pg-boss", "postgres", "w2-processed", 2_000, 25_000),
      line(1, "pg-boss", "postgres", "w2-started", 64, 1_500),
    ]),
  );
  assert.match(section, /Interlock ÷ pg-boss \| \*\*2\.0×\*\* \| \*\*6\.0×\*\* \|/);
  assert.match(svg, /25,000/);
});

test("starts over HTTP are set against the peer's empty handler, in the same round", () => {
  const http = (round, rate) => ({ ...line(round, "interlock", "sqlite", "http", 64, rate, 4), half_load_p99_ms: 6.5 });
  const { section, svg } = report(
    text([
      http(1, 6_000),
      line(1, "restate", "restate", "ingress", 64, 1_000, 50),
      http(2, 8_000),
      line(2, "restate", "restate", "ingress", 64, 800, 60),
    ]),
  );
  assert.match(section, /### HTTP: started over 64 connections/);
  assert.match(section, /\*\*Interlock\*\* \| SQLite \| 7,000 \| 4\.0 \/ 12\.0 \| 6\.5 \|/);
  assert.match(section, /Restate 1\.0\.0 \| its own \| 900 \| 55\.0 \/ 165\.0 \| – \|/);
  assert.match(section, /Interlock ÷ Restate \| \*\*8\.0×\*\* \(6\.0–10\) \| \*\*14×\*\* \(13–15\) \|/);
  assert.match(svg, /HTTP: answers per second/);
});

test("without Interlock there are figures and no ratios", () => {
  const { section } = report(text([line(1, "dbos", "postgres", "w1", 256, 100)]));
  assert.match(section, /DBOS 1\.0\.0/);
  assert.doesNotMatch(section, /times better/);
});

test("only what lies between the marks is replaced, and again the same way", () => {
  const page = "before\n<!-- peers:begin -->\nold\n<!-- peers:end -->\nafter\n";
  const once = placed(page, "new");
  assert.equal(once, "before\n<!-- peers:begin -->\n\nnew\n\n<!-- peers:end -->\nafter\n");
  assert.equal(placed(once, "new"), once);
});

test("a page without its marks is refused", () => {
  assert.throws(() => placed("before\n<!-- peers:end -->\n<!-- peers:begin -->\n", "new", "page.md"), /page\.md needs/);
});
