import { test } from 'node:test';
import { done } from './harness.mjs';

export function workerTests(get) {
  test('the fleet is shown, and a queue that nobody serves comes with the command that does', async () => {
    const harness = get();
    await harness.call('/workflows', { source: 'name: render\nsteps:\n  - { id: frame, task: render.frame, queue: gpu }\n' });
    const run = await harness.begin('render', {});
    const page = await harness.signIn('vera', '/runs');
    await page.keyboard.press('g');
    await page.keyboard.press('k');
    await page.waitForURL('**/workers');
    const queue = page.getByRole('row', { name: /gpu/ });
    await queue.getByText('no worker').waitFor();
    await page.getByText('interlock worker --queue gpu --task NAME=PROGRAM').waitFor();
    await page.getByRole('link', { name: 'console-tests' }).click();
    await page.waitForURL(/\/workers\/ses_/);
    await page.locator('.pane .words', { hasText: 'db.restart' }).waitFor();
    await page.locator('.pane', { hasText: 'Last heard' }).waitFor();
    await harness.call(`/runs/${run}/cancel`, { reason: 'seen' });
    await page.getByText('interlock worker --queue gpu').waitFor({ state: 'detached' });
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
