import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { done, freePort } from './harness.mjs';

const FOLDER = resolve('../crates/server/tests/oidc');
const CLIENT = { id: 'interlock', secret: 'shared by the two of them' };
const ACCOUNTS = {
  ada: { name: 'Ada L.', preferred_username: 'ada', email: 'ada@example.org', groups: ['sre', 'chess'] },
  bob: { preferred_username: 'bob', groups: ['chess'] },
};

/** An identity provider, and a server of its own that sends people to it. */
async function world(harness) {
  assert.ok(existsSync(join(FOLDER, 'node_modules/oidc-provider')), 'the identity provider is missing: run scripts/need oidc-provider');
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const provider = spawn(process.execPath, ['provider.mjs'], {
    cwd: FOLDER,
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {
      ...process.env, ACCOUNTS: JSON.stringify(ACCOUNTS), CLIENT_ID: CLIENT.id, CLIENT_SECRET: CLIENT.secret, REDIRECT_URI: `${url}/auth/oidc/callback`,
    },
  });
  harness.children.push(provider);
  const issuer = await new Promise((said) => createInterface({ input: provider.stdout }).once('line', said));
  const secret = join(harness.folder, 'client.secret');
  writeFileSync(secret, CLIENT.secret, { mode: 0o600 });
  const flags = [
    '--oidc-issuer', issuer, '--oidc-client-id', CLIENT.id, '--oidc-client-secret-file', secret, '--oidc-label', 'the test’s provider',
    '--oidc-role', 'sre=operator,approver', '--outbound-open', '127.0.0.1',
  ];
  await harness.another('oidc', flags, port);
  return { url, issuer };
}

/** What a person does at the provider: signs in, and agrees. */
async function atTheProvider(page, issuer, name) {
  await page.waitForURL((url) => url.origin === issuer);
  await page.fill('input[name=login]', name);
  await page.fill('input[name=password]', 'anything');
  await page.click('button[type=submit]');
  await page.locator('input[name=prompt][value=consent]').waitFor({ state: 'attached' });
  await page.click('button[type=submit]');
}

export function oidcTests(get) {
  test('somebody signs in by an identity provider, comes to where they wanted to go, and has the roles of their groups', async () => {
    const harness = get();
    const { url, issuer } = await world(harness);
    const page = await harness.visitor({ baseURL: url });
    await page.goto('/runs?state=failed');
    await page.waitForURL(/\/login\?next=/);
    assert.deepEqual(page.problems, []);
    await page.getByRole('link', { name: /the test’s provider/ }).click();
    await atTheProvider(page, issuer, 'ada');
    await page.waitForURL(`${url}/runs?state=failed`);
    // The provider's own page asks for fonts from elsewhere, which a test does not get.
    page.problems.length = 0;
    await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
    await page.waitForSelector('.connection.live', { state: 'attached' });
    await page.getByRole('button', { name: 'Jobs' }).waitFor();
    await page.goto('/settings');
    const account = page.locator('main');
    await account.getByText('ada', { exact: true }).first().waitFor();
    await account.getByText('operator').first().waitFor();
    await account.getByText('sre').first().waitFor();
    assert.equal(await page.getByRole('link', { name: 'People' }).count(), 0, 'an operator manages nobody');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/login');
    assert.equal((await page.request.get('/api/v1/me')).status(), 401);
    await done(page);

    const stranger = await harness.visitor({ baseURL: url });
    await stranger.goto('/login');
    await stranger.getByRole('link', { name: /the test’s provider/ }).click();
    await atTheProvider(stranger, issuer, 'bob');
    await stranger.getByRole('heading', { name: 'You are not signed in' }).waitFor();
    assert.equal((await stranger.request.get('/api/v1/me')).status(), 401, 'whoever has no role stays out');
    await stranger.context().close();
  });
}
