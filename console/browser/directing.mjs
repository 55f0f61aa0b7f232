/** A run as an operator directs it: its verbs, what their dialogs ask, and what the history says afterwards. */

import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { binary, until } from './harness.mjs';

export const verb = (page, name) => page.locator('.why-actions').getByRole('button', { name, exact: true });

/** These verbs come to be offered, in this order, and no others. */
export async function offers(page, verbs) {
  let offered;
  await until(`${verbs.join(', ')} are offered`, async () => {
    offered = (await page.locator('.why-actions button').allInnerTexts()).map((text) => text.split('\n')[0].trim());
    return offered.join() === verbs.join();
  }).catch((error) => assert.deepEqual(offered, verbs, error.message));
}

export const isGone = (page, name) => verb(page, name).waitFor({ state: 'detached' });

/** Opens the dialog of a verb. */
export async function open(page, name) {
  await verb(page, name).click();
  return page.locator('dialog[open]');
}

export const press = (dialog, name) => dialog.getByRole('button', { name, exact: true }).click();

export const isClosed = (page) => page.locator('dialog[open]').waitFor({ state: 'detached' });

export const state = (page, word) => page.locator('.run-title .state', { hasText: word }).waitFor();

export const step = (page, key) => page.locator('.timeline .step-row', { hasText: key });

export const stepState = (page, key, word) => step(page, key).locator('.state', { hasText: word }).waitFor();

/** An entry of the history: what happened, and who caused it. */
export const entry = (page, what, by) => page.locator('.events tbody tr', { hasText: what }).filter({ hasText: by }).first().waitFor();

/** Without a reason nothing is sent; one of blanks is refused in words, and the dialog stays. */
export async function needsReason(page, dialog, button, label = 'Reason') {
  const sent = [];
  const note = (request) => request.method() === 'POST' && sent.push(request.url());
  page.on('request', note);
  await press(dialog, button);
  assert.ok(await dialog.getByLabel(label).evaluate((field) => field.matches(':invalid') && field === document.activeElement), 'the reason is asked for');
  assert.deepEqual(sent, []);
  page.off('request', note);
  await dialog.getByLabel(label).fill('   ');
  await press(dialog, button);
  await dialog.locator('.problem', { hasText: 'reason' }).waitFor();
}

/** Nothing is offered to whoever may only look. */
export async function offersNothing(harness, run) {
  const page = await harness.signIn('vera', `/runs/${run}`);
  await page.locator('.step-pane h2').waitFor();
  assert.equal(await page.locator('.why-actions button').count(), 0);
  assert.equal(await page.getByRole('button', { name: 'Restart from here …' }).count(), 0);
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

/** A worker of the test's own, whose tasks are shell scripts. */
export function worker(harness, name, tasks) {
  const args = ['worker', '--server', harness.address, '--data', join(harness.folder, 'data'), '--name', name];
  for (const [task, script] of Object.entries(tasks)) {
    const program = join(harness.folder, task);
    writeFileSync(program, `#!/bin/sh\n${script}`);
    chmodSync(program, 0o755);
    args.push('--task', `${task}=${program}`);
  }
  return harness.run(binary(), args);
}
