/**
 * What the first paint waits for. How long that takes is this machine's (`npm run many` measures it); how much it is, and how
 * often the browser has to ask, one after the other, is the console's: the page, what the page names, and who is signed in.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { done } from './harness.mjs';

/** The page with all that it names, compressed. */
const BYTES_MAX = 200_000;
const NEEDED = '/api/v1/me';

export function firstPaintTests(get) {
  test('the first paint needs the page, what the page names, and one answer of the API', async () => {
    const harness = get();
    const page = await harness.signIn('ada', '/workflows');
    const asked = [];
    page.on('request', (request) => asked.push(request));
    // Every other answer is held back, so what is painted did not wait for it.
    let release;
    const held = new Promise((go) => (release = go));
    await page.route('**/api/v1/**', async (route) => {
      if (new URL(route.request().url()).pathname !== NEEDED) await held;
      await route.continue().catch(() => {});
    });
    await page.goto('/runs');
    await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    assert.equal(await page.locator('tbody tr').count(), 0, 'no answer has come but that of who is signed in');

    const paths = asked.map((request) => new URL(request.url()));
    assert.deepEqual(paths.filter((url) => url.origin !== new URL(harness.url).origin), [], 'nothing is asked of others');
    const [document, ...rest] = asked.filter((request) => !new URL(request.url()).pathname.startsWith('/api/'));
    const html = await (await document.response()).text();
    // Nothing is found out only by reading a script or a style: there is no chain behind what the page names.
    for (const request of rest) assert.ok(html.includes(new URL(request.url()).pathname), `the page does not name ${request.url()}`);
    const blocking = rest.filter((request) => ['script', 'stylesheet'].includes(request.resourceType()));
    assert.ok(blocking.length <= 2, `${blocking.length} scripts and styles`);
    const bodies = await Promise.all([document, ...rest].map(async (request) => (await request.response()).body()));
    const bytes = bodies.reduce((sum, body) => sum + gzipSync(body, { level: 9 }).length, 0);
    assert.ok(bytes <= BYTES_MAX, `${bytes} bytes compressed`);
    if (process.env.CONSOLE_DIST !== '1') {
      for (const request of blocking) assert.equal((await request.response()).headers()['content-encoding'], 'gzip', request.url());
    }
    // And none of the answers that were held back was needed for who is signed in.
    const first = paths.findIndex((url) => url.pathname.startsWith('/api/'));
    assert.equal(paths[first].pathname, NEEDED, 'it is the first that is asked');
    console.log(`the first paint needs ${rest.length + 2} requests and ${bytes} bytes, compressed`);
    release();
    await page.locator('tbody tr, .empty').first().waitFor();
    await done(page);
  });
}
