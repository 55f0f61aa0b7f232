import { expect, it } from 'vitest';
import { instants, sentence, toldCauses } from './why';

it('says who is missing, and who does not count', () => {
  const cause = {
    cause: 'approval' as const, approval: 'apr_1', needed: 2, approved_by: ['bob'], approvers: ['sre'],
    excluded: ['ada'], expires_at: 3_600_000,
  };
  expect(sentence(cause, 0)).toBe(
    'It waits for 1 more approval from a member of sre (bob approved already); not ada, who started or directed it, or wrote its workflow. It expires in 1 h.',
  );
  expect(sentence({ ...cause, self_approval: true }, 0)).toBe(
    'It waits for 1 more approval from a member of sre (bob approved already). ada started or directed it and may approve it all the same: ' +
      'the tenant lets people approve their own runs. It expires in 1 h.',
  );
});

it('names the task that no worker has', () => {
  const cause = { cause: 'unclaimed' as const, queue: 'default', task: 'db.inspect', since: 0, workers: 0 };
  expect(sentence(cause, 5_000)).toBe(
    'It has waited 5.0 s for a worker to run the task “db.inspect”: no registered worker of the queue “default” has that task.',
  );
});

it('tells who approved a run that has ended, and which rule had asked', () => {
  const approvals = [{ approval: 'apr_1', step: 'wipe', state: 'approved' as const, asked: 'two_keys: it destroys', approved_by: ['ada', 'bob'] }];
  expect(sentence({ cause: 'ended' as const, at: 0, approvals }, 0)).toMatch(
    /Step “wipe” was approved by ada and bob \(two_keys: it destroys\)\.$/,
  );
});

it('names the workers that the policy refused, with the rule', () => {
  const refused = [{ session: 'ses_1', worker: 'box-7', why: 'by_worker: it has no certificate', bundle: '00', at: 0 }];
  const cause = { cause: 'unclaimed' as const, queue: 'default', task: 'pay', since: 0, workers: 1, refused };
  expect(sentence(cause, 5_000)).toMatch(/The policy refused the worker “box-7”: by_worker: it has no certificate\.$/);
});

it('says how long a worker has been silent, and when its step is taken back', () => {
  const cause = { cause: 'silent' as const, session: 'ses_1', worker: 'box-1', attempt: 2, last_heartbeat_at: 0, lease_expires_at: 30_000 };
  expect(sentence(cause, 12_000)).toBe(
    'The worker “box-1” that has attempt 2 was last heard of 12 s ago. The step is taken back in 18 s, unless it comes back.',
  );
});

it('answers why nobody takes a run', () => {
  const failures = [{ worker: 'box-1', session: 'ses_1', check: 'credentials' as const, why: 'DB is not there', at: 0 }];
  const cause = { cause: 'assigning' as const, failures, attempts_max: 3, queue: 'default', needs: ['workdir'], workers: 0, until: 15_000 };
  expect(sentence(cause, 0)).toBe(
    'No worker has taken the run, and no other worker of the queue “default” has workdir; this attempt ends in 15 s. ' +
      'Attempt 1 of 3: box-1: credentials: DB is not there.',
  );
});

it('names what an operator has switched off or taken out of service, and that the run waits', () => {
  const cause = { cause: 'assigning' as const, attempts_max: 3, queue: 'default', needs: ['workdir'], workers: 0, until: 15_000, waits: true };
  const nobody = 'No worker has taken the run, and no other worker of the queue “default” has workdir.';
  const waits = 'The run waits, however long that takes: no attempt is counted.';
  const off = 'worker_orchestration.enabled is off, so that only the server’s own worker may take it; an admin switches it on with “interlock flag set worker_orchestration.enabled true”.';
  expect(sentence({ ...cause, only_embedded: true }, 0)).toBe(`${nobody} ${off} ${waits}`);
  expect(sentence({ ...cause, left_by: 'box-7' }, 0)).toBe(`${nobody} “box-7”, which had it, has left in good order. ${waits}`);
  const unclaimed = { cause: 'unclaimed' as const, queue: 'default', task: 'pay', since: 0, workers: 0, only_embedded: true };
  expect(sentence(unclaimed, 5_000)).toMatch(/has that task\. worker_orchestration\.enabled is off, so that only the server’s own worker takes steps;/);
  const kept = { session: 'ses_1', worker: 'box', reason: 'maintenance' as const, why: 'a new disk (olga)' };
  expect(sentence({ cause: 'passed_over', workers: [kept] }, 0)).toBe('“box” is skipped: maintenance: a new disk (olga). An operator can end that among the workers.');
});

it('tells equal reasons once, and looks for nobody once the run is over', () => {
  const failure = (why: string) => ({ why, at: 0 });
  const failures = [failure('no worker is connected'), failure('no worker is connected'), failure('all are busy')];
  const cause = { cause: 'assigning' as const, failures, attempts_max: 3, queue: 'default' };
  expect(sentence(cause, 0, true)).toBe('No worker has taken the run. Attempts 1 and 2 of 3: no worker is connected. Attempt 3 of 3: all are busy.');
  expect(sentence(cause, 0)).toMatch(/^A worker is looked for/);
});

it('names the worker that runs the step', () => {
  const cause = { cause: 'running' as const, session: 'ses_1', attempt: 1, since: 0 };
  expect(sentence({ ...cause, worker: 'box-1' }, 5_000)).toBe('The worker “box-1” has been running attempt 1 for 5.0 s.');
  expect(sentence(cause, 5_000)).toBe('A worker has been running attempt 1 for 5.0 s.');
  const late = sentence({ ...cause, last_heartbeat_at: 0, expected_every_ms: 5_000 }, 7_000);
  expect(late).toMatch(/for 7\.0 s\. It was last heard of .*, and it should be every 5\.0 s: it may be dead/);
});

it('leaves out what a more exact cause says better, but never the pause that a person asked for', () => {
  const lost = { cause: 'worker_lost' as const, step: 'a' };
  const failed = { cause: 'step_failed' as const, step: 'a' };
  const paused = { cause: 'paused' as const, reason: 'worker lost', since: 0 };
  expect(toldCauses([paused, lost, failed])).toEqual([lost]);
  expect(toldCauses([{ ...paused, by: 'ada' }, lost])).toEqual([{ ...paused, by: 'ada' }, lost]);
  expect(toldCauses([paused, failed])).toEqual([paused, failed]);
});

it('gives the instants behind its spans in UTC', () => {
  expect(instants({ cause: 'signal', signal: 's', key: 'k', since: 0, until: 60_000 })).toBe('since 1970-01-01 00:00:00 UTC\nuntil 1970-01-01 00:01:00 UTC');
  expect(instants({ cause: 'step_failed', step: 'a' })).toBe(undefined);
});

it('says of a worker that is too far away that it is', () => {
  const far = { session: 'ses_1', worker: 'box', reason: 'latency' as const, why: 'its calls take 90 ms to be answered' };
  expect(sentence({ cause: 'passed_over', workers: [far] }, 0)).toBe('“box” is skipped: too far away: its calls take 90 ms to be answered.');
});

it('names the control that the host of a worker lacks', () => {
  const lacks = { session: 'ses_1', worker: 'box', reason: 'controls' as const, why: 'its host lacks the control `cgroup_cpu`' };
  expect(sentence({ cause: 'passed_over', workers: [lacks] }, 0)).toBe('“box” is skipped: missing controls: its host lacks the control `cgroup_cpu`.');
});

it('says of the worker inside a server that commands of several tenants are not its own', () => {
  const inside = { session: 'ses_1', worker: 'box', reason: 'several_tenants' as const, why: 'it serves all tenants' };
  expect(sentence({ cause: 'passed_over', workers: [inside] }, 0)).toBe('“box” is skipped: several tenants: it serves all tenants.');
});

it('says of a worker that has just come back that others are asked first', () => {
  const back = { session: 'ses_1', worker: 'box', reason: 'recently_offline' as const, why: 'others are asked first' };
  expect(sentence({ cause: 'passed_over', workers: [back] }, 0)).toBe('“box” is skipped: recently offline: others are asked first.');
});

it('names the workers that are passed over, and why', () => {
  const bound = { session: 'ses_1', worker: 'box', reason: 'environment' as const, why: 'it is bound to `dev`' };
  const errored = { session: 'ses_2', worker: 'other', reason: 'errored' as const, check: 'canary' as const, why: 'no seccomp', since: 0 };
  expect(sentence({ cause: 'passed_over', workers: [bound, errored] }, 0)).toBe(
    '“box” is skipped: out of its bounds: it is bound to `dev`. ' +
      '“other” is skipped: errored since 1970-01-01 00:00:00 UTC: canary: no seccomp.',
  );
});
