import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findings } from './axe.mjs';
import { done, until } from './harness.mjs';

const PAYS = `name: pay-invoice
inputs: { amount: { type: integer, required: true } }
steps:
  - { id: pay, task: page.publish, effect: keyed, blast_radius: high, with: { amount: "\${{ inputs.amount }}" }, rollback: { task: page.withdraw } }
`;
const NO_GIFTS = `package interlock

deny contains {"rule": "no_gifts", "text": "nobody pays more than 100"} if {
	input.action.operation == "page.publish"
	input.fields.amount > 100
}
`;

/** A run that the policy has decided on, and that waits for people. */
export async function decidedRun(harness) {
  await harness.call('/workflows', { source: PAYS });
  const run = await harness.begin('pay-invoice', { amount: 1200 });
  await harness.reaches(run, 'waiting_approval');
  return run;
}

export function policyTests(get) {
  test('a step shows what the policy decided and why, and the playground asks it again', async () => {
    const harness = get();
    const run = await decidedRun(harness);
    const viewer = await harness.signIn('vera', `/runs/${run}`);
    await viewer.locator('.decisions li').first().getByText('What it rests on').click();
    assert.equal(await viewer.getByRole('link', { name: 'Ask again in the playground' }).count(), 0, 'a viewer asks nothing');
    await done(viewer);
    const page = await harness.signIn('otto', `/runs/${run}`, { bypassCSP: true });
    const decision = page.locator('.decisions li').first();
    await decision.locator('.state', { hasText: 'needs approval' }).waitFor();
    await decision.getByText('two_keys').waitFor();
    await decision.getByText(/^2 different people/).waitFor();
    await decision.getByText('What it rests on').click();
    await decision.getByRole('link', { name: 'Ask again in the playground' }).click();
    assert.match(await page.getByLabel('What the policy is told').inputValue(), /"amount": 1200/);
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.locator('.playground .reasons', { hasText: 'two_keys' }).waitFor();
    assert.deepEqual(await findings(page), []);
    await harness.picture(page, 'policy-asked');
    await page.getByLabel('What the policy is told').fill('{"x": 1}');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.locator('.playground .problem', { hasText: 'unknown field' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'New version …' }).count(), 0, 'an operator changes nothing');
    assert.deepEqual(await page.getByRole('tab').allInnerTexts(), ['Rules', 'Versions', 'Playground']);
    await page.getByRole('tab', { name: 'Versions' }).click();
    await page.getByRole('cell', { name: 'Default policy' }).waitFor();
    assert.equal(await page.locator('.row-actions button').count(), 0);
    await done(page);
  });

  test('an admin gives a version, tries it beside, replays it, and puts it in force', async () => {
    const harness = get();
    await decidedRun(harness);
    const { files } = await harness.call('/policy/files');
    const bundle = Object.entries({ ...files, 'gifts.rego': NO_GIFTS }).map(([name, text]) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) }));
    const page = await harness.signIn('ada', '/policy', { bypassCSP: true });
    await page.getByText('comes with the server; it counts until').waitFor();
    await page.getByRole('button', { name: 'New version …' }).click();
    await page.getByLabel('Files of the bundle').setInputFiles(bundle);
    await page.getByLabel('Why (optional)').fill('no gifts');
    await page.getByRole('button', { name: 'Give it' }).click();
    const row = page.getByRole('row', { name: /Version 1/ });
    await row.getByRole('button', { name: 'Try beside …' }).click();
    await page.getByRole('button', { name: 'Try it' }).click();
    await row.getByText('beside it', { exact: true }).waitFor();
    await row.getByRole('link', { name: 'Replay' }).click();
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await page.locator('.tally', { hasText: 'newly denied' }).waitFor();
    await page.getByRole('row', { name: /no_gifts/ }).first().waitFor();
    assert.deepEqual(await findings(page), []);
    await harness.picture(page, 'policy-replayed');
    await page.getByRole('tab', { name: 'Tests' }).click();
    await page.getByRole('button', { name: 'Run its tests' }).click();
    await page.getByRole('status').filter({ hasText: /[0-9]+ tests passed/ }).waitFor();
    await page.getByRole('row', { name: /passed interlock_test/ }).first().waitFor();
    assert.deepEqual(await findings(page), []);
    await harness.picture(page, 'policy-tested');
    await page.getByRole('tab', { name: 'Versions' }).click();
    await row.getByRole('button', { name: 'Put in force …' }).click();
    await page.getByRole('button', { name: 'Put in force', exact: true }).click();
    await row.getByText('in force', { exact: true }).waitFor();
    await page.getByRole('tab', { name: 'Rules' }).click();
    await page.getByRole('link', { name: 'gifts.rego' }).click();
    await page.locator('.source', { hasText: 'nobody pays more than 100' }).waitFor();
    assert.equal((await harness.call('/policy')).active, 1);
    // The other tests go on under the policy that they know.
    await page.getByRole('tab', { name: 'Versions' }).click();
    await page.getByRole('row', { name: /Default policy/ }).getByRole('button', { name: 'Put in force …' }).click();
    await page.getByRole('button', { name: 'Put in force', exact: true }).click();
    await until('the default policy is in force', async () => (await harness.call('/policy')).active === undefined);
    await done(page);
  });
}
