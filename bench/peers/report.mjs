// Turns the measurements of a run into the tables and the chart of the performance page:
//
//   report.mjs MEASUREMENTS            prints the section
//   report.mjs MEASUREMENTS PAGE       and puts it between the page's peers:begin and
//                                      peers:end, with the chart beside the page
//
// A figure is the median over the rounds. A ratio is Interlock's figure over the peer's
// within one round, and of those the median, with the least and the most in brackets.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { chart } from "./chart.mjs";

const BEGIN = "<!-- peers:begin -->";
const END = "<!-- peers:end -->";
const CHART = "performance-peers.svg";

const NAMES = {
  interlock: "Interlock",
  restate: "Restate",
  dbos: "DBOS",
  "graphile-worker": "graphile-worker",
  "pg-boss": "pg-boss",
};
const STORES = { sqlite: "SQLite", postgres: "PostgreSQL", restate: "its own" };

// Which of our stores a peer is set against: a peer on PostgreSQL against us on PostgreSQL;
// one with a store of its own against both.
const SET_AGAINST = { postgres: ["postgres"], restate: ["sqlite", "postgres"] };

if (process.argv[1] === import.meta.filename) {
  const [measurements, page] = process.argv.slice(2);
  if (!measurements) throw new Error("name the file with the measurements");
  const { section, svg } = report(readFileSync(measurements, "utf8"));
  process.stdout.write(`${section}\n`);
  if (page) {
    writeFileSync(page, placed(readFileSync(page, "utf8"), section, page));
    writeFileSync(join(dirname(page), CHART), svg);
  }
}

/** The Markdown section and the chart, of the text of a measurements file. */
export function report(text) {
  const lines = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const { machine } = lines.find((line) => line.machine);
  const measured = gather(lines.filter((line) => line.round));
  const rounds = new Set(lines.filter((line) => line.round).map((line) => line.round)).size;
  const section = [preamble(machine, rounds, measured), w1(measured), remote(measured), w2(measured), ingress(measured)]
    .filter(Boolean)
    .join("\n\n");
  return { section, svg: chart("Interlock and its peers, measured in one run", panels(measured)) };
}

/** The page with the section in its place. */
export function placed(page, section, name = "the page") {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin || page.indexOf(BEGIN, begin + 1) >= 0 || page.indexOf(END, end + 1) >= 0) {
    throw new Error(`${name} needs ${BEGIN} and ${END}, once each and in that order`);
  }
  return `${page.slice(0, begin + BEGIN.length)}\n\n${section}\n\n${page.slice(end)}`;
}

/** One entry for each peer, store, workload and number in flight, holding its lines by round. */
function gather(lines) {
  const entries = new Map();
  const order = Object.keys(NAMES);
  for (const line of lines) {
    // W2's halves are told apart by name; what each peer keeps in flight there is its own affair.
    const flight = line.workload === "w1" ? (line.in_flight === 1 ? "one" : "many") : "";
    const key = [line.workload, flight, line.peer, line.store].join("|");
    if (!entries.has(key)) entries.set(key, { ...line, flight, rounds: new Map() });
    entries.get(key).rounds.set(line.round, line);
  }
  return [...entries.values()].sort((a, b) => order.indexOf(a.peer) - order.indexOf(b.peer));
}

function figure(entry, field) {
  return entry ? median([...entry.rounds.values()].map((line) => line[field])) : null;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** How many times better ours is, one for each round that has both; `less` says that the smaller figure is the better. */
function ratiosOf(ours, peer, field, less = false) {
  const ratios = [];
  for (const [round, line] of ours?.rounds ?? []) {
    const other = peer?.rounds.get(round);
    if (other) ratios.push(less ? other[field] / line[field] : line[field] / other[field]);
  }
  return ratios;
}

function ratio(ours, peer, field, less = false) {
  const ratios = ratiosOf(ours, peer, field, less);
  if (ratios.length === 0) return "–";
  const range = ratios.length > 1 ? ` (${times(Math.min(...ratios))}–${times(Math.max(...ratios))})` : "";
  return `**${times(median(ratios))}×**${range}`;
}

function times(value) {
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}

function preamble(machine, rounds, measured) {
  const versions = new Map(measured.map(({ peer, version }) => [peer, `${NAMES[peer]} ${version}`]));
  return [
    `Measured by \`make bench-peers\` on ${machine.date}: ${rounds} ${rounds === 1 ? "round" : "rounds"}, ` +
      "one process at a time, each on a fresh database. A figure is the median of the rounds; a ratio is " +
      "Interlock's figure against the peer's in the same round, the median first, then the least and the most.",
    `The machine: ${machine.cores} cores (${machine.processor}), ${machine.memory_gib} GiB of memory, ` +
      `${machine.kernel}, ${machine.system}; a 4 KiB write with \`fdatasync\` takes ${machine.fdatasync_us} µs. ` +
      `PostgreSQL ${machine.postgres} with its default settings, Node.js ${machine.node} for the peers. ` +
      "Server, workers, database and load share the machine. Memory is the most that the engine and its " +
      "handlers held, without PostgreSQL.",
    "What the figures contain: Restate is called through its HTTP ingress and calls its handlers in another process; " +
      "DBOS, graphile-worker and pg-boss run in the process that calls them; Interlock is what `interlock bench` runs.",
    `Versions: ${[...versions.values()].join(", ")}.`,
    `![Bars of the figures below](${CHART})`,
  ].join("\n\n");
}

function w1(measured) {
  const of = (flight) => measured.filter(({ workload, flight: f }) => workload === "w1" && f === flight);
  const many = of("many");
  const one = of("one");
  if (many.length === 0) return null;
  const same = (list, entry) => list.find(({ peer, store }) => peer === entry.peer && store === entry.store);
  const ours = (list, store) => list.find((entry) => entry.peer === "interlock" && entry.store === store);

  const rows = many.map((entry) => {
    const alone = same(one, entry);
    return [
      named(entry),
      STORES[entry.store],
      count(figure(entry, "steps_per_s")),
      `${figure(alone, "p50_ms")?.toFixed(1) ?? "–"} / ${figure(alone, "p99_ms")?.toFixed(1) ?? "–"}`,
      count(figure(entry, "rss_mib")),
    ];
  });
  const against = many.filter(({ peer }) => peer !== "interlock").flatMap((entry) =>
    SET_AGAINST[entry.store]
      .filter((store) => ours(many, store))
      .map((store) => [
        `Interlock on ${STORES[store]} ÷ ${NAMES[entry.peer]}`,
        ratio(ours(many, store), entry, "steps_per_s"),
        ratio(ours(one, store), same(one, entry), "p50_ms", true),
        ratio(ours(one, store), same(one, entry), "p99_ms", true),
      ]),
  );
  return [
    "### W1: runs of five sequential no-op steps",
    "Each step's completion is durable before the next step begins.",
    table(
      ["", "store", `steps/s, ${many[0].in_flight} runs in flight`, "ms, one run at a time, p50 / p99", "memory, MiB"],
      rows,
    ),
    against.length > 0 && table(["times better", "steps/s", "p50", "p99"], against),
  ]
    .filter(Boolean)
    .join("\n\n");
}

/** W1 with its tasks in another process, and Restate's, which are always in one. */
function remoteEntries(measured) {
  const ours = measured.find(({ workload }) => workload === "w1-remote");
  const restate = measured.find(({ workload, flight, peer }) => workload === "w1" && flight === "many" && peer === "restate");
  return { ours, restate };
}

function remote(measured) {
  const { ours, restate } = remoteEntries(measured);
  if (!ours) return null;
  return [
    "### W1 with its tasks in another process",
    "One worker process, over the WebSocket channel. Restate's handlers are always in another process: its figure is the one above.",
    table(["", "store", `steps/s, ${ours.in_flight} runs in flight`], [[named(ours), STORES[ours.store], count(figure(ours, "steps_per_s"))]]),
    restate && table(["times better", "steps/s"], [["Interlock ÷ Restate", ratio(ours, restate, "steps_per_s")]]),
  ]
    .filter(Boolean)
    .join("\n\n");
}

/** The figures that a whole run is held to, with the bound that each must reach. */
export function bars(text) {
  const measured = gather(text.split("\n").filter(Boolean).map((line) => JSON.parse(line)).filter((line) => line.round));
  const { ours, restate } = remoteEntries(measured);
  const ratios = ratiosOf(ours, restate, "steps_per_s");
  if (ratios.length === 0) throw new Error("W1 with a remote worker and Restate's W1 are not in one round");
  return [
    { name: "W1 with a remote worker, steps/s", value: figure(ours, "steps_per_s"), least: 8_000 },
    { name: "W1 with a remote worker ÷ Restate's W1, median of the rounds", value: median(ratios), least: 3 },
  ];
}

function w2(measured) {
  const of = (half) => measured.filter(({ workload }) => workload === `w2-${half}`);
  const processed = of("processed");
  const started = of("started");
  if (processed.length === 0) return null;
  const same = (list, entry) => list.find(({ peer }) => peer === entry.peer);
  const ours = (list) => list.find(({ peer }) => peer === "interlock");

  const rows = processed.map((entry) => [
    named(entry),
    count(figure(entry, "runs_per_s")),
    count(figure(same(started, entry), "runs_per_s")),
    count(figure(entry, "rss_mib")),
  ]);
  const against = processed.filter(({ peer }) => peer !== "interlock" && ours(processed)).map((entry) => [
    `Interlock ÷ ${NAMES[entry.peer]}`,
    ratio(ours(processed), entry, "runs_per_s"),
    ratio(ours(started), same(started, entry), "runs_per_s"),
  ]);
  return [
    "### W2: single no-op jobs on PostgreSQL",
    "Processed: the jobs are there before the clock starts. Started: one call for each job, from 64 callers.",
    table(["", "processed/s", "started/s", "memory, MiB"], rows),
    against.length > 0 && table(["times better", "processed/s", "started/s"], against),
  ]
    .filter(Boolean)
    .join("\n\n");
}

function ingress(measured) {
  const entries = measured.filter(({ workload }) => workload === "ingress" || workload === "http");
  if (entries.length === 0) return null;
  const ours = entries.find(({ workload }) => workload === "http");
  const rows = entries.map((entry) => [
    named(entry),
    STORES[entry.store] ?? "–",
    count(figure(entry, "runs_per_s")),
    `${latency(entry, "p50_ms")} / ${latency(entry, "p99_ms")}`,
    latency(entry, "half_load_p99_ms"),
  ]);
  const against = entries
    .filter((entry) => ours && entry !== ours)
    .map((entry) => [
      `Interlock ÷ ${NAMES[entry.peer]}`,
      ratio(ours, entry, "runs_per_s"),
      ratio(ours, entry, "p50_ms", true),
    ]);
  return [
    `### HTTP: started over ${entries[0].in_flight} connections`,
    "Interlock: `POST /runs`, authenticated, each under its own idempotency key, answered when the run is durable. " +
      "Restate: an empty handler called through its ingress, answered when the handler has returned. Each is called by " +
      "a client of its own kind, Rust here and Node.js there, which shares the machine.",
    table(["", "store", "answers/s", "ms, p50 / p99", "ms at half that load, p99"], rows),
    against.length > 0 && table(["times better", "answers/s", "p50"], against),
  ]
    .filter(Boolean)
    .join("\n\n");
}

function latency(entry, field) {
  const value = figure(entry, field);
  return Number.isFinite(value) ? value.toFixed(1) : "–";
}

function panels(measured) {
  const panel = (title, note, entries, field, label) => ({
    title,
    note,
    bars: entries
      .map((entry) => ({ entry, value: figure(entry, field) }))
      .filter(({ value }) => value > 0)
      .map(({ entry, value }) => ({
        name: SET_AGAINST[entry.store]?.length === 2 ? NAMES[entry.peer] : `${NAMES[entry.peer]}, ${STORES[entry.store]}`,
        value,
        label: label(value),
        ours: entry.peer === "interlock",
      })),
  });
  const of = (name, flight = "") => measured.filter((entry) => entry.workload === name && entry.flight === flight);
  return [
    panel("W1: steps per second", "five sequential steps a run, hundreds of runs in flight", of("w1", "many"), "steps_per_s", count),
    panel("W1: milliseconds a run (p50)", "one run at a time; shorter is better", of("w1", "one"), "p50_ms", (ms) => `${ms.toFixed(1)} ms`),
    panel("W2: jobs processed per second", "single-step jobs on PostgreSQL", of("w2-processed"), "runs_per_s", count),
    panel("W2: jobs started per second", "one call for each job, 64 callers", of("w2-started"), "runs_per_s", count),
    panel("HTTP: answers per second", "runs started, empty handlers called", [...of("http"), ...of("ingress")], "runs_per_s", count),
  ].filter(({ bars }) => bars.length > 0);
}

function named({ peer, version }) {
  return peer === "interlock" ? `**${NAMES[peer]}**` : `${NAMES[peer]} ${version}`;
}

function count(value) {
  return value === null ? "–" : Math.round(value).toLocaleString("en-US");
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, column) => (column === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n");
}
