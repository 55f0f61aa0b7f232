import { expect, it } from 'vitest';
import { backlog, tallies, type Status } from './status';

it('adds up what the server counts by reason, in the order of a run’s life', () => {
  const counted = [
    { state: 'paused', reason: 'in_doubt', runs: 1 },
    { state: 'running', runs: 7 },
    { state: 'paused', reason: 'step_failed', runs: 2 },
    { state: 'pending', runs: 0 },
  ] as Status['runs'];
  expect(tallies(counted)).toEqual([{ state: 'running', runs: 7 }, { state: 'paused', runs: 3 }]);
});

it('takes the oldest step of all queues', () => {
  const queue = (ready: number, oldest_ready_at?: number) => ({ queue: 'q', ready, running: 1, delayed: 0, workers: 1, oldest_ready_at });
  expect(backlog([queue(2, 50), queue(0), queue(3, 20)])).toEqual({ ready: 5, running: 3, oldest: 20 });
  expect(backlog([])).toEqual({ ready: 0, running: 0, oldest: undefined });
});
