import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, PASSWORD } from './harness.mjs';

export function changeTests(get) {
  test('what needs a second admin is kept, agreed to by another, and carried out by who asked', async () => {
    const harness = get();
    const server = await harness.another('two-keys');
    for (const name of ['ada', 'eve']) await harness.call('/users', { name, roles: ['admin'], groups: [], password: PASSWORD }, 201, server);
    const { tenant } = await harness.call('/me', undefined, 200, server);
    await harness.call(`/tenants/${tenant}`, { two_keys_for_access: true }, 200, { ...server, method: 'PATCH' });
    const there = { baseURL: server.url };

    const ada = await harness.signIn('ada', '/settings/keys', there);
    await ada.getByRole('button', { name: 'New key …' }).click();
    await ada.getByLabel('What it is for').fill('reports');
    await ada.getByRole('button', { name: 'Make it' }).click();
    await ada.getByRole('link', { name: 'See the change' }).click();
    await ada.getByText('You have asked for it: another admin decides.').waitFor();
    assert.equal(await ada.getByRole('button', { name: 'Agree …' }).count(), 0);

    const eve = await harness.signIn('eve', '/settings/changes', there);
    await eve.getByText('"reports"').waitFor();
    await harness.picture(eve, 'settings-changes-light-1280');
    await eve.getByRole('button', { name: 'Agree …' }).click();
    await eve.getByText('Nothing happens by it yet: ada carries out exactly this request').waitFor();
    await eve.getByRole('button', { name: 'Agree', exact: true }).click();
    await eve.getByText('approved', { exact: true }).waitFor();
    assert.equal(await eve.getByRole('button', { name: 'Carry it out …' }).count(), 0, 'only who asked carries it out');
    await done(eve);

    await ada.reload();
    await ada.getByRole('button', { name: 'Carry it out …' }).click();
    await ada.getByRole('button', { name: 'Carry it out', exact: true }).click();
    await ada.locator('dialog[open]').getByText(/ilk_.{30}/).waitFor();
    await ada.getByRole('button', { name: 'I have it' }).click();
    await ada.getByRole('heading', { name: 'No change waits' }).waitFor();
    await ada.goto('/settings/keys');
    await ada.getByRole('row', { name: /reports/ }).waitFor();
    await done(ada);
  });
}
