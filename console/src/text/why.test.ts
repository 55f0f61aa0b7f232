import { expect, it } from 'vitest';
import { sentence } from './why';

it('says who is missing, and who does not count', () => {
  const cause = {
    cause: 'approval' as const, approval: 'apr_1', needed: 2, approved_by: ['bob'], approvers: ['sre'],
    excluded: ['ada'], expires_at: 3_600_000,
  };
  expect(sentence(cause, 0)).toBe(
    'It waits for 1 more approval from somebody of sre (bob approved already); not ada, who started or directed it. It expires in 1 h.',
  );
});

it('names the task that no worker has', () => {
  const cause = { cause: 'unclaimed' as const, queue: 'default', task: 'db.inspect', since: 0, workers: 0 };
  expect(sentence(cause, 5_000)).toBe(
    'It has waited 5.0 s for a worker to run the task “db.inspect”: no registered worker of the queue “default” has that task.',
  );
});
