/** Workers that are lost, or do nothing with what they have: a doubt is settled, and a run goes to another worker. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entry, isClosed, isGone, needsReason, offers, offersNothing, open, press, state, stepState, verb, worker } from './directing.mjs';
import { done, until } from './harness.mjs';

/** The lease of a worker that is lost (20 s) ends first. */
const LOST = 180_000;

const PAY = `name: pay-out
steps:
  - { id: pay, task: till.pay, effect: unsafe }
  - { id: note, transform: { paid: "\${{ steps.pay.output.paid }}" } }
`;
const SHARES = `name: shares
profile: dev-flex
steps:
  - { id: write, run: [/usr/bin/true], effect: read, workdir: run, on_failure: pause }
  - { id: read, run: [/usr/bin/true], effect: read, workdir: run, on_failure: pause }
`;

/** A worker whose commands share a directory, spoken for by the test: it does what it is told, when it is told. */
class Keeper {
  static async start(harness, name) {
    const keeper = new Keeper();
    const hello = { worker: name, queues: ['default'], slots: 2, capabilities: ['effects', 'workdir', 'command:dev-flex'] };
    const { session } = await harness.call('/agent/register', hello);
    Object.assign(keeper, { harness, session, keeps: [], held: [] });
    const beat = () => harness.call('/agent/heartbeat', { session, held: keeper.held, keeps: keeper.keeps }).catch(() => {});
    keeper.beats = setInterval(beat, 2_000).unref();
    return keeper;
  }

  /** Its heartbeats stop. */
  vanish() {
    clearInterval(this.beats);
  }

  /** Asks for work until there is some of this kind. */
  async polled(kind) {
    const ask = () => this.harness.call('/agent/poll', { session: this.session, max: 1, wait_ms: 1_000 });
    return until(`there is something in ${kind}`, async () => (await ask())[kind]?.[0]);
  }

  /** Takes the run that it is offered. */
  async take() {
    const { tenant, run, epoch, number } = await this.polled('offers');
    await this.harness.call(`/agent/${this.session}/assignments`, { tenant, run, epoch, number, answer: { status: 'acked' } });
    this.keeps = [{ tenant, run }];
  }

  /** Begins the step that it is given. */
  async begin() {
    const { tenant, run, epoch, position, attempt } = await this.polled('assignments');
    this.held = [{ tenant, run, position, attempt }];
    return { tenant, run, epoch, position, attempt };
  }

  async complete(step) {
    await this.harness.call(`/agent/${this.session}/complete-step`, { ...step, outcome: { status: 'completed', output: {} } });
    this.held = [];
  }
}

/** A run that a worker has taken, and another worker that could. None of them outlasts the test. */
async function taken(t, harness, name) {
  await harness.call('/workflows', { source: SHARES });
  const run = await harness.begin('shares', {});
  t.after(() => harness.call(`/runs/${run}/cancel`, { reason: 'the test is over' }).catch(() => {}));
  const workers = [];
  t.after(() => workers.forEach((each) => each.vanish()));
  for (const number of [1, 2]) workers.push(await Keeper.start(harness, `${name}-${number}`));
  await workers[0].take();
  return [run, ...workers];
}

/** The second worker takes the run and carries it out. */
async function carriedOut(page, other, name) {
  await other.take();
  await page.locator('.run-line', { hasText: 'assigned to' }).getByRole('link', { name }).waitFor();
  for (let count = 0; count < 2; count += 1) await other.complete(await other.begin());
  await state(page, 'succeeded');
  await entry(page, `assigned to “${name}”`, 'system');
  await isGone(page, 'Reassign');
}

export function lostTests(get) {
  test('a doubt is settled by whoever has looked; what cannot be known yet is refused, and not lost', async () => {
    const harness = get();
    await harness.call('/workflows', { source: PAY });
    // Its program ends with it: it asks whether its worker still lives.
    const till = worker(harness, 'till', { 'till.pay': 'while kill -0 $PPID; do sleep 0.2; done\n' });
    const run = await harness.begin('pay-out', {});
    const page = await harness.signIn('otto', `/runs/${run}`);
    await until('the effect is under way', async () => (await harness.call(`/runs/${run}/receipts`)).receipts.length > 0);
    till.kill('SIGKILL');
    await page.locator('.run-title .state', { hasText: 'paused' }).waitFor({ timeout: LOST });
    await stepState(page, 'pay', 'in doubt');
    await verb(page, 'Settle the doubt').waitFor();
    await offers(page, ['Settle the doubt', 'Cancel']);
    assert.equal(await page.getByRole('button', { name: 'Restart from here …' }).count(), 0);
    const dialog = await open(page, 'Settle the doubt');
    const outcome = dialog.getByLabel('What became of it');
    const reason = dialog.getByLabel('How do you know?');
    const output = dialog.getByLabel('Output as JSON');
    await press(dialog, 'Record it');
    assert.ok(await outcome.evaluate((field) => field.matches(':invalid')), 'nothing is chosen for whoever looked');
    await outcome.selectOption('did_not_happen');
    await reason.fill('the bank does not list it');
    await press(dialog, 'Record it');
    await dialog.locator('.problem').getByText('EFFECT_UNDER_WAY').waitFor();
    assert.deepEqual([await outcome.inputValue(), await reason.inputValue()], ['did_not_happen', 'the bank does not list it']);
    await offersNothing(harness, run);
    await outcome.selectOption('happened');
    await reason.fill('');
    await needsReason(page, dialog, 'Record it', 'How do you know?');
    await reason.fill('the bank lists it');
    await output.fill('{"paid": 12');
    await press(dialog, 'Record it');
    await dialog.locator('.problem', { hasText: 'is not JSON' }).waitFor();
    await output.fill('{"paid": 12}');
    await press(dialog, 'Record it');
    await state(page, 'succeeded');
    await stepState(page, 'pay', 'succeeded');
    await entry(page, 'done', 'otto · operator: the bank lists it');
    await entry(page, 'effect succeeded', 'otto · operator: the bank lists it');
    await page.getByRole('tab', { name: 'Inputs and output' }).click();
    await page.getByRole('tabpanel').getByText('12').waitFor();
    await isGone(page, 'Settle the doubt');
    await done(page);
  });

  test('a run whose worker does not begin is given to another one, with a reason', async (t) => {
    const harness = get();
    const [run, , other] = await taken(t, harness, 'slow');
    const page = await harness.signIn('otto', `/runs/${run}`);
    await page.locator('.run-line', { hasText: 'assigned to' }).getByRole('link', { name: 'slow-1' }).waitFor();
    const dialog = await open(page, 'Reassign');
    await offersNothing(harness, run);
    await dialog.getByText('“slow-1” has not begun the step').waitFor();
    await needsReason(page, dialog, 'Reassign');
    await dialog.getByLabel('Reason').fill('its disk is full');
    await press(dialog, 'Reassign');
    await isClosed(page);
    await entry(page, 'it is reassigned: its disk is full', 'otto · operator: its disk is full');
    await entry(page, 'ready: reassign', 'otto · operator: its disk is full');
    await carriedOut(page, other, 'slow-2');
    await done(page);
  });

  test('a run whose worker was lost in a command goes to another one once a person says so', async (t) => {
    const harness = get();
    const [run, box, other] = await taken(t, harness, 'gone');
    const page = await harness.signIn('otto', `/runs/${run}`);
    await box.begin();
    await state(page, 'running');
    await isGone(page, 'Reassign');
    box.vanish();
    await page.locator('.run-title .state', { hasText: 'paused' }).waitFor({ timeout: LOST });
    await verb(page, 'Reassign').waitFor();
    await offers(page, ['Reassign', 'Retry', 'Skip the step', 'Cancel']);
    await offersNothing(harness, run);
    const dialog = await open(page, 'Reassign');
    await dialog.getByText('The next worker begins with an empty directory.').waitFor();
    await needsReason(page, dialog, 'Reassign');
    await dialog.getByLabel('Reason').fill('the machine is gone');
    await press(dialog, 'Reassign');
    await isClosed(page);
    await entry(page, 'ready: operator retry', 'otto · operator: the machine is gone');
    await carriedOut(page, other, 'gone-2');
    await done(page);
  });
}
