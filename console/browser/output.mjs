import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { done, PASSWORD, until } from './harness.mjs';

/** A line between browser and server that can be cut. It stays cut until it is mended. */
async function cuttable(target) {
  const { port } = new URL(target);
  const open = new Set();
  let isCut = false;
  const line = createServer((near) => {
    if (isCut) return near.destroy();
    const far = connect(Number(port), '127.0.0.1');
    for (const [one, other] of [[near, far], [far, near]]) {
      open.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => (open.delete(one), other.destroy()));
    }
  });
  await new Promise((ready) => line.listen(0, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${line.address().port}`,
    cut: () => ((isCut = true), open.forEach((socket) => socket.destroy())),
    mend: () => (isCut = false),
    close: () => (open.forEach((socket) => socket.destroy()), new Promise((ended) => line.close(ended))),
  };
}

async function signIn(harness, url, to) {
  const page = await harness.visitor({ baseURL: url });
  await page.goto(`/login?next=${encodeURIComponent(to)}`);
  await page.fill('#name', 'ada');
  await page.fill('#password', PASSWORD);
  await page.click('button[type=submit]');
  await page.waitForURL((address) => address.pathname + address.search === to);
  return page;
}

const numbers = (page) =>
  page.locator('.terminal-line.stderr .terminal-text').allInnerTexts().then((texts) => texts.map((text) => Number(/^tick (\d+)/.exec(text)?.[1])).filter((number) => !Number.isNaN(number)));

export function outputTests(get) {
  test('what a step writes is shown live, coloured, searched and downloaded', async () => {
    const harness = get();
    const run = await harness.begin('chatty', { ticket: 'CHG100' });
    // Chosen, because the page otherwise goes on with the run to its next step.
    const page = await harness.signIn('otto', `/runs/${run}?step=1`);
    await page.locator('.terminal-line', { hasText: 'tick 3' }).first().waitFor();
    assert.equal(await page.locator('.terminal .t-green').first().innerText(), 'ok');
    await page.locator('.terminal-state', { hasText: 'Ended' }).waitFor();
    await page.getByLabel('Search the output').fill('tick 1');
    await page.locator('.terminal-hits', { hasText: /^\s*1 of \d+/ }).waitFor();
    await harness.picture(page, 'run-output');
    const href = await page.getByRole('link', { name: 'Download' }).getAttribute('href');
    const [status, name, text] = await page.evaluate(async (href) => {
      const answer = await fetch(href);
      return [answer.status, answer.headers.get('content-disposition'), await answer.text()];
    }, href);
    assert.equal(status, 200, text);
    assert.match(name, /attachment; filename="work-1.log"/);
    assert.match(text, /tick 1\b/);
    await done(page);
  });

  test('the workspace is there only where the flag is on', async () => {
    const harness = get();
    await harness.flag(false);
    const run = await harness.begin('chatty', { ticket: 'CHG101' });
    const page = await harness.signIn('vera');
    await page.goto(`/workspace/${run}`);
    await page.getByText('There is no such page').waitFor();
    await done(page);
  });

  test('a connection that is lost in the middle of output comes back without a gap', async (t) => {
    const harness = get();
    t.after(() => rmSync(harness.pause, { force: true }));
    await harness.flag(true);
    const line = await cuttable(harness.url);
    // It does not end before the line was cut twice.
    writeFileSync(harness.pause, '');
    const run = await harness.begin('chatty', { ticket: 'CHG102' });
    const page = await signIn(harness, line.url, `/workspace/${run}?step=1`);
    page.problems = { push: () => {}, length: 0 };
    await page.locator('.terminal-line', { hasText: 'tick 5' }).first().waitFor();
    line.cut();
    await page.locator('.terminal-state', { hasText: 'Reconnecting' }).waitFor();
    await harness.picture(page, 'workspace-lost');
    line.mend();
    await page.locator('.terminal-state', { hasText: 'Live' }).waitFor();
    line.cut();
    await page.locator('.terminal-state', { hasText: 'Reconnecting' }).waitFor();
    rmSync(harness.pause);
    line.mend();
    await page.locator('.terminal-state', { hasText: 'Ended' }).waitFor({ timeout: 180_000 });
    const seen = await numbers(page);
    assert.deepEqual(seen, Array.from({ length: 120 }, (_, index) => index), 'every line once and in order');
    const decision = page.locator('section[aria-label="Pending decision"]');
    await decision.getByRole('link', { name: 'See the whole request' }).waitFor();
    await page.keyboard.press('a');
    await page.getByRole('heading', { name: 'Approve this?' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog[open]').waitFor({ state: 'detached' });
    await harness.picture(page, 'workspace');
    await until('all of it is in the download', async () => {
      const answer = await fetch(`${harness.url}/api/v1/runs/${run}/steps/work/output?format=text`, { headers: { authorization: `Bearer ${harness.key}` } });
      return (await answer.text()).includes('tick 119');
    });
    await done(page);
    const phone = await harness.signIn('ada', `/workspace/${run}`, { viewport: { width: 390, height: 844 } });
    await phone.locator('.terminal').waitFor();
    await harness.picture(phone, 'workspace-phone');
    await done(phone);
    await line.close();
    await harness.flag(false);
  });
}
