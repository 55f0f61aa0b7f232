/** What a run did is undone from its page: as it is canceled, while it is paused, and after it has succeeded. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entry, isClosed, isGone, needsReason, offers, offersNothing, open, press, state, stepState, verb } from './directing.mjs';
import { done } from './harness.mjs';

const STEPS = `steps:
  - { id: fetch, task: say.hello, rollback: { task: db.undrain } }
  - { id: pack, task: say.hello, rollback: { task: page.withdraw } }
`;
const WAITS = '  - { id: sent, wait: { signal: parcel.sent, timeout: 1h } }\n';
/** No worker has what undoes its first step: its rollback stays under way. */
const STAYS = `steps:\n  - { id: fetch, task: say.hello, rollback: { task: none.has } }\n${WAITS}`;

/** A run of a workflow of its own. */
async function begun(harness, name, steps, reaches) {
  await harness.call('/workflows', { source: `name: ${name}\n${steps}` });
  const run = await harness.begin(name, {});
  await harness.reaches(run, reaches);
  return run;
}

/** What a dialog says it will undo, in that order. */
async function undone(dialog, count) {
  await dialog.locator('.undone li').nth(count - 1).waitFor();
  return dialog.locator('.undone li').allInnerTexts();
}

export function undoTests(get) {
  test('a run is canceled after what it did is undone, the newest first', async () => {
    const harness = get();
    const run = await begun(harness, 'undo-canceled', STEPS + WAITS, 'waiting_signal');
    const page = await harness.signIn('otto', `/runs/${run}`);
    const dialog = await open(page, 'Cancel');
    await dialog.getByLabel('Undo first what it has done').check();
    assert.deepEqual(await undone(dialog, 2), ['pack by page.withdraw', 'fetch by db.undrain']);
    await needsReason(page, dialog, 'Undo and cancel');
    await dialog.getByLabel('Reason').fill('the wrong parcel');
    await press(dialog, 'Undo and cancel');
    await state(page, 'canceled');
    for (const key of ['fetch', 'pack']) await stepState(page, key, 'rolled back');
    await entry(page, 'undoing 2 steps', 'otto · operator');
    await page.locator('.events tbody tr', { hasText: 'the wrong parcel' }).first().waitFor();
    await offers(page, ['Retry', 'Restart']);
    await done(page);
  });

  test('a run that a person has paused is rolled back to a step, and ends', async () => {
    const harness = get();
    const run = await begun(harness, 'undo-paused', STEPS + WAITS, 'waiting_signal');
    await harness.call(`/runs/${run}/pause`, { reason: 'look first' });
    await offersNothing(harness, run);
    const page = await harness.signIn('otto', `/runs/${run}`);
    const dialog = await open(page, 'Roll back');
    assert.deepEqual(await undone(dialog, 2), ['pack by page.withdraw', 'fetch by db.undrain']);
    await dialog.getByLabel('How far back').selectOption({ label: 'pack and what came after it' });
    await dialog.getByText('fetch by').waitFor({ state: 'detached' });
    assert.deepEqual(await undone(dialog, 1), ['pack by page.withdraw']);
    await needsReason(page, dialog, 'Roll back');
    await dialog.getByLabel('Reason').fill('packed too early');
    await press(dialog, 'Roll back');
    await state(page, 'failed · rolled back');
    await stepState(page, 'pack', 'rolled back');
    await stepState(page, 'fetch', 'succeeded');
    await entry(page, 'undoing one step', 'otto · operator: packed too early');
    await offers(page, ['Retry', 'Restart']);
    await done(page);
  });

  test('a run that has succeeded is undone by a new run; where nothing can be undone, the dialog says so', async () => {
    const harness = get();
    const plain = await harness.begin('hello', { name: 'Undo' });
    await harness.reaches(plain, 'succeeded');
    const run = await begun(harness, 'undo-ended', STEPS, 'succeeded');
    const page = await harness.signIn('otto', `/runs/${plain}`);
    const useless = await open(page, 'Roll back');
    await useless.getByText('No step that has run declares how it is undone.').waitFor();
    assert.ok(await useless.getByRole('button', { name: 'Roll back', exact: true }).isDisabled());
    await press(useless, 'Not now');
    await page.goto(`/runs/${run}`);
    const dialog = await open(page, 'Roll back');
    assert.deepEqual(await undone(dialog, 2), ['pack by page.withdraw', 'fetch by db.undrain']);
    await needsReason(page, dialog, 'Roll back');
    await dialog.getByLabel('Reason').fill('it was the wrong day');
    await press(dialog, 'Roll back');
    await page.waitForURL((url) => /\/runs\/run_/.test(url.pathname) && !url.pathname.endsWith(run));
    await state(page, 'succeeded');
    await page.locator('.chain', { hasText: 'It undoes' }).waitFor();
    await entry(page, 'undoing 2 steps', 'otto · operator: it was the wrong day');
    // What undoes is not undone.
    await isGone(page, 'Roll back');
    await page.getByRole('link', { name: 'an earlier run' }).click();
    await page.waitForURL(`**/runs/${run}`);
    await state(page, 'succeeded');
    await done(page);
  });

  test('what would undo an ended run is given up as long as people are asked about it', async () => {
    const harness = get();
    const asks = 'steps:\n  - { id: fetch, task: say.hello, critical: true, rollback: { task: db.undrain } }\n';
    const run = await begun(harness, 'undo-asked', asks, 'waiting_approval');
    const bob = await harness.signIn('bob', `/runs/${run}`);
    await press(await open(bob, 'Approve'), 'Approve');
    await state(bob, 'succeeded');
    await done(bob);
    const page = await harness.signIn('otto', `/runs/${run}`);
    const dialog = await open(page, 'Roll back');
    await dialog.getByLabel('Reason').fill('a mistake');
    await press(dialog, 'Roll back');
    await page.waitForURL((url) => /\/runs\/run_/.test(url.pathname) && !url.pathname.endsWith(run));
    await stepState(page, 'rollback:fetch', 'waiting for approval');
    await offers(page, ['Cancel', 'Pause']);
    const given = await open(page, 'Cancel');
    await needsReason(page, given, 'Cancel the run');
    await given.getByLabel('Reason').fill('not after all');
    await press(given, 'Cancel the run');
    await state(page, 'canceled');
    await entry(page, 'canceled: not after all', 'otto · operator');
    await isGone(page, 'Cancel');
    await done(page);
  });

  test('a rollback under way is paused, resumed, and given up', async () => {
    const harness = get();
    const run = await begun(harness, 'undo-stays', STAYS, 'waiting_signal');
    await harness.call(`/runs/${run}/rollback`, { reason: 'undo it' });
    const page = await harness.signIn('otto', `/runs/${run}`);
    await state(page, 'rolling back');
    const pause = async (reason) => {
      await verb(page, 'Pause').waitFor();
      await offers(page, ['Pause']);
      const dialog = await open(page, 'Pause');
      await dialog.getByLabel('Reason').fill(reason);
      await press(dialog, 'Pause');
      await isClosed(page);
      await verb(page, 'Resume').waitFor();
      await offers(page, ['Resume', 'Cancel']);
    };
    await pause('not during the backup');
    await page.locator('.why-words', { hasText: 'paused by otto' }).getByText('not during the backup').waitFor();
    await press(await open(page, 'Resume'), 'Resume');
    await isClosed(page);
    await entry(page, 'resumed', 'otto · operator');
    await pause('it is never undone');
    const dialog = await open(page, 'Cancel');
    await dialog.getByText('What is not undone yet stays as it is.').waitFor();
    assert.equal(await dialog.getByLabel('Undo first what it has done').count(), 0, 'there is one rollback of a run');
    await dialog.getByLabel('Reason').fill('left as it is');
    await press(dialog, 'Cancel the run');
    await state(page, 'canceled');
    await entry(page, 'canceled: left as it is', 'otto · operator');
    await done(page);
  });
}
