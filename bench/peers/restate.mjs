// Restate: its server with its own log and store on disk, a process with the handlers, and
// this one, which calls them through the server's ingress. All on loopback, with the
// server's default settings but for the number of partitions.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drive, options, print, rssMibOf, versionOf, warmUp } from "./load.mjs";

const START_ATTEMPTS_MAX = 150;
const START_PAUSE_MS = 200;

// Its default is 24. On two cores 4 did half as many steps again, and 2 no more than 4.
const PARTITIONS = 4;

const HANDLERS = { w1: { path: "/bench/five", steps: 5 }, ingress: { path: "/bench/empty", steps: 0 } };

const wanted = options(Object.keys(HANDLERS));
const serverPackage = `@restatedev/restate-server-linux-${process.arch}`;
const folder = mkdtempSync(join(tmpdir(), "bench-restate-"));
const children = [];

let stopping = false;

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, async () => {
    await stop();
    process.exit(1);
  });
}
try {
  print(await measure());
} finally {
  await stop();
}

async function measure() {
  const handlers = start(process.execPath, [join(import.meta.dirname, "restate-handlers.mjs")], "pipe");
  const handlersPort = Number((await once(handlers.stdout, "data"))[0]);

  const [ingressPort, adminPort, fabricPort] = await freePorts(3);
  const server = start(
    join(import.meta.dirname, "node_modules", serverPackage, "bin", "restate-server"),
    ["--config-file", configuration({ ingressPort, adminPort, fabricPort }), "--no-logo"],
    process.stderr,
  );
  await answers(adminPort, { method: "GET", path: "/health" });
  await answers(adminPort, { method: "POST", path: "/deployments" }, { uri: `http://127.0.0.1:${handlersPort}` });
  await answers(ingressPort, { method: "POST", path: HANDLERS.ingress.path });

  const { path, steps } = HANDLERS[wanted.workload];
  const agent = new http.Agent({ keepAlive: true, maxSockets: wanted.inFlight });
  const call = () => request(ingressPort, { method: "POST", path, agent });
  await drive({ ...wanted, runs: warmUp(wanted.runs, wanted.inFlight) }, call);
  const measured = await drive(wanted, call);
  agent.destroy();

  return {
    peer: "restate",
    version: versionOf(serverPackage),
    store: "restate",
    steps,
    ...wanted,
    ...measured,
    rssMib: rssMibOf(server.pid) + rssMibOf(handlers.pid),
  };
}

function start(program, args, stdout) {
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...process.env, DO_NOT_TRACK: "1" },
    stdio: ["pipe", stdout, "inherit"],
  });
  child.on("exit", async (code, signal) => {
    if (stopping) return;
    process.stderr.write(`restate: ${program} ended by itself (${signal ?? code})\n`);
    await stop();
    process.exit(1);
  });
  children.push(child);
  return child;
}

/** Ends the children, waits until they have ended, and removes their files. */
async function stop() {
  stopping = true;
  const running = children.filter((child) => child.exitCode === null && child.signalCode === null);
  await Promise.all(
    running.map((child) => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      return ended;
    }),
  );
  rmSync(folder, { recursive: true, force: true });
}

function configuration({ ingressPort, adminPort, fabricPort }) {
  const file = join(folder, "restate.toml");
  writeFileSync(
    file,
    `base-dir = ${JSON.stringify(join(folder, "data"))}
default-num-partitions = ${PARTITIONS}
node-name = "bench"
listen-mode = "tcp"
bind-address = "127.0.0.1:${fabricPort}"
advertised-address = "http://127.0.0.1:${fabricPort}/"
disable-telemetry = true
log-filter = "error"

[ingress]
bind-address = "127.0.0.1:${ingressPort}"
advertised-address = "http://127.0.0.1:${ingressPort}/"

[admin]
bind-address = "127.0.0.1:${adminPort}"
advertised-address = "http://127.0.0.1:${adminPort}/"
disable-web-ui = true
`,
  );
  return file;
}

/** Ports that were free a moment ago, all held until the last is found. */
async function freePorts(count) {
  const held = [];
  for (let port = 0; port < count; port++) {
    const listener = net.createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    held.push(listener);
  }
  const ports = held.map((listener) => listener.address().port);
  await Promise.all(held.map((listener) => once(listener.close(), "close")));
  return ports;
}

/** Asks until the answer is a success: the server takes a few seconds to elect and to register. */
async function answers(port, options, body) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request(port, options, body);
    } catch (error) {
      if (attempt === START_ATTEMPTS_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, START_PAUSE_MS));
    }
  }
}

function request(port, options, body) {
  return new Promise((resolve, reject) => {
    const headers = body ? { "content-type": "application/json" } : {};
    const sent = http.request({ host: "127.0.0.1", port, headers, ...options }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (part) => (text += part));
      answer.on("error", reject);
      answer.on("end", () => {
        if (answer.statusCode < 300) resolve(text);
        else reject(new Error(`${options.path} answered ${answer.statusCode}: ${text}`));
      });
    });
    sent.on("error", reject);
    sent.end(body ? JSON.stringify(body) : undefined);
  });
}
