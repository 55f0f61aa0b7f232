import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { done, pressPair, until } from './harness.mjs';

export function auditTests(get) {
  test('the log is searched, its head is signed, and what concerns people is for admins', async () => {
    const harness = get();
    const run = await harness.begin('hello', { name: 'Audit' });
    await harness.reaches(run, 'succeeded');
    await until('the run’s end is in the log', async () => (await harness.call(`/audit?run=${run}&type=session.completed&order=newest`)).entries.length === 1);
    const page = await harness.signIn('vera', '/runs');
    await pressPair(page, 'g', 'u');
    await page.waitForURL('**/audit');
    await page.locator('.signed-head .state.good', { hasText: 'good' }).waitFor();
    await page.getByLabel('Run id').fill(run);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/audit?run=${run}`);
    const ended = page.getByRole('row', { name: /session\.completed/ });
    await until('only this run is shown', async () => (await ended.count()) === 1);
    await ended.getByText('Show', { exact: true }).click();
    await ended.locator('.json', { hasText: 'session.completed' }).waitFor();
    await page.getByRole('cell', { name: 'run_' }).first().getByRole('link').click();
    await page.waitForURL(`**/runs/${run}`);
    await page.goto('/audit?type=login');
    await page.getByRole('row', { name: /login\.succeeded/ }).first().getByText('hash only').waitFor();
    await done(page);
    const ada = await harness.signIn('ada', '/audit?type=login&actor=vera');
    await ada.getByRole('row', { name: /login\.succeeded.*vera/ }).first().waitFor();
    assert.equal(await ada.getByRole('row', { name: /login\.succeeded.*\bada\b/ }).count(), 0);
    await done(ada);
  });

  test('an ended run gives its evidence, signed, as a file and as a page', async () => {
    const harness = get();
    const run = await harness.begin('hello', { name: 'Evidence' });
    await harness.reaches(run, 'succeeded');
    const page = await harness.signIn('vera', `/runs/${run}`);
    await page.getByRole('tab', { name: 'Evidence' }).click();
    await page.locator('.evidence .state.good').waitFor();
    await page.locator('.evidence', { hasText: '2 steps' }).waitFor();
    assert.equal(await page.locator('.evidence .tag.bad').count(), 0, 'the hash is that of what came');
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download the bundle' }).click()]);
    assert.equal(file.suggestedFilename(), `${run}.dsse.json`);
    assert.equal(JSON.parse(readFileSync(await file.path(), 'utf8')).payloadType, 'application/vnd.in-toto+json');
    const [shown] = await Promise.all([page.waitForEvent('popup'), page.getByRole('link', { name: 'Open it as a page' }).click()]);
    await shown.getByText(run).first().waitFor();
    await done(page);
    const waiting = await harness.begin('wait-for-parcel', { parcel: 'p-evidence' });
    const other = await harness.signIn('vera', `/runs/${waiting}`);
    await other.getByRole('tab', { name: 'About' }).waitFor();
    assert.equal(await other.getByRole('tab', { name: 'Evidence' }).count(), 0, 'a run that goes on has none');
    await done(other);
  });

  test('the log is verified in the browser, and one that was tampered with is found out', async () => {
    const harness = get();
    const page = await harness.signIn('vera', '/audit');
    await page.getByRole('button', { name: 'Verify the log' }).click();
    await page.locator('.verify .state.good', { hasText: /whole: [\d,]+ entries/ }).waitFor();
    await harness.picture(page, 'audit-verified');
    await page.route('**/api/v1/audit?*order=oldest*', async (route) => {
      const answer = await route.fetch();
      const said = await answer.json();
      if (said.entries[3]?.entry.index === 3) said.entries[3].entry.initiator = 'nobody';
      await route.fulfill({ response: answer, json: said });
    });
    await page.getByRole('button', { name: 'Verify the log' }).click();
    await page.locator('.verify .state.bad', { hasText: 'first bad entry 4' }).waitFor();
    await done(page);
  });
}
