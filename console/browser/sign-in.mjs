import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, PASSWORD } from './harness.mjs';

export function signInTests(get) {
  test('whoever is not signed in signs in, and comes to where they wanted to go', async () => {
    const page = await get().visitor();
    await page.goto('/runs?state=failed');
    await page.waitForURL(/\/login\?next=/);
    await page.fill('#name', 'ada');
    await page.fill('#password', 'not the password');
    await page.click('button[type=submit]');
    await page.waitForSelector('[role=alert]');
    await page.fill('#password', PASSWORD);
    await page.click('button[type=submit]');
    await page.waitForURL('**/runs?state=failed');
    await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
    assert.equal(await page.getByLabel('State', { exact: true }).inputValue(), 'failed');
    await done(page);
  });

  test('the bare address leads to the runs, and signing out ends the visit', async () => {
    const page = await get().signIn('ada', '/');
    await page.waitForURL('**/runs');
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
    console.log(`first paint after ${Math.round(paint)} ms`);
    await page.goto('/settings');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/login');
    await page.goto('/runs');
    await page.waitForURL(/\/login\?next=/);
    await done(page);
  });

  test('the page allows only what the server serves', { skip: process.env.CONSOLE_DIST === '1' && 'another program serves it' }, async () => {
    const page = await get().signIn('ada');
    const answer = await page.goto('/runs');
    const policy = answer.headers()['content-security-policy'];
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /script-src 'self';/);
    assert.doesNotMatch(policy, /unsafe/);
    const script = await page.locator('script[src]').first().getAttribute('src');
    const asset = await page.request.get(script);
    assert.match(asset.headers()['cache-control'], /immutable/);
    assert.equal((await page.request.get('/assets/none.js')).status(), 404);
    assert.equal((await page.request.get('/no-such-room')).status(), 404);
    await done(page);
  });
}
