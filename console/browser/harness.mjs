/**
 * What the browser tests begin with: a real server and a real worker in a folder of their own, people who can sign in, and
 * the distribution's Chromium.
 */

import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { servedFromDist } from './dist.mjs';

export const PASSWORD = 'correct horse battery';
const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

const WORKFLOWS = [
  `name: restart-database
description: Restarts a database server for an incident, once two people have agreed.
inputs:
  incident: { type: string, required: true, searchable: true, pattern: "^INC[0-9]+$", description: The incident's number. }
  host: { type: string, enum: [db-1, db-2, db-3], default: db-1, description: Which server. }
  drain: { type: boolean, default: true, description: Let connections finish first. }
subject: \${{ inputs.incident }}
labels: { team: sre }
approval: { mode: critical_only, quorum: 2, approvers: [sre], escalate_after: 10m, on_reject: pause }
steps:
  - { id: inspect, task: db.inspect, effect: read }
  - { id: drain, task: db.drain, rollback: { task: db.undrain } }
  - id: agree
    approval: { message: "Restart \${{ inputs.host }} for \${{ inputs.incident }}?" }
  - { id: restart, task: db.restart, effect: keyed, blast_radius: high, rollback: { task: db.failback } }
  - { id: report, task: db.report }
`,
  `name: publish-page
description: Publishes an entry of the status page, once somebody has read it.
inputs: { title: { type: string, required: true } }
steps:
  - id: read
    approval: { message: "Publish “\${{ inputs.title }}”?" }
  - { id: publish, task: page.publish, blast_radius: low, rollback: { task: page.withdraw } }
`,
  `name: hello
description: Greets somebody.
inputs:
  name: { type: string, required: true, description: Whom to greet. }
  times: { type: integer, default: 1 }
steps:
  - { id: greet, task: say.hello, with: { whom: "\${{ inputs.name }}" } }
  - id: sum
    transform: { text: "Greeted \${{ inputs.name }}" }
`,
  `name: nightly-report
description: Sums up the day.
on:
  schedule:
    - { cron: "30 2 * * *", timezone: Europe/Berlin, name: nightly }
steps:
  - id: sum
    transform: { text: done }
`,
  `name: chatty
description: Patches a host for a change, telling what it does.
inputs: { ticket: { type: string, required: true } }
subject: \${{ inputs.ticket }}
approval: { approvers: [sre] }
steps:
  - { id: look, task: say.hello, effect: read, phase: prechecks }
  - { id: work, task: chatty.work, phase: main }
  - { id: agree, phase: main, approval: { message: "Put \${{ inputs.ticket }} into service?" } }
  - { id: verify, task: say.hello, effect: read, phase: postchecks }
`,
  `name: wait-for-parcel
inputs: { parcel: { type: string, required: true } }
subject: \${{ inputs.parcel }}
steps:
  - id: arrived
    wait: { signal: parcel.arrived, timeout: 1h }
`,
];
/** Writes lines for some seconds. In the middle it waits for as long as a file is there, so that a test can look at its leisure. */
const chattyScript = (pause) => `#!/bin/sh
cat >/dev/null
i=0
while [ $i -lt 120 ]; do
  printf 'tick %s of the patch \\033[32mok\\033[0m\\n' $i >&2
  i=$((i + 1))
  while [ $i -eq 60 ] && [ -e '${pause}' ]; do sleep 0.1; done
  sleep 0.04
done
echo '{"patched":true}'
`;
const TASKS = ['db.inspect', 'db.drain', 'db.undrain', 'db.restart', 'db.failback', 'db.report', 'page.publish', 'page.withdraw', 'say.hello'];
const PEOPLE = [
  ['ada', ['admin'], ['sre']],
  ['bob', ['approver'], ['sre']],
  ['cleo', ['approver'], ['sre']],
  ['otto', ['operator'], []],
  ['vera', ['viewer'], []],
];

let ports = 0;

/**
 * Below the ports that the system gives to connections, so that none of them takes it before the server has it, and far from
 * those of another file of tests.
 */
export async function freePort() {
  for (;;) {
    const port = 20_000 + ((process.pid * 101 + ports++) % 12_000);
    const probe = createServer();
    const isFree = await new Promise((done) => probe.once('error', () => done(false)).listen(port, '127.0.0.1', () => done(true)));
    if (!isFree) continue;
    await new Promise((done) => probe.close(done));
    return port;
  }
}

/** Presses two keys that belong together. A busy machine could take longer between two presses than a pair may. */
export async function pressPair(page, first, second) {
  await page.evaluate((keys) => {
    for (const key of keys) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  }, [first, second]);
}

/** Opens the form that starts a run of the workflow on the page, by its key, which is there once the workflow is. */
export async function pressStart(page) {
  await page.getByRole('button', { name: /^Start a run/ }).waitFor();
  await page.keyboard.press('s');
}

export async function until(what, check, patience = 120_000) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** The program that is tested. */
export function binary() {
  const path = resolve(process.env.INTERLOCK_BIN ?? '../target/debug/interlock');
  if (!existsSync(path)) throw new Error(`${path} is missing: cargo build -p interlock-cli, or name one in INTERLOCK_BIN`);
  return path;
}

export class Harness {
  static async start() {
    const program = binary();
    const harness = new Harness();
    harness.folder = mkdtempSync(join(tmpdir(), 'interlock-console-'));
    harness.screenshots = resolve('screenshots');
    mkdirSync(harness.screenshots, { recursive: true });
    harness.children = [];
    harness.dists = [];
    const port = await freePort();
    harness.url = `http://127.0.0.1:${port}`;
    /** The server itself, also where another program serves the pages. */
    harness.address = harness.url;
    const data = join(harness.folder, 'data');
    harness.run(program, ['up', '--no-demo', '--data', data, '--listen', `127.0.0.1:${port}`]);
    await until('the server is ready', () => fetch(`${harness.url}/readyz`).then((answer) => answer.ok, () => false));
    harness.key = readFileSync(join(data, 'local.key'), 'utf8').trim();
    for (const [name, roles, groups] of PEOPLE) await harness.call('/users', { name, roles, groups, password: PASSWORD });
    for (const source of WORKFLOWS) await harness.call('/workflows', { source });
    const task = join(harness.folder, 'task');
    writeFileSync(task, '#!/bin/sh\ncat >/dev/null\nsleep 0.2\necho \'{"ok":true}\'\n');
    chmodSync(task, 0o755);
    const chatty = join(harness.folder, 'chatty');
    /** While this file is there, the chatty task goes no further than its middle. */
    harness.pause = join(harness.folder, 'pause');
    writeFileSync(chatty, chattyScript(harness.pause));
    chmodSync(chatty, 0o755);
    harness.run(program, ['worker', '--task', `chatty.work=${chatty}`, '--server', harness.url, '--data', data, '--name', 'console-tests', ...TASKS.flatMap((name) => ['--task', `${name}=${task}`])]);
    if (process.env.CONSOLE_DIST === '1') {
      const dist = await servedFromDist(harness.url);
      harness.dists.push(dist);
      harness.url = dist.url;
    }
    harness.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell', args: FLAGS });
    return harness;
  }

  run(binary, args) {
    const child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr.on('data', (text) => (this.said = ((this.said ?? '') + text).slice(-4_000)));
    this.children.push(child);
    return child;
  }

  async stop() {
    await this.browser?.close();
    for (const dist of this.dists) await dist.close();
    for (const child of this.children.reverse()) {
      // It may have ended by itself.
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise((done) => child.once('exit', done));
      child.kill('SIGTERM');
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A second server beside the first, with data of its own: for what would stand in the other tests' way. */
  async another(name, flags = [], port = undefined) {
    const server = { url: `http://127.0.0.1:${port ?? (await freePort())}` };
    const data = join(this.folder, name);
    this.run(binary(), ['up', '--no-demo', '--data', data, '--listen', new URL(server.url).host, ...flags]);
    await until(`the server ${name} is ready`, () => fetch(`${server.url}/readyz`).then((answer) => answer.ok, () => false));
    server.key = readFileSync(join(data, 'local.key'), 'utf8').trim();
    // Where its address matters to others, it serves its own pages.
    if (process.env.CONSOLE_DIST === '1' && port === undefined) {
      const dist = await servedFromDist(server.url);
      this.dists.push(dist);
      server.url = dist.url;
    }
    return server;
  }

  /** The API with the key of this machine: no person. */
  async call(path, body, expected, { url, key, method } = this) {
    const answer = await fetch(`${url}/api/v1${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const said = answer.status === 204 ? undefined : await answer.json();
    if (expected === undefined ? !answer.ok : answer.status !== expected) throw new Error(`${path}: ${answer.status} ${JSON.stringify(said)}`);
    return said;
  }

  /** Switches the task workspace on or off. */
  async flag(on) {
    const { tenant } = await this.call('/me');
    const answer = await fetch(`${this.url}/api/v1/tenants/${tenant}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${this.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ 'ui.task_workspace.enabled': on }),
    });
    if (!answer.ok) throw new Error(`the flag: ${answer.status} ${await answer.text()}`);
  }

  async begin(workflow, inputs) {
    return (await this.call('/runs', { workflow, inputs })).run_id;
  }

  async reaches(run, state) {
    return until(`${run} is ${state}`, async () => (await this.call(`/runs/${run}`)).state === state);
  }

  /** A browser of one's own, not signed in. What goes wrong in the page, also against its policy, fails the test. */
  async visitor(options = {}) {
    const context = await this.browser.newContext({ baseURL: this.url, viewport: { width: 1280, height: 860 }, ...options });
    context.setDefaultTimeout(90_000);
    const page = await context.newPage();
    page.problems = [];
    page.on('pageerror', (error) => page.problems.push(error.message));
    page.on('console', (message) => {
      const expected = /status of (401|403|404|409|422)/.test(message.text());
      if (message.type() === 'error' && !expected) page.problems.push(message.text());
    });
    return page;
  }

  async signIn(name, to = '/runs', options = {}) {
    const page = await this.visitor(options);
    await page.goto(`/login?next=${encodeURIComponent(to)}`);
    await page.fill('#name', name);
    await page.fill('#password', PASSWORD);
    await page.click('button[type=submit]');
    await page.waitForURL((url) => url.pathname + url.search === to);
    await page.waitForSelector('.connection.live', { state: 'attached' });
    return page;
  }

  async picture(page, name) {
    await page.screenshot({ path: join(this.screenshots, `${name}.png`) });
  }
}

/** Closes the page, and says what went wrong in it. */
export async function done(page) {
  const { problems } = page;
  await page.context().close();
  if (problems.length > 0) throw new Error(`the page had problems: ${problems.join(' | ')}`);
}
