import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, pressPair, pressStart, until } from './harness.mjs';

export function runTests(get) {
  test('a run is started from a form, after a look at its plan, and watched live', async () => {
    const page = await get().signIn('otto', '/workflows/hello');
    await pressStart(page);
    await page.getByLabel('name', { exact: true }).fill('World');
    await page.getByRole('button', { name: 'What would happen?' }).click();
    await page.getByText('Nothing has started yet').waitFor();
    await page.getByRole('button', { name: 'Start the run' }).click();
    await page.waitForURL(/\/runs\/run_/);
    await page.locator('.run-title .state', { hasText: 'succeeded' }).waitFor();
    await page.locator('.timeline .segment.worked').first().waitFor();
    await page.locator('.timeline .step-row', { hasText: 'greet' }).click();
    const given = page.locator('.step-pane section', { has: page.getByRole('heading', { name: 'Input' }) });
    await given.getByText('"World"').waitFor();
    await page.getByRole('tab', { name: 'Inputs and output' }).click();
    await page.getByRole('tabpanel').getByText('"Greeted World"').waitFor();
    await done(page);
  });

  test('a form that does not fit is refused in words', async () => {
    const page = await get().signIn('otto', '/workflows/restart-database');
    await pressStart(page);
    await page.getByLabel('incident', { exact: true }).fill('not a number');
    await page.getByRole('button', { name: 'Start the run' }).click();
    await page.locator('.problem', { hasText: 'does not match the pattern' }).waitFor();
    await done(page);
  });

  test('new runs do not move the list under the keyboard, and the filters stand in the address', async () => {
    const harness = get();
    await harness.begin('wait-for-parcel', { parcel: 'p-1' });
    const page = await harness.signIn('vera', '/runs?workflow=wait-for-parcel');
    await page.locator('tbody tr').first().waitFor();
    await page.keyboard.press('j');
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'p-1');
    await harness.begin('wait-for-parcel', { parcel: 'p-2' });
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal(await page.locator('tbody tr').count(), 1);
    await page.getByRole('button', { name: '1 new' }).click();
    await until('both are shown', async () => (await page.locator('tbody tr').count()) === 2);
    await page.keyboard.press('/');
    await page.keyboard.type('p-1');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/runs?workflow=wait-for-parcel&text=p-1');
    await until('one is shown', async () => (await page.locator('tbody tr').count()) === 1);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/runs\/run_/);
    await page.locator('.run-title .state').waitFor();
    assert.equal(await page.locator('.why-actions button').count(), 0, 'a viewer is offered nothing');
    await done(page);
  });

  test('the strip counts what has not ended, and leads to it', async () => {
    const harness = get();
    await harness.begin('wait-for-parcel', { parcel: 'p-9' });
    const page = await harness.signIn('vera', '/runs');
    await page.locator('.strip').getByRole('link', { name: /waiting for signal/ }).click();
    await page.waitForURL('**/runs?state=waiting_signal');
    await page.getByRole('button', { name: 'Save this view' }).click();
    await page.getByLabel('Name', { exact: true }).fill('parcels');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.goto('/runs');
    await page.getByRole('link', { name: 'parcels' }).click();
    await page.waitForURL('**/runs?state=waiting_signal');
    await done(page);
  });

  test('a lost connection comes back without a gap', async () => {
    const harness = get();
    const page = await harness.visitor();
    const opened = [];
    await page.routeWebSocket(/\/ws\/feed/, (socket) => {
      opened.push(socket.url());
      socket.connectToServer();
      if (opened.length === 1) page.lose = () => socket.close({ code: 1012 });
    });
    await harness.begin('wait-for-parcel', { parcel: 'p-22' });
    await page.goto('/login?next=/runs%3Fworkflow%3Dwait-for-parcel');
    await page.fill('#name', 'vera');
    await page.fill('#password', 'correct horse battery');
    await page.click('button[type=submit]');
    await page.waitForSelector('.connection.live');
    await page.locator('tbody tr').first().waitFor();
    const before = await page.locator('tbody tr').count();
    await harness.begin('wait-for-parcel', { parcel: 'p-3' });
    await until('the list grows', async () => (await page.locator('tbody tr').count()) === before + 1);
    await page.lose();
    await harness.begin('wait-for-parcel', { parcel: 'p-4' });
    await until('what happened meanwhile is shown', async () => (await page.locator('tbody tr').count()) === before + 2);
    assert.match(opened.at(-1), /last_event_id=\d+/, 'it goes on where it was');
    await done(page);
  });

  test('many runs are canceled at once, after a count and a confirmation', async () => {
    const harness = get();
    await harness.reaches(await harness.begin('wait-for-parcel', { parcel: 'p-5' }), 'waiting_signal');
    await harness.reaches(await harness.begin('wait-for-parcel', { parcel: 'p-6' }), 'waiting_signal');
    const before = (await harness.call('/runs?workflow=wait-for-parcel&state=waiting_signal')).runs.length;
    const page = await harness.signIn('otto', '/runs?workflow=wait-for-parcel&state=waiting_signal');
    await page.getByRole('button', { name: 'Act on all matching' }).click();
    await page.getByLabel('Reason').fill('the parcels are lost');
    await harness.picture(page, 'bulk');
    await page.getByRole('button', { name: `Cancel ${before} runs` }).click();
    await page.getByText(`${before} of ${before} runs, ${before} as asked`).waitFor();
    const address = page.url();
    assert.match(address, /job=job_/, 'it has an address');
    await page.getByRole('button', { name: 'Close' }).last().click();
    await page.getByText('No run matches').waitFor();
    await page.getByRole('button', { name: 'Jobs', exact: true }).click();
    await page.locator('.jobs li', { hasText: 'the parcels are lost' }).getByRole('button', { name: `Canceled ${before} runs` }).click();
    await page.getByText(`${before} of ${before} runs`).waitFor();
    assert.equal(page.url(), address);
    await done(page);
  });

  test('what others wrote is shown and does nothing', async () => {
    const harness = get();
    const title = 'safe\u202egnp.exe <img src=x onerror=alert(1)>';
    const run = await harness.begin('publish-page', { title });
    const page = await harness.signIn('vera', `/runs/${run}`);
    await page.locator('.hidden-character', { hasText: '\\u{202e}' }).first().waitFor();
    assert.equal(await page.locator('main img').count(), 0);
    await page.locator('.why', { hasText: '<img src=x onerror=alert(1)>' }).waitFor();
    await done(page);
  });

  test('a run is started like another one, with a label of its own', async () => {
    const harness = get();
    const before = await harness.begin('restart-database', { incident: 'INC4711', host: 'db-3' });
    await harness.reaches(before, 'waiting_approval');
    await harness.call(`/runs/${before}/cancel`, { reason: 'again later' });
    const page = await harness.signIn('otto', `/runs/${before}`);
    await page.getByRole('link', { name: 'Start another like it …' }).click();
    for (const [label, value] of [['incident', 'INC4711'], ['host (optional)', 'db-3']]) {
      await until(`${label} is filled in`, async () => (await page.getByLabel(label, { exact: true }).inputValue()) === value);
    }
    await page.getByText('Subject, labels, priority').click();
    await page.getByLabel('Labels (optional)').fill('shift:night');
    await page.getByRole('button', { name: 'Start the run' }).click();
    await page.waitForURL(/\/runs\/run_/);
    const made = await harness.call(`/runs/${page.url().split('/').at(-1)}`);
    assert.deepEqual([made.inputs.host, made.labels.shift], ['db-3', 'night']);
    await harness.call(`/runs/${made.run_id}/cancel`, { reason: 'seen' });
    await done(page);
  });

  test('a step says which worker had it, and two versions of a workflow are compared', async () => {
    const harness = get();
    const run = await harness.begin('hello', { name: 'Worker' });
    await harness.reaches(run, 'succeeded');
    const page = await harness.signIn('vera', `/runs/${run}?step=0`);
    await page.locator('.step-pane').getByRole('link', { name: 'console-tests' }).click();
    await page.waitForURL(/\/workers\/ses_/);
    for (const text of ['one', 'two', 'three']) await harness.call('/workflows', { source: `name: changed\nsteps:\n  - id: say\n    transform: { text: ${text} }\n` });
    await page.goto('/workflows/changed?tab=versions');
    await page.locator('.source-line.gone', { hasText: 'two' }).waitFor();
    await page.getByLabel('Version 3, compared with').selectOption('1');
    await page.locator('.source-line.gone', { hasText: 'one' }).waitFor();
    await page.locator('.source-line.new', { hasText: 'three' }).waitFor();
    assert.match(page.url(), /with=1/);
    await done(page);
  });

  test('the steps of a runbook stand under its phases', async () => {
    const harness = get();
    const steps = ['prechecks', 'main', 'main', 'postchecks'].map((phase, index) => `  - { id: s${index}, phase: ${phase}, transform: { n: ${index} } }`);
    await harness.call('/workflows', { source: `name: runbook\nsteps:\n${steps.join('\n')}\n` });
    const page = await harness.signIn('vera', `/runs/${await harness.begin('runbook', {})}`);
    await page.locator('.timeline .phase').first().waitFor();
    assert.deepEqual(await page.locator('.timeline .phase').allInnerTexts(), ['Checks before', 'Main part', 'Checks after']);
    await done(page);
  });

  test('charts count what ended and failed of what the filter matches, and stay hidden where somebody hid them', async () => {
    const harness = get();
    await harness.reaches(await harness.begin('hello', { name: 'Charts' }), 'succeeded');
    const { runs } = await harness.call('/runs?workflow=hello&limit=500');
    const over = runs.filter((run) => run.finished_at !== undefined).length;
    const page = await harness.signIn('vera', '/runs?workflow=hello&state=running');
    await page.getByRole('img', { name: new RegExp(`^Ended: ${over}, ${runs.length} started`) }).waitFor();
    await page.getByRole('img', { name: /^Failed: 0, 0 % of what ended/ }).waitFor();
    await page.getByRole('img', { name: /^Under way or waiting: / }).waitFor();
    // A part of a text is counted by the page itself.
    await page.goto(`/runs?text=${runs[0].run_id.slice(-12)}`);
    await page.getByRole('img', { name: /^Ended: 1, 1 started/ }).waitFor();
    const asks = await harness.begin('publish-page', { title: 'Charts' });
    await harness.reaches(asks, 'waiting_approval');
    const { approvals } = await harness.call('/approvals?state=requested&workflow=publish-page&limit=500');
    await page.goto('/runs?workflow=publish-page');
    await page.getByRole('img', { name: new RegExp(`^Under way or waiting: \\d+, ${approvals.length} for a person`) }).waitFor();
    await harness.call(`/runs/${asks}/cancel`, { reason: 'seen' });
    await page.keyboard.press('h');
    await page.locator('.charts').waitFor({ state: 'detached' });
    await page.reload();
    await page.getByRole('button', { name: 'Show charts' }).click();
    await page.locator('.chart').first().waitFor();
    await done(page);
  });

  test('a view is saved, opened by its key, shared by its address, and forgotten', async () => {
    const harness = get();
    await harness.reaches(await harness.begin('hello', { name: 'View' }), 'succeeded');
    const page = await harness.signIn('vera', '/runs?workflow=hello&state=succeeded');
    await page.locator('tbody tr').first().waitFor();
    await page.keyboard.press('v');
    await page.getByLabel('Name', { exact: true }).fill('Greeted');
    await page.keyboard.press('Enter');
    const views = page.getByRole('navigation', { name: 'Saved views' });
    await views.getByRole('link', { name: 'Greeted' }).and(page.locator('[aria-current=true]')).waitFor();
    await page.goto('/runs');
    await views.getByRole('link', { name: 'Greeted' }).waitFor();
    await page.keyboard.press('1');
    await page.waitForURL('**/runs?state=succeeded&workflow=hello');
    await page.keyboard.press('?');
    assert.match(await page.locator('dialog[open]').innerText(), /View “Greeted”/);
    await page.keyboard.press('Escape');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await views.getByRole('button', { name: 'Views …' }).click();
    await page.getByRole('button', { name: 'Copy a link to “Greeted”' }).click();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    await page.getByRole('button', { name: 'Forget the view Greeted' }).click();
    await page.getByText('There are none any more.').waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await views.getByRole('link').count(), 0);
    await done(page);

    const other = await harness.signIn('otto', new URL(link).pathname + new URL(link).search);
    await other.getByRole('button', { name: /^Save the view “Greeted” …/ }).click();
    assert.equal(await other.getByLabel('Name', { exact: true }).inputValue(), 'Greeted');
    await other.getByRole('button', { name: 'Save', exact: true }).click();
    await other.getByRole('navigation', { name: 'Saved views' }).getByRole('link', { name: 'Greeted' }).waitFor();
    await done(other);
  });

  test('a hundred thousand runs are fifty rows, and a bounded number of questions', async () => {
    const page = await get().signIn('vera', '/workflows');
    const total = 100_000;
    const now = Date.now();
    const asked = [];
    await page.route('**/api/v1/runs?*', (route) => {
      const query = new URL(route.request().url()).searchParams;
      const limit = Number(query.get('limit'));
      const from = query.has('after') ? Number(query.get('after').slice(-8)) : 0;
      asked.push(limit);
      const runs = Array.from({ length: Math.min(limit, total - from) }, (_, index) => {
        const created_at = now - (from + index) * 500;
        return {
          run_id: `run_${String(from + index + 1).padStart(32, '0')}`, workflow: 'hello', workflow_version: 1, workspace: 'default', state: 'succeeded',
          position: 0, subject: `s-${from + index}`, trigger: { type: 'api' }, priority: 0, resume_count: 0, created_at, finished_at: created_at + 90, inputs: {},
        };
      });
      return route.fulfill({ json: { runs, next_after: from + runs.length < total ? runs.at(-1).run_id : null } });
    });
    await pressPair(page, 'g', 'r');
    await page.getByRole('link', { name: 's-0', exact: true }).waitFor();
    await page.locator('.chart').first().waitFor();
    assert.equal(await page.locator('tbody tr').count(), 50);
    assert.ok(asked.every((limit) => limit <= 50) && asked.length <= 3, `it asked for ${asked.join(', ')} runs`);
    const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
    assert.ok(nodes < 3_000, `the page has ${nodes} nodes`);
    for (const first of ['s-50', 's-100']) {
      await page.getByRole('button', { name: 'Older' }).click();
      await page.getByRole('link', { name: first, exact: true }).waitFor();
      assert.equal(await page.locator('tbody tr').count(), 50);
    }
    assert.ok(await page.evaluate(() => document.querySelectorAll('*').length) <= nodes + 10, 'paging leaves nothing behind');
    await done(page);
  });
}
