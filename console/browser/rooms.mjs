/** Every room, light and dark, wide and narrow: axe finds nothing, nothing sticks out, and a picture is kept. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findings } from './axe.mjs';
import { done, until } from './harness.mjs';
import { decidedRun } from './policy.mjs';

const LOOKS = [
  ['light', 1280, 860],
  ['dark', 1280, 860],
  ['light', 390, 844],
];

/** Goes to a room as a link does, without loading the page again. */
async function visit(page, path) {
  await page.evaluate((to) => {
    history.pushState(null, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
  }, path);
}

export function roomTests(get) {
  test('every room is accessible in light and dark, wide and narrow', async () => {
    const harness = get();
    const waiting = await harness.begin('restart-database', { incident: 'INC3001', host: 'db-2' });
    await harness.reaches(waiting, 'waiting_approval');
    const over = (await harness.call('/runs?workflow=restart-database&state=succeeded')).runs[0].run_id;
    const approval = (await harness.call(`/approvals?run=${waiting}`)).approvals[0].approval;
    const { endpoint_id: told } = await harness.call('/webhook-endpoints', { url: 'https://hooks.example.org/interlock', description: 'The team’s room' });
    await harness.call('/webhooks', { name: 'github', source: 'github' });
    const proven = await harness.begin('hello', { name: 'Evidence' });
    await until('the evidence is there', () => harness.call(`/runs/${proven}/evidence`).then(() => true, () => false));
    for (const text of ['one', 'two']) await harness.call('/workflows', { source: `name: compared\nsteps:\n  - id: say\n    transform: { text: ${text} }\n` });
    const decided = await decidedRun(harness);
    const worker = (await harness.call('/workers')).workers.find((each) => each.worker === 'console-tests').session_id;
    const rooms = [
      ['runs', '/runs', 'table'],
      ['runs-none', '/runs?subject=nothing', '.empty'],
      ['run-waiting', `/runs/${waiting}`, '.timeline'],
      ['run-over', `/runs/${over}?step=3`, '.timeline .segment'],
      ['approvals', '/approvals', '.inbox-list'],
      ['approval', `/approvals/${approval}`, '.inbox-card h3'],
      ['workflows', '/workflows', 'table'],
      ['workflow', '/workflows/restart-database', '.step-list'],
      ['workflow-source', '/workflows/restart-database?tab=source', '.source'],
      ['workflow-versions', '/workflows/compared?tab=versions', '.versions .source'],
      ['schedules', '/schedules/nightly', '.slots'],
      ['workers', '/workers', '.workers'],
      ['worker', `/workers/${worker}`, '.pane .facts'],
      ['policy', '/policy', '.source'],
      ['policy-versions', '/policy?tab=versions', 'table'],
      ['policy-playground', `/policy?tab=playground`, '.playground'],
      ['policy-replay', '/policy?tab=replay', '.bar-of-fields'],
      ['run-decided', `/runs/${decided}`, '.decisions'],
      ['audit', '/audit', '.audit'],
      ['run-evidence', `/runs/${proven}?tab=evidence`, '.evidence'],
      ['webhooks', '/webhooks', 'table'],
      ['webhook', `/webhooks/${told}`, '.pane'],
      ['settings', '/settings', '.facts'],
      ['settings-people', '/settings/people', 'table'],
      ['settings-groups', '/settings/groups', 'table'],
      ['settings-keys', '/settings/keys', 'table'],
      ['settings-tenant', '/settings/tenant', '.facts'],
      ['settings-delegations', '/settings/delegations', '.empty'],
      ['settings-changes', '/settings/changes', '.empty'],
    ];
    const found = [];
    for (const [scheme, width, height] of LOOKS) {
      // axe measures with scripts of its own, which the page's policy would refuse.
      const page = await harness.signIn('ada', '/runs', { colorScheme: scheme, viewport: { width, height }, bypassCSP: true });
      for (const [name, path, landmark] of rooms) {
        await visit(page, path);
        await page.locator(landmark).first().waitFor().catch(async (error) => {
          await harness.picture(page, `failed-${name}`);
          throw error;
        });
        await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
        const look = `${name}-${scheme}-${width}`;
        for (const finding of await findings(page)) found.push(`${look}: ${finding}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) found.push(`${look}: sticks out by ${wide} px`);
        await harness.picture(page, look);
      }
      await done(page);
    }
    assert.deepEqual(found, []);
  });

  test('dialogs and the sign-in page are accessible', async () => {
    const harness = get();
    const found = [];
    await harness.reaches(await harness.begin('publish-page', { title: 'A dialog' }), 'waiting_approval');
    for (const colorScheme of ['light', 'dark']) {
      const page = await harness.visitor({ colorScheme, bypassCSP: true });
      await page.goto('/login');
      for (const finding of await findings(page)) found.push(`sign-in: ${finding}`);
      await harness.picture(page, `sign-in-${colorScheme}-1280`);
      await done(page);
      const ada = await harness.signIn('ada', '/workflows/hello', { colorScheme, bypassCSP: true });
      const press = (key) => () => ada.keyboard.press(key);
      const click = (name) => () => ada.getByRole('button', { name, exact: true }).click();
      const dialogs = [
        ['keys', '/workflows/hello', press('?')],
        ['start', '/workflows/hello', press('s')],
        ['tenant-switch', '/workflows/hello', click('Go to another tenant')],
        ['bulk', '/runs?workflow=hello', click('Act on all matching …')],
        ['jobs', '/runs?workflow=hello', click('Jobs')],
        ['decide', '/approvals', click('Approve …')],
        ['delegate', '/approvals', click('Delegate …')],
        ['new-schedule', '/schedules', click('New schedule …')],
        ['new-person', '/settings/people', click('New person …')],
        ['new-key', '/settings/keys', click('New key …')],
      ];
      for (const [name, path, open] of dialogs) {
        await visit(ada, path);
        await ada.locator('main [aria-busy=true]').first().waitFor({ state: 'detached' });
        await open();
        await ada.locator('dialog[open] :is(form, .key-groups, .jobs, p)').first().waitFor();
        for (const finding of await findings(ada)) found.push(`${name}: ${finding}`);
        await harness.picture(ada, `${name}-${colorScheme}-1280`);
        await ada.keyboard.press('Escape');
        await ada.locator('dialog[open]').waitFor({ state: 'detached' });
      }
      await done(ada);
    }
    assert.deepEqual(found, []);
  });

  test('the help names every room, keys walk through lists, and a phone has all rooms behind “More”', async () => {
    const harness = get();
    const page = await harness.signIn('vera', '/workers');
    await page.locator('.workers .row-link').first().waitFor();
    await page.keyboard.press('j');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'row-link');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/workers\/ses_/);
    await page.keyboard.press('?');
    const help = await page.locator('dialog[open]').innerText();
    const rooms = ['runs', 'approvals', 'workflows', 'schedules', 'workers', 'policy', 'audit', 'webhooks', 'settings'];
    for (const room of rooms) assert.match(help, new RegExp(`Go to ${room}`));
    assert.match(help, /Next worker/);
    await done(page);
    const phone = await harness.signIn('vera', '/runs', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    for (const room of ['Workers', 'Policy', 'Audit']) {
      await phone.getByRole('button', { name: 'More' }).tap();
      await phone.locator('dialog[open]').getByRole('link', { name: room }).tap();
      await phone.getByRole('heading', { name: room, level: 1 }).waitFor();
    }
    await done(phone);
  });

  test('the console leads to another tenant, and to one that was visited before', async () => {
    const page = await get().signIn('vera', '/runs');
    await page.evaluate(() => localStorage.setItem('interlock.tenants', '["demo","acme"]'));
    await page.getByRole('button', { name: 'Go to another tenant' }).click();
    await page.getByRole('list', { name: 'Tenants' }).getByRole('button', { name: 'acme' }).click();
    await page.waitForURL('**/login?tenant=acme');
    assert.equal(await page.locator('input[name=tenant]').inputValue(), 'acme');
    await page.goto('/runs');
    await page.waitForURL(/\/login\?next=/);
    await done(page);
  });

  test('rooms do not jump while they load', async () => {
    const harness = get();
    const run = await harness.begin('restart-database', { incident: 'INC3333' });
    await harness.reaches(run, 'waiting_approval');
    const { approval } = (await harness.call(`/approvals?run=${run}`)).approvals[0];
    const page = await harness.signIn('ada', '/workflows');
    await page.addInitScript(() => {
      globalThis.shifts = [];
      const watch = (list) => globalThis.shifts.push(...list.getEntries().filter((shift) => !shift.hadRecentInput).map((shift) => shift.value));
      new PerformanceObserver(watch).observe({ type: 'layout-shift', buffered: true });
    });
    // Every answer comes late, and in another order than it was asked for.
    let asked = 0;
    await page.route('**/api/v1/**', async (route) => {
      await new Promise((go) => setTimeout(go, (asked++ * 70) % 300));
      await route.continue().catch(() => {});
    });
    for (const [path, landmark] of [['/runs', '.chart'], [`/runs/${run}`, '.timeline .segment'], [`/approvals/${approval}`, '.inbox-card h3'], ['/workflows/hello', '.step-list']]) {
      await page.goto(path);
      await page.locator(landmark).first().waitFor();
      await page.waitForLoadState('networkidle');
      const moved = (await page.evaluate(() => globalThis.shifts)).reduce((sum, value) => sum + value, 0);
      assert.ok(moved < 0.05, `${path} moved by ${moved.toFixed(3)}`);
    }
    await harness.call(`/runs/${run}/cancel`, { reason: 'seen' });
    await done(page);
  });

  test('a mistake in one room leaves the others', async () => {
    const page = await get().signIn('vera', '/runs');
    await page.route('**/api/v1/schedules?*', (route) => route.fulfill({ json: { schedules: 7 } }));
    await page.keyboard.press('g');
    await page.keyboard.press('s');
    await page.getByRole('heading', { name: 'This page has a mistake' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('w');
    await page.getByRole('link', { name: 'restart-database' }).waitFor();
    await page.context().close();
  });

  test('a workflow file is checked while it is written, and a finding leads to its place', async () => {
    const page = await get().signIn('otto', '/workflows/hello');
    await page.getByRole('button', { name: 'New version …' }).click();
    const file = page.getByLabel('The workflow file');
    await page.locator('dialog .good').waitFor();
    const source = await file.inputValue();
    await file.fill(source.replace('transform:', 'transfrm:'));
    const found = page.getByRole('list', { name: 'What was found in the file' });
    await found.getByText('transfrm').first().waitFor();
    const finding = found.getByRole('button', { name: /^Go to line/ }).first();
    await finding.click();
    const place = await file.evaluate((area) => {
      const before = area.value.slice(0, area.selectionStart).split('\n');
      return `${before.length}:${before.at(-1).length + 1}`;
    });
    assert.equal(place, await finding.innerText());
    await file.fill(source);
    await page.locator('dialog .good').waitFor();
    await done(page);
  });

  test('settings show groups with who can decide, and how much of each limit is used', async () => {
    const harness = get();
    const page = await harness.signIn('ada', '/settings/groups');
    await page.getByRole('row', { name: /sre.*ada.*3 can decide/ }).waitFor();
    await page.route('**/api/v1/tenants/*', async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), pending_runs_max: 9000 } });
    });
    await page.goto('/settings/tenant');
    await page.locator('.facts', { hasText: /\d+ of 9,000/ }).waitFor();
    await page.getByRole('meter', { name: 'Pending runs' }).waitFor();
    await page.getByRole('button', { name: 'Change …' }).click();
    await page.getByText('set by whoever manages the installation').waitFor();
    assert.equal(await page.locator('dialog input[type=number]').count(), 0, 'no limit is offered that the server would not take');
    await done(page);
  });

  test('an admin makes a key, which is shown once, and revokes it', async () => {
    const page = await get().signIn('ada', '/settings/keys');
    await page.getByRole('button', { name: 'New key …' }).click();
    await page.getByLabel('What it is for').fill('reports');
    await page.getByRole('button', { name: 'Make it' }).click();
    await page.locator('dialog .command pre', { hasText: /^ilk_/ }).waitFor();
    await page.getByRole('button', { name: 'I have it' }).click();
    const row = page.getByRole('row', { name: /reports/ });
    await row.getByRole('button', { name: 'Revoke …' }).click();
    await page.getByRole('button', { name: 'Revoke', exact: true }).click();
    await row.getByText('revoked').waitFor();
    await done(page);
  });
}
