/** What an operator does to a run from its page: each verb once as it should go, and once as it should not. */

import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { entry, isClosed, isGone, needsReason, offers, offersNothing, open, press, state, step, stepState, verb, worker } from './directing.mjs';
import { done, until } from './harness.mjs';

const WORKFLOWS = [
  `name: errand
inputs: { what: { type: string, required: true } }
subject: \${{ inputs.what }}
steps:
  - { id: fetch, task: say.hello }
  - { id: sent, wait: { signal: errand.sent, timeout: 1h } }
  - { id: tell, task: say.hello }
`,
  `name: frail
inputs: { mood: { type: string, required: true, enum: [bad, good] } }
steps:
  - { id: look, task: say.hello }
  - { id: act, task: frail.act, on_failure: pause, retry: { max_attempts: 1 } }
  - { id: after, task: say.hello }
`,
  `name: brittle
steps:
  - { id: look, task: say.hello }
  - { id: act, task: frail.act, with: { mood: bad }, retry: { max_attempts: 1 } }
`,
  `name: stuck
steps:
  - { id: look, task: say.hello }
  - { id: act, task: none.has }
  - { id: after, task: say.hello }
`,
];

const mended = (harness) => join(harness.folder, 'mended');

/** The workflows, and a worker whose task fails unless the mood is good or its cause is mended. */
function prepared(harness) {
  harness.verbs ??= (async () => {
    for (const source of WORKFLOWS) await harness.call('/workflows', { source });
    worker(harness, 'frail', { 'frail.act': `if grep -q good || [ -e ${mended(harness)} ]; then echo '{"ok":true}'; else exit 1; fi\n` });
  })();
  return harness.verbs;
}

async function begun(harness, workflow, inputs, reaches) {
  await prepared(harness);
  const run = await harness.begin(workflow, inputs);
  await harness.reaches(run, reaches);
  return run;
}

export function verbTests(get) {
  test('a run is paused with a reason and resumed, and its history says by whom', async () => {
    const harness = get();
    const run = await begun(harness, 'errand', { what: 'pause' }, 'waiting_signal');
    await offersNothing(harness, run);
    const page = await harness.signIn('otto', `/runs/${run}`);
    const dialog = await open(page, 'Pause');
    await needsReason(page, dialog, 'Pause');
    await dialog.getByLabel('Reason').fill('the carrier is on strike');
    await press(dialog, 'Pause');
    await isClosed(page);
    await state(page, 'paused');
    await page.locator('.why-words', { hasText: 'paused by otto' }).getByText('the carrier is on strike').waitFor();
    await entry(page, 'paused: the carrier is on strike', 'otto · operator');
    await offers(page, ['Resume', 'Cancel', 'Roll back']);
    await offersNothing(harness, run);
    await open(page, 'Resume');
    await press(page.locator('dialog[open]'), 'Resume');
    await state(page, 'waiting for signal');
    await entry(page, 'resumed', 'otto · operator');
    await verb(page, 'Pause').waitFor();
    await isGone(page, 'Resume');
    await harness.call(`/runs/${run}/cancel`, { reason: 'seen' });
    await done(page);
  });

  test('a refusal is told in the dialog, and what was typed stays', async () => {
    const harness = get();
    const run = await begun(harness, 'errand', { what: 'refusal' }, 'waiting_signal');
    const page = await harness.signIn('otto', `/runs/${run}`);
    const dialog = await open(page, 'Pause');
    await dialog.getByLabel('Reason').fill('typed with care');
    await harness.call(`/runs/${run}/cancel`, { reason: 'meanwhile' });
    await state(page, 'canceled');
    await press(dialog, 'Pause');
    await dialog.locator('.problem', { hasText: 'is canceled already' }).getByText('RUN_TERMINAL_STATE').waitFor();
    assert.equal(await dialog.getByLabel('Reason').inputValue(), 'typed with care');
    await press(dialog, 'Not now');
    await isClosed(page);
    await isGone(page, 'Pause');
    await done(page);
  });

  test('a step that failed is skipped with a reason, and the run goes on', async () => {
    const harness = get();
    const run = await begun(harness, 'frail', { mood: 'bad' }, 'paused');
    await offersNothing(harness, run);
    const page = await harness.signIn('otto', `/runs/${run}`);
    await page.locator('.why-words', { hasText: 'Step “act” has failed' }).waitFor();
    const dialog = await open(page, 'Skip the step');
    await needsReason(page, dialog, 'Skip');
    await dialog.getByLabel('Reason').fill('it was done by hand');
    await press(dialog, 'Skip');
    await state(page, 'succeeded');
    await stepState(page, 'act', 'skipped');
    await stepState(page, 'after', 'succeeded');
    await entry(page, 'skipped: it was done by hand', 'otto · operator');
    await isGone(page, 'Skip the step');
    await done(page);
  });

  test('past an approval that was refused, a skip takes as many people as the approval did', async () => {
    const harness = get();
    const run = await begun(harness, 'restart-database', { incident: 'INC5001' }, 'waiting_approval');
    const ada = await harness.signIn('ada', `/runs/${run}`);
    const refused = await open(ada, 'Reject');
    await refused.getByLabel('Why not?').fill('not now');
    await press(refused, 'Reject');
    await state(ada, 'paused');
    const otto = await harness.signIn('otto', `/runs/${run}`);
    const dialog = await open(otto, 'Skip the step');
    await dialog.getByLabel('Reason').fill('I need it');
    await press(dialog, 'Skip');
    await dialog.locator('.problem').getByText('DIRECTIVE_NOT_PERMITTED').waitFor();
    assert.equal(await dialog.getByLabel('Reason').inputValue(), 'I need it');
    await done(otto);
    const asked = await open(ada, 'Skip the step');
    await asked.getByLabel('Reason').fill('the incident is worse');
    await press(asked, 'Skip');
    await ada.locator('.toast', { hasText: '1 of 2 people have agreed' }).waitFor();
    await done(ada);
    const bob = await harness.signIn('bob', `/runs/${run}`);
    await press(await open(bob, 'Approve'), 'Approve');
    await stepState(bob, 'agree', 'skipped');
    await entry(bob, 'skipped: by ada, bob: the incident is worse', 'bob · approval');
    await done(bob);
  });

  test('a step is tried again as it was, once its cause is mended', async () => {
    const harness = get();
    const run = await begun(harness, 'frail', { mood: 'bad' }, 'paused');
    const page = await harness.signIn('otto', `/runs/${run}`);
    const again = async () => {
      await press(await open(page, 'Retry'), 'Retry');
      await isClosed(page);
    };
    await again();
    await until('it has failed again', async () => (await page.locator('.events tbody tr', { hasText: 'failed' }).count()) >= 2);
    await state(page, 'paused');
    writeFileSync(mended(harness), '');
    await again();
    await state(page, 'succeeded');
    rmSync(mended(harness));
    await entry(page, 'ready: operator retry', 'otto · operator');
    assert.deepEqual((await harness.call(`/runs/${run}`)).inputs, { mood: 'bad' });
    await isGone(page, 'Retry');
    await done(page);
  });

  test('a step is tried again with another input; one that does not fit is refused, and not lost', async () => {
    const harness = get();
    const run = await begun(harness, 'frail', { mood: 'bad' }, 'paused');
    const page = await harness.signIn('otto', `/runs/${run}`);
    const dialog = await open(page, 'Retry');
    await dialog.getByText('With another input').click();
    const input = dialog.getByLabel('Input as JSON');
    for (const [typed, told] of [['{"mood": good}', 'is not JSON'], ['{"mood": "worse"}', 'mood']]) {
      await input.fill(typed);
      await press(dialog, 'Retry');
      await dialog.locator('.problem', { hasText: told }).waitFor();
      assert.equal(await input.inputValue(), typed);
    }
    assert.equal((await harness.call(`/runs/${run}`)).state, 'paused');
    await input.fill('{"mood": "good"}');
    await press(dialog, 'Retry');
    await state(page, 'succeeded');
    await step(page, 'act').click();
    const given = page.locator('.step-pane section', { has: page.getByRole('heading', { name: 'Input' }) });
    await given.getByText('"good"').waitFor();
    await entry(page, 'ready: operator retry', 'otto · operator');
    await done(page);
  });

  test('a run that has failed is retried in a new run, and both lead to each other', async () => {
    const harness = get();
    const run = await begun(harness, 'brittle', {}, 'failed');
    await offersNothing(harness, run);
    const page = await harness.signIn('otto', `/runs/${run}`);
    writeFileSync(mended(harness), '');
    const dialog = await open(page, 'Retry');
    assert.equal(await dialog.getByText('With another input').count(), 0, 'a new run has the old inputs');
    await press(dialog, 'Retry');
    await page.waitForURL((url) => /\/runs\/run_/.test(url.pathname) && !url.pathname.endsWith(run));
    await state(page, 'succeeded');
    rmSync(mended(harness));
    await entry(page, 'started', 'otto');
    await page.getByRole('link', { name: 'an earlier run' }).click();
    await page.waitForURL(`**/runs/${run}`);
    await page.getByRole('link', { name: 'A later run' }).waitFor();
    // There is one successor.
    for (const name of ['Retry', 'Restart']) await isGone(page, name);
    await done(page);
  });

  test('an ended run is restarted from a step in a new run, which keeps what came before', async () => {
    const harness = get();
    const run = await begun(harness, 'frail', { mood: 'good' }, 'succeeded');
    const page = await harness.signIn('otto', `/runs/${run}`);
    await verb(page, 'Restart').waitFor();
    await step(page, 'act').click();
    await page.getByRole('button', { name: 'Restart from here …' }).click();
    const dialog = page.locator('dialog[open]');
    await dialog.getByText('What came before “act” is kept').waitFor();
    await press(dialog, 'Restart');
    await page.waitForURL((url) => /\/runs\/run_/.test(url.pathname) && !url.pathname.endsWith(run));
    await state(page, 'succeeded');
    await entry(page, 'started', 'otto');
    const made = page.url().split('/').at(-1).split('?')[0];
    const { attempts } = await harness.call(`/runs/${made}/attempts`);
    assert.deepEqual([...new Set(attempts.map((attempt) => attempt.position))], [1, 2]);
    await page.goto(`/runs/${run}?step=1`);
    await page.getByRole('link', { name: 'A later run' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Restart from here …' }).count(), 0);
    await done(page);
  });

  test('a paused run is restarted from a step that it has reached, and not while it goes on', async () => {
    const harness = get();
    await prepared(harness);
    const run = await harness.begin('stuck', {});
    const tries = async () => (await harness.call(`/runs/${run}/attempts`)).attempts.map((attempt) => attempt.position);
    await until('it stands at its second step', async () => (await harness.call(`/runs/${run}`)).position === 1);
    await harness.call(`/runs/${run}/pause`, { reason: 'look first' });
    const page = await harness.signIn('otto', `/runs/${run}?step=2`);
    const from = page.getByRole('button', { name: 'Restart from here …' });
    await page.locator('.step-pane h2', { hasText: 'after' }).waitFor();
    assert.equal(await from.count(), 0, 'it has not been there yet');
    await step(page, 'look').click();
    await from.click();
    const dialog = page.locator('dialog[open]');
    await harness.call(`/runs/${run}/resume`, {});
    await press(dialog, 'Restart');
    await dialog.locator('.problem').getByText('RUN_INVALID_TRANSITION').waitFor();
    assert.deepEqual(await tries(), [0]);
    await harness.call(`/runs/${run}/pause`, { reason: 'look again' });
    await press(dialog, 'Restart');
    await isClosed(page);
    await entry(page, 'ready: restart', 'otto · operator');
    await until('the first step has run twice', async () => (await tries()).length === 2);
    await state(page, 'running');
    await from.waitFor({ state: 'detached' });
    await harness.call(`/runs/${run}/cancel`, { reason: 'seen' });
    await done(page);
  });

  test('a run is canceled with a reason, and what it did stays', async () => {
    const harness = get();
    const run = await begun(harness, 'errand', { what: 'cancel' }, 'waiting_signal');
    const page = await harness.signIn('otto', `/runs/${run}`);
    const dialog = await open(page, 'Cancel');
    await needsReason(page, dialog, 'Cancel the run');
    await dialog.getByLabel('Reason').fill('it is not wanted any more');
    await press(dialog, 'Cancel the run');
    await state(page, 'canceled');
    await stepState(page, 'fetch', 'succeeded');
    await entry(page, 'canceled: it is not wanted any more', 'otto · operator');
    await offers(page, ['Retry', 'Restart']);
    await done(page);
  });
}
