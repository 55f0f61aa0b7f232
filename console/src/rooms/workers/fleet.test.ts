import { expect, it } from 'vitest';
import { commandFor, isUnserved, standingOf } from './fleet';
import type { Queue, Worker } from './query';

const worker = (rest: Partial<Worker>) => ({ state: 'online', slots: 4, running: 0, ...rest }) as Worker;

it('says first what is wrong with a worker, then what it does', () => {
  expect(standingOf(worker({}))).toBe('idle');
  expect(standingOf(worker({ running: 2 }))).toBe('working');
  expect(standingOf(worker({ running: 2, silent: true }))).toBe('silent');
  expect(standingOf(worker({ running: 2, state: 'draining' }))).toBe('draining');
  expect(standingOf(worker({ running: 2, state: 'offline', silent: true }))).toBe('offline');
});

it('warns of a queue with steps and without workers only', () => {
  const queue = (rest: Partial<Queue>) => ({ queue: 'default', ready: 0, delayed: 0, running: 0, workers: 0, ...rest }) as Queue;
  expect(isUnserved(queue({ ready: 3 }))).toBe(true);
  expect(isUnserved(queue({ ready: 3, workers: 1 }))).toBe(false);
  expect(isUnserved(queue({ delayed: 3 }))).toBe(false);
});

it('names the queue where it is not the usual one', () => {
  expect(commandFor('default')).toBe('interlock worker --task NAME=PROGRAM');
  expect(commandFor('gpu')).toBe('interlock worker --queue gpu --task NAME=PROGRAM');
});
