import { expect, it } from 'vitest';
import type { EventBody, RunEvent } from './events';
import { segments } from './timeline';

const context = { initiator: 'system' as const };
function told(...list: [number, EventBody][]): RunEvent[] {
  return list.map(([at, body], index) => ({ seq: index + 1, at, body, context }));
}

it('shows a failed attempt, the pause after it, and the attempt that worked', () => {
  const events = told(
    [0, { event: 'session.created' }],
    [1, { event: 'execution.step.started', step: 0, attempt: 1 }],
    [5, { event: 'execution.step.retrying', step: 0, attempt: 1, error: { class: 'x', code: 'X', message: 'no' } }],
    [9, { event: 'execution.step.started', step: 0, attempt: 2 }],
    [12, { event: 'execution.step.completed', step: 0, attempt: 2 }],
  );
  expect(segments(events).get(0)).toEqual([
    { kind: 'failed', from: 1, to: 5, attempt: 1, note: 'no' },
    { kind: 'retry', from: 5, to: 9, attempt: 1 },
    { kind: 'worked', from: 9, to: 12, attempt: 2 },
  ]);
});

it('leaves open what goes on, and closes it when the run ends', () => {
  const waiting: [number, EventBody][] = [[3, { event: 'approval.requested', step: 2, approval: 'apr_1' }]];
  expect(segments(told(...waiting)).get(2)).toEqual([{ kind: 'approval', from: 3, attempt: undefined }]);
  const ended = told(...waiting, [8, { event: 'session.canceled', done: true, reason: 'over' }]);
  expect(segments(ended).get(2)?.[0]?.to).toBe(8);
});

it('a step that was rolled back is as long as it worked', () => {
  const events = told(
    [1, { event: 'execution.step.started', step: 0, attempt: 1 }],
    [5, { event: 'execution.step.completed', step: 0, attempt: 1 }],
    [90, { event: 'execution.step.ready', step: 0, why: 'rolled_back' }],
  );
  expect(segments(events).get(0)).toEqual([{ kind: 'worked', from: 1, to: 5, attempt: 1 }]);
});

it('shows an attempt that was lost in the middle of an effect as failed', () => {
  const events = told(
    [1, { event: 'execution.step.started', step: 0, attempt: 1 }],
    [5, { event: 'execution.step.in_doubt', step: 0, attempt: 1 }],
  );
  expect(segments(events).get(0)?.map((segment) => segment.kind)).toEqual(['failed', 'doubt']);
});
