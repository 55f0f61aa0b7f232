/**
 * The console over a long history: `npm run many` makes RUNS runs (100,000 unless told) in a store of its own, opens the
 * list in a browser without a cache, and says how long it took and how much it asked for. Not part of the tests: it takes
 * minutes, and its times are this machine's.
 */

import assert from 'node:assert/strict';
import { Harness, until } from './harness.mjs';

const RUNS = Number(process.env.RUNS ?? 100_000);
const AT_ONCE = 48;
const ROWS_MAX = 50;
const NODES_MAX = 4_000;
const REQUESTS_MAX = 20;
const PAINT_MAX_MS = 1_000;

const TICK = `name: tick
inputs: { n: { type: integer, required: true }, broken: { type: boolean, default: false } }
subject: tick-\${{ inputs.n }}
labels: { lot: "\${{ inputs.n % 100 }}" }
steps:
  - id: sum
    transform: { text: "\${{ inputs.broken ? string(1 / (inputs.n - inputs.n)) : 'done' }}" }
`;

async function fill(harness) {
  await harness.call('/workflows', { source: TICK });
  const began = Date.now();
  let next = 0;
  async function lane() {
    while (next < RUNS) {
      const n = next++;
      const [workflow, inputs] = n % 500 === 0 ? ['wait-for-parcel', { parcel: `parcel-${n}` }] : ['tick', { n, broken: n % 50 === 1 }];
      await harness.call('/runs', { workflow, inputs });
      if (n % 10_000 === 0) console.log(`${n.toLocaleString()} runs after ${Math.round((Date.now() - began) / 1_000)} s`);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  await until('all have begun', async () => (await harness.call('/runs?state=running&state=pending&limit=1')).runs.length === 0, 600_000);
}

/** Opens an address, and says what that took. */
async function open(page, what, path, rows = 'tbody tr') {
  const sizes = [];
  const count = (request) => sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize, () => 0));
  page.on('requestfinished', count);
  const began = Date.now();
  await page.goto(path);
  await page.locator(rows).first().waitFor();
  const shown = Date.now() - began;
  await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
  await page.waitForLoadState('networkidle');
  page.off('requestfinished', count);
  const requests = sizes.length;
  const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  const seen = await page.evaluate(() => ({
    paint: Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1),
    rows: document.querySelectorAll('tbody tr').length,
    nodes: document.querySelectorAll('*').length,
  }));
  const measured = { what, first_paint_ms: seen.paint, rows_shown_ms: shown, rows: seen.rows, nodes: seen.nodes, requests, kilobytes: Math.round(bytes / 1_000) };
  assert.ok(seen.rows <= ROWS_MAX, `${what}: ${seen.rows} rows`);
  assert.ok(seen.nodes <= NODES_MAX, `${what}: ${seen.nodes} nodes`);
  assert.ok(requests <= REQUESTS_MAX, `${what}: ${requests} requests`);
  return measured;
}

const harness = await Harness.start();
try {
  await fill(harness);
  const page = await harness.signIn('ada', '/workflows');
  const session = await page.context().newCDPSession(page);
  await session.send('Network.setCacheDisabled', { cacheDisabled: true });
  const oldest = (await harness.call('/runs?workflow=wait-for-parcel&subject=parcel-0')).runs[0];
  const found = [
    await open(page, 'all runs', '/runs'),
    await open(page, 'those that failed', '/runs?state=failed'),
    await open(page, 'a label', '/runs?label=lot:7'),
    await open(page, 'a part of a subject', `/runs?text=tick-${Math.max(1, RUNS - 100)}`),
    await open(page, 'the oldest run', `/runs/${oldest.run_id}`, '.timeline li'),
  ];
  console.table(found);
  assert.ok(found[0].first_paint_ms < PAINT_MAX_MS, `the first paint took ${found[0].first_paint_ms} ms`);
} finally {
  await harness.stop();
}
