/** Every room, light and dark, wide and narrow: axe finds nothing, nothing sticks out, and a picture is kept. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findings } from './axe.mjs';
import { everyRoom } from './every-room.mjs';
import { done, pressPair, pressStart } from './harness.mjs';
import { timesWithoutUtc } from './times.mjs';

const LOOKS = [
  ['light', 1280, 860],
  ['dark', 1280, 860],
  ['light', 390, 844],
];

/** A page that is enlarged four times, a tablet, and both sides of where the navigation changes its place. */
const OTHER_WIDTHS = [320, 768, 960, 980];

const sticksOut = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Goes to a room as a link does, without loading the page again. */
async function visit(page, path) {
  await page.evaluate((to) => {
    history.pushState(null, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
  }, path);
}

const VIEWS = [{ name: 'Waits for me', query: 'state=waiting_approval' }, { name: 'Failed today', query: 'since=1d&state=failed' }];

/** In the page: saved views, as the room of the runs keeps them. */
async function keepViews(views) {
  const { tenant, person } = await (await fetch('/api/v1/me')).json();
  localStorage.setItem(`interlock.views.${tenant}.${person}`, JSON.stringify(views));
}

/** Rooms that are put together from several answers. */
const SETTLING = [
  'runs', 'run-waiting', 'workspace', 'approvals', 'approval', 'workflow', 'schedules', 'workers', 'worker', 'policy', 'audit', 'webhooks', 'settings-tenant',
];

export function roomTests(get) {
  test('every room is accessible in light and dark, wide and narrow', async () => {
    const harness = get();
    const rooms = await everyRoom(harness);
    const found = [];
    for (const [scheme, width, height] of LOOKS) {
      // axe measures with scripts of its own, which the page's policy would refuse.
      const page = await harness.signIn('ada', '/workflows', { colorScheme: scheme, viewport: { width, height }, bypassCSP: true });
      await page.evaluate(keepViews, VIEWS);
      for (const [name, path, landmark] of rooms) {
        await visit(page, path);
        await page.locator(landmark).first().waitFor().catch(async (error) => {
          await harness.picture(page, `failed-${name}`);
          throw error;
        });
        await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
        const look = `${name}-${scheme}-${width}`;
        for (const finding of await findings(page)) found.push(`${look}: ${finding}`);
        const wide = await sticksOut(page);
        if (wide > 0) found.push(`${look}: sticks out by ${wide} px`);
        await harness.picture(page, look);
        if (look === `${name}-light-1280`) {
          for (const time of await timesWithoutUtc(page)) found.push(`${look}: ${time} does not say its UTC`);
          for (const narrower of OTHER_WIDTHS) {
            await page.setViewportSize({ width: narrower, height });
            const out = await sticksOut(page);
            if (out > 0) found.push(`${name}: sticks out by ${out} px at a width of ${narrower} px`);
          }
          await page.setViewportSize({ width, height });
        }
      }
      await done(page);
    }
    await harness.flag(false);
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
        ['start', '/workflows/hello', () => pressStart(ada)],
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

  test('rooms do not jump while they load, on a desk and on a phone', async () => {
    const harness = get();
    const rooms = (await everyRoom(harness)).filter(([name]) => SETTLING.includes(name));
    const moved = [];
    for (const [width, height] of [[1280, 860], [390, 844]]) {
      const page = await harness.signIn('ada', '/workflows', { viewport: { width, height } });
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
      for (const [name, path, landmark] of rooms) {
        await page.goto(path);
        await page.locator(landmark).first().waitFor();
        await page.locator('main [aria-busy=true]').first().waitFor({ state: 'detached' });
        await page.waitForLoadState('networkidle');
        const sum = (await page.evaluate(() => globalThis.shifts)).reduce((sum, value) => sum + value, 0);
        if (sum >= 0.05) moved.push(`${name} at ${width} px moved by ${sum.toFixed(3)}`);
      }
      await done(page);
    }
    await harness.flag(false);
    assert.deepEqual(moved, []);
  });

  test('what does not exist is told in words, with a way on', async () => {
    const page = await get().signIn('ada', '/runs');
    await get().flag(true);
    await page.reload();
    const none = '0'.repeat(32);
    const absent = [
      [`/runs/run_${none}`, 'There is no such run', 'See all runs'],
      [`/workspace/run_${none}`, 'There is no such run', 'See all runs'],
      ['/workflows/none', 'There is no such workflow', 'See all workflows'],
      [`/workers/ses_${none}`, 'There is no such worker', 'See all workers'],
      [`/webhooks/whi_${none}`, 'There is no endpoint or address', 'See all of them'],
      ['/settings/none', 'There is no such page', 'See your own settings'],
      ['/runs/none/none', 'There is no such page', 'See all runs'],
    ];
    for (const [path, words, way] of absent) {
      await visit(page, path);
      await page.locator('.empty, .problem', { hasText: words }).getByRole('link', { name: way }).waitFor();
    }
    for (const path of [`/approvals/apr_${none}`, '/schedules/none', '/policy?version=77']) {
      await visit(page, path);
      await page.locator('.problem', { hasText: 'It may have been deleted, or belong to another tenant.' }).waitFor();
    }
    await get().flag(false);
    await done(page);
  });

  test('a mistake in one room leaves the others', async () => {
    const page = await get().signIn('vera', '/runs');
    await page.route('**/api/v1/schedules?*', (route) => route.fulfill({ json: { schedules: 7 } }));
    await pressPair(page, 'g', 's');
    await page.getByRole('heading', { name: 'This page has a mistake' }).waitFor();
    await pressPair(page, 'g', 'w');
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
