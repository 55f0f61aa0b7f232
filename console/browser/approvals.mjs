import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, until } from './harness.mjs';

/** How soon others see a vote; and the same where other tests run beside this one. */
const PROMISED_MS = 2_000;
const ON_A_BUSY_MACHINE_MS = 10_000;

export function approvalTests(get) {
  test('two people approve in two browsers, and each sees the other’s vote within two seconds', async () => {
    const harness = get();
    // A busy machine may hold a vote up now and then, and not each time.
    const eachWithin = process.env.INTERLOCK_TEST_BARS ? PROMISED_MS : ON_A_BUSY_MACHINE_MS;
    let soonest = Infinity;
    for (const incident of ['INC2001', 'INC2003']) {
      const [bob, cleo] = await Promise.all([harness.signIn('bob', '/approvals'), harness.signIn('cleo', '/approvals')]);
      const run = await harness.begin('restart-database', { incident });
      const asked = `Restart db-1 for ${incident}?`;
      await bob.getByRole('link', { name: asked }).click();
      await cleo.getByRole('link', { name: asked }).click();
      await bob.locator('.card', { hasText: 'db.restart' }).first().waitFor();
      await bob.keyboard.press('a');
      await bob.getByLabel('Comment').fill('looked at the graphs');
      await bob.getByRole('button', { name: 'Approve', exact: true }).click();
      const voted = Date.now();
      await cleo.locator('.card .quorum', { hasText: '1 of 2' }).first().waitFor();
      const after = Date.now() - voted;
      assert.ok(after < eachWithin, `the vote on ${incident} was seen after ${after} ms`);
      soonest = Math.min(soonest, after);
      await cleo.getByText('looked at the graphs').waitFor();
      await bob.getByText('You have voted').waitFor();
      assert.equal(await bob.locator('.decide').count(), 0, 'one person has one vote');
      await cleo.getByRole('button', { name: 'Approve …' }).click();
      await cleo.getByRole('button', { name: 'Approve', exact: true }).click();
      await harness.reaches(run, 'succeeded');
      await done(bob);
      await done(cleo);
    }
    assert.ok(soonest < PROMISED_MS, `a vote was seen after ${soonest} ms at the soonest`);
  });

  test('a rejected run waits for an operator, who rolls it back after a preview', async () => {
    const harness = get();
    const run = await harness.begin('restart-database', { incident: 'INC2002' });
    await harness.reaches(run, 'waiting_approval');
    const page = await harness.signIn('ada', `/runs/${run}`);
    await page.locator('.why-actions').getByRole('button', { name: 'Reject' }).waitFor();
    await page.keyboard.press('r');
    await page.getByLabel('Why not?').fill('not during the sale');
    await page.getByRole('button', { name: 'Reject', exact: true }).last().click();
    await page.locator('.run-title .state', { hasText: 'paused' }).waitFor();
    await page.getByRole('button', { name: 'Roll back' }).click();
    await page.locator('.undone li').first().waitFor();
    assert.deepEqual(await page.locator('.undone li').allInnerTexts(), ['drain by db.undrain']);
    await page.getByLabel('Reason').fill('start over tomorrow');
    await page.getByRole('button', { name: 'Roll back' }).last().click();
    await page.locator('.run-title .state', { hasText: 'failed' }).waitFor();
    await page.locator('.timeline .state', { hasText: 'rolled back' }).waitFor();
    await page.getByRole('cell', { name: 'ada rejected' }).waitFor();
    await done(page);
  });

  test('a viewer is not offered a decision, and the server refuses one', async () => {
    const harness = get();
    const run = await harness.begin('publish-page', { title: 'Planned maintenance' });
    const page = await harness.signIn('vera', '/approvals');
    await page.getByRole('link', { name: 'Planned maintenance' }).click();
    await page.getByText('Deciding needs the role approver').waitFor();
    assert.equal(await page.locator('.decide, .inbox-list input').count(), 0);
    const refused = await page.evaluate(async (run) => {
      const { csrf } = await (await fetch('/api/v1/me')).json();
      const headers = { 'content-type': 'application/json', 'x-interlock-csrf': csrf };
      const answer = await fetch(`/api/v1/runs/${run}/approve`, { method: 'POST', headers, body: '{"approve":true}' });
      return (await answer.json()).code;
    }, run);
    assert.equal(refused, 'PERMISSION_DENIED');
    await done(page);
  });

  test('approving works on a phone, with a thumb', async () => {
    const harness = get();
    const run = await harness.begin('publish-page', { title: 'All is well again' });
    const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
    const page = await harness.signIn('bob', '/approvals', phone);
    await page.getByRole('link', { name: 'All is well again' }).tap();
    const button = page.getByRole('button', { name: 'Approve …' });
    const box = await button.boundingBox();
    assert.ok(box.height >= 44 && box.y > 600, 'the button is large, and at the thumb');
    await harness.picture(page, 'approval-phone');
    await button.tap();
    await page.getByRole('button', { name: 'Approve', exact: true }).tap();
    await harness.reaches(run, 'succeeded');
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
    assert.equal(wide, false, 'nothing sticks out to the side');
    await done(page);
  });

  test('several requests are decided together', async () => {
    const harness = get();
    const runs = [];
    for (const title of ['first of two', 'second of two']) runs.push(await harness.begin('publish-page', { title }));
    const page = await harness.signIn('bob', '/approvals');
    for (const title of ['first of two', 'second of two']) await page.getByLabel(`Mark: Publish “${title}”?`).check();
    await page.getByRole('button', { name: 'Approve 2 …' }).click();
    await page.getByRole('button', { name: 'Approve 2', exact: true }).click();
    for (const run of runs) await harness.reaches(run, 'succeeded');
    await done(page);
  });

  test('the card shows what differs from the last run that succeeded', async () => {
    const harness = get();
    const before = await harness.begin('publish-page', { title: 'as always' });
    await harness.reaches(before, 'waiting_approval');
    const bob = await harness.signIn('bob', `/runs/${before}`);
    await bob.locator('.why-actions').getByRole('button', { name: 'Approve' }).click();
    await bob.getByRole('button', { name: 'Approve', exact: true }).last().click();
    await harness.reaches(before, 'succeeded');
    await harness.begin('publish-page', { title: 'not as always' });
    await bob.goto('/approvals');
    await bob.getByRole('link', { name: 'Publish “not as always”?' }).click();
    const compared = bob.locator('.compared', { hasText: 'What differs from last time' });
    await compared.getByRole('row', { name: 'title "as always" "not as always"' }).waitFor();
    await done(bob);
  });

  test('what is asked again with another input shows what has changed', async () => {
    const harness = get();
    const pays = 'steps:\n  - { id: pay, task: page.publish, effect: keyed, blast_radius: high, with: { amount: "${{ inputs.amount }}" } }';
    await harness.call('/workflows', { source: `name: pay-or-wait\ninputs: { amount: { type: integer, required: true } }\napproval: { on_reject: pause }\n${pays}\n` });
    const run = await harness.begin('pay-or-wait', { amount: 1200 });
    await harness.reaches(run, 'waiting_approval');
    const ada = await harness.signIn('ada', `/runs/${run}`);
    await ada.locator('.why-actions').getByRole('button', { name: 'Reject' }).click();
    await ada.getByLabel('Why not?').fill('too much');
    await ada.getByRole('button', { name: 'Reject', exact: true }).last().click();
    await ada.locator('.run-title .state', { hasText: 'paused' }).waitFor();
    await ada.locator('.why-actions').getByRole('button', { name: 'Retry' }).click();
    await ada.getByText('With another input').click();
    await ada.getByLabel('Input as JSON').fill('{"amount": 90}');
    await ada.getByRole('button', { name: 'Retry', exact: true }).last().click();
    const open = await until('it is asked again', async () => (await harness.call(`/approvals?run=${run}`)).approvals.find((each) => each.state === 'requested'));
    await ada.goto(`/approvals/${open.approval}`);
    const compared = ada.locator('.compared', { hasText: 'since it was last asked' });
    await compared.getByRole('row', { name: 'input.amount 1200 90' }).waitFor();
    await compared.getByText('was rejected').waitFor();
    await ada.getByText('Asked because').waitFor();
    await done(ada);
  });

  test('the inbox is narrowed in its address, which another person can open', async () => {
    const harness = get();
    for (const title of ['linkable', 'something else']) await harness.reaches(await harness.begin('publish-page', { title }), 'waiting_approval');
    const page = await harness.signIn('bob', '/approvals');
    await page.getByLabel('Show').selectOption('mine');
    await page.keyboard.press('/');
    await page.keyboard.type('linkable');
    await page.waitForURL('**/approvals?show=mine&find=linkable');
    await until('one is listed', async () => (await page.locator('.inbox-list a').count()) === 1);
    await page.getByRole('link', { name: 'Publish “linkable”?' }).click();
    await page.waitForURL(/\/approvals\/apr_\w+\?show=mine&find=linkable$/);
    const address = page.url();
    await page.getByLabel('Find').fill('nothing has these words');
    await page.getByText('that are open fits').waitFor();
    await done(page);
    const other = await harness.signIn('cleo', new URL(address).pathname + new URL(address).search);
    await other.locator('.card', { hasText: 'linkable' }).waitFor();
    assert.equal(await other.getByLabel('Find').inputValue(), 'linkable');
    assert.equal(await other.locator('.inbox-list a').count(), 1);
    await done(other);
  });

  test('on a phone the card has the page to itself', async () => {
    const harness = get();
    const run = await harness.begin('publish-page', { title: 'small' });
    await harness.reaches(run, 'waiting_approval');
    const { approval } = (await harness.call(`/approvals?run=${run}`)).approvals[0];
    const page = await harness.signIn('bob', `/approvals/${approval}`, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    const question = await page.getByRole('heading', { name: 'Publish “small”?' }).boundingBox();
    assert.ok(question.y < 150, `the question stands at ${question.y} px`);
    await page.getByRole('link', { name: 'All approvals' }).tap();
    await page.getByLabel('Find').waitFor();
    await done(page);
  });

  test('everything for one is marked at once, and the right to decide is lent from the inbox', async () => {
    const harness = get();
    for (const title of ['to be marked', 'to be marked too']) await harness.begin('publish-page', { title });
    const page = await harness.signIn('ada', '/approvals');
    await page.getByRole('button', { name: /^Mark all \d+ for me/ }).click();
    const marked = await page.locator('.inbox-list input:checked').count();
    assert.equal(marked, await page.locator('.inbox-list input').count());
    await page.getByRole('button', { name: `Reject ${marked} …` }).waitFor();
    await page.getByRole('button', { name: 'Unmark' }).click();
    await page.getByRole('button', { name: 'Delegate …' }).click();
    await page.getByLabel('To whom').fill('bob');
    await page.getByLabel('Reason').fill('on leave');
    await page.getByRole('button', { name: 'Lend it' }).click();
    await page.getByText('bob may decide for you').waitFor();
    await page.goto('/settings/delegations');
    await page.getByRole('row', { name: /ada.*bob/ }).getByRole('button', { name: 'Revoke …' }).click();
    await page.getByRole('button', { name: 'Revoke', exact: true }).click();
    await until('it is revoked', async () => (await harness.call('/delegations')).delegations.length === 0);
    await done(page);
  });
}
