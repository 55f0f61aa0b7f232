/** Every room of the console with something to show: its name, its address, and what is there once it is drawn. */

import { until } from './harness.mjs';
import { decidedRun } from './policy.mjs';

/** The task workspace is one of them: its flag is switched on, and the caller switches it off. */
export async function everyRoom(harness) {
  harness.everyRoom ??= filled(harness);
  await harness.flag(true);
  return harness.everyRoom;
}

/** A run of `chatty` that has written its lines and waits for its approval. */
async function written(harness) {
  const before = (await harness.call('/runs?workflow=chatty&state=waiting_approval')).runs[0]?.run_id;
  const run = before ?? (await harness.begin('chatty', { ticket: 'CHG300' }));
  await harness.reaches(run, 'waiting_approval');
  return run;
}

async function filled(harness) {
  const waiting = await harness.begin('restart-database', { incident: 'INC3001', host: 'db-2' });
  await harness.reaches(waiting, 'waiting_approval');
  const over = await restarted(harness);
  const approval = (await harness.call(`/approvals?run=${waiting}`)).approvals[0].approval;
  await approve(harness, 'bob', approval, 'Looked at the graphs: the replica is in step.');
  const { endpoint_id: told } = await harness.call('/webhook-endpoints', { url: 'https://hooks.example.org/interlock', description: 'The team’s room' });
  await harness.call('/webhooks', { name: 'github', source: 'github' });
  const proven = await harness.begin('hello', { name: 'Evidence' });
  await until('the evidence is there', () => harness.call(`/runs/${proven}/evidence`).then(() => true, () => false));
  for (const text of ['one', 'two']) await harness.call('/workflows', { source: `name: compared\nsteps:\n  - id: say\n    transform: { text: ${text} }\n` });
  const decided = await decidedRun(harness);
  const wrote = await written(harness);
  const worker = (await harness.call('/workers')).workers.find((each) => each.worker === 'console-tests').session_id;
  return [
    ['runs', '/runs', 'table'],
    ['runs-none', '/runs?subject=nothing', '.empty'],
    ['run-waiting', `/runs/${waiting}`, '.timeline'],
    ['run-over', `/runs/${over}?step=3`, '.timeline .segment'],
    ['workspace', `/workspace/${wrote}?step=1`, '.terminal-line'],
    ['approvals', '/approvals', '.inbox-list'],
    ['approval', `/approvals/${approval}`, '.inbox-card h3'],
    ['workflows', '/workflows', 'table'],
    ['workflow', '/workflows/restart-database', '.step-list'],
    ['workflow-source', '/workflows/restart-database?tab=source', '.source'],
    ['workflow-versions', '/workflows/compared?tab=versions', '.versions .source'],
    ['schedules', '/schedules/nightly', '.slots'],
    ['workers', '/workers', '.workers'],
    ['worker', `/workers/${worker}`, '.pane .facts'],
    ['policy', '/policy', '.source'],
    ['policy-versions', '/policy?tab=versions', 'table'],
    ['policy-playground', `/policy?tab=playground`, '.playground'],
    ['policy-tests', '/policy?tab=tests', '.bar-of-fields'],
    ['policy-replay', '/policy?tab=replay', '.bar-of-fields'],
    ['run-decided', `/runs/${decided}`, '.decisions'],
    ['audit', '/audit', '.audit'],
    ['run-evidence', `/runs/${proven}?tab=evidence`, '.evidence'],
    ['webhooks', '/webhooks', 'table'],
    ['webhook', `/webhooks/${told}`, '.pane'],
    ['settings', '/settings', '.facts'],
    ['settings-people', '/settings/people', 'table'],
    ['settings-groups', '/settings/groups', 'table'],
    ['settings-keys', '/settings/keys', 'table'],
    ['settings-tenant', '/settings/tenant', '.facts'],
    ['settings-delegations', '/settings/delegations', '.empty'],
    ['settings-changes', '/settings/changes', '.empty'],
  ];
}

/** A restart that two people have agreed to: one of the other tests, or one of its own. */
async function restarted(harness) {
  const before = (await harness.call('/runs?workflow=restart-database&state=succeeded')).runs[0]?.run_id;
  if (before !== undefined) return before;
  const run = await harness.begin('restart-database', { incident: 'INC3000' });
  await harness.reaches(run, 'waiting_approval');
  const { approval } = (await harness.call(`/approvals?run=${run}`)).approvals[0];
  for (const name of ['bob', 'cleo']) await approve(harness, name, approval);
  await harness.reaches(run, 'succeeded');
  return run;
}

async function approve(harness, name, approval, comment = '') {
  const page = await harness.signIn(name, `/approvals/${approval}`);
  await page.getByRole('button', { name: 'Approve …' }).click();
  await page.getByLabel('Comment').fill(comment);
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  await page.locator('dialog[open]').waitFor({ state: 'detached' });
  await page.context().close();
}
