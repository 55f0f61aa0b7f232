import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { binary, done, pressPair, until } from './harness.mjs';

export function workerTests(get) {
  test('the fleet is shown, and a queue that nobody serves comes with the command that does', async () => {
    const harness = get();
    await harness.call('/workflows', { source: 'name: render\nsteps:\n  - { id: frame, task: render.frame, queue: gpu }\n' });
    const run = await harness.begin('render', {});
    const page = await harness.signIn('vera', '/runs');
    await pressPair(page, 'g', 'k');
    await page.waitForURL('**/workers');
    const queue = page.getByRole('row', { name: /gpu/ });
    await queue.getByText('no worker').waitFor();
    await page.getByText('interlock worker --queue gpu --task render.frame=PROGRAM').waitFor();
    await page.getByText('Which runs wait, and why').click();
    await page.locator('.unassigned li', { hasText: 'no registered worker of the queue “gpu” has that task' }).getByRole('link', { name: 'render' }).click();
    await page.waitForURL(`**/runs/${run}`);
    await page.getByRole('link', { name: 'See the workers and queues' }).click();
    await page.waitForURL('**/workers');
    await page.getByRole('link', { name: 'console-tests' }).click();
    await page.waitForURL(/\/workers\/ses_/);
    await page.locator('.pane .words', { hasText: 'db.restart' }).waitFor();
    await page.locator('.pane', { hasText: 'Last heard' }).waitFor();
    await harness.call(`/runs/${run}/cancel`, { reason: 'seen' });
    await page.getByText('interlock worker --queue gpu').waitFor({ state: 'detached' });
    await done(page);
  });

  test('an operator drains a worker and forgets it; a viewer is offered neither', async () => {
    const harness = get();
    const child = harness.run(binary(), [
      'worker', '--server', harness.address, '--data', join(harness.folder, 'data'), '--name', 'leaving', '--queue', 'spare', '--task', 'say.hello=/bin/true',
    ]);
    const ended = new Promise((done) => child.once('exit', done));
    const of = async () => (await harness.call('/workers?all=true')).workers.find((worker) => worker.worker === 'leaving');
    const { session_id } = await until('the worker is there', of);
    const viewer = await harness.signIn('vera', `/workers/${session_id}`);
    await viewer.locator('.pane .facts').waitFor();
    assert.equal(await viewer.getByRole('button', { name: 'Drain …' }).count(), 0);
    await done(viewer);
    const page = await harness.signIn('otto', `/workers/${session_id}`);
    await page.getByRole('button', { name: 'Drain …' }).click();
    await page.getByText('It has no step now, and is given none any more.').waitFor();
    await page.getByRole('button', { name: 'Drain', exact: true }).click();
    await ended;
    await page.getByRole('button', { name: 'Forget …' }).click();
    await page.getByText('What it did stays in the runs').waitFor();
    await page.getByRole('button', { name: 'Forget', exact: true }).click();
    await page.waitForURL('**/workers?gone=too');
    await until('it is forgotten', async () => (await of()) === undefined);
    await page.getByRole('link', { name: 'leaving' }).waitFor({ state: 'detached' });
    await done(page);
  });

  test('the fleet is shown by environment and network segment, with the sandbox that was proven', async () => {
    const harness = get();
    const page = await harness.signIn('vera', '/runs');
    const now = Date.now();
    const made = (worker, terms, capabilities) => ({
      session_id: `ses_${worker.padEnd(32, '0')}`, worker, state: 'online', silent: false, last_heartbeat_at: now, lease_expires_at: now + 20_000, registered_at: now,
      queues: ['default'], tasks: [], capabilities, slots: 4, running: 1, shared: false, terms,
    });
    const workers = [
      made('a1', { environments: ['prod'], segments: ['vpc-a'], profiles: ['prod-critical', 'prod-standard'] }, ['command:prod-critical', 'effects']),
      made('b2', { environments: ['staging'], segments: [], profiles: [] }, ['effects']),
    ];
    await page.route('**/api/v1/workers?*', (route) => route.fulfill({ json: { workers } }));
    await page.route('**/api/v1/workers/ses_*', (route) => route.fulfill({ json: { ...workers[0], holds: [] } }));
    await pressPair(page, 'g', 'k');
    await page.getByRole('button', { name: /environment prod.*1 worker, 1 of 4 slots/ }).click();
    await page.getByRole('link', { name: 'b2' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'a1' }).click();
    await page.waitForURL(/\/workers\/ses_a1.*at=environment/);
    const sandbox = page.locator('.pane .facts');
    await sandbox.getByText('every control proven for').waitFor();
    assert.match(await sandbox.innerText(), /allowed, not proven\s+prod-standard/);
    await page.getByRole('button', { name: /environment prod/ }).click();
    await harness.picture(page, 'workers-places-light-1280');
    await done(page);
  });

  test('an empty fleet teaches how to start a worker', async () => {
    const page = await get().signIn('vera', '/runs');
    await page.route('**/api/v1/workers?*', (route) => route.fulfill({ json: { workers: [] } }));
    await page.getByRole('navigation', { name: 'Rooms', exact: true }).getByRole('link', { name: 'Workers' }).click();
    await page.getByRole('heading', { name: 'No worker is connected' }).waitFor();
    await page.getByText('interlock worker --task NAME=PROGRAM').waitFor();
    await done(page);
  });
}
