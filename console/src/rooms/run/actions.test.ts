import { expect, it } from 'vitest';
import type { Run } from '../../api/client';
import { actionsFor } from './actions';

const run = (state: Run['state'], rest: Partial<Run> = {}) => ({ state, control: 'active', ...rest }) as Run;
const all = { operate: true, vote: true };

it('offers only what the person may do', () => {
  const waiting = run('waiting_approval');
  expect(actionsFor(waiting, ['approve', 'reject', 'cancel'], all)).toEqual(['approve', 'reject', 'cancel', 'pause']);
  expect(actionsFor(waiting, ['approve', 'reject', 'cancel'], { operate: false, vote: true })).toEqual(['approve', 'reject']);
  expect(actionsFor(waiting, ['approve', 'reject', 'cancel'], { operate: false, vote: false })).toEqual([]);
});

it('goes on from the last run of a chain only', () => {
  expect(actionsFor(run('failed'), ['retry', 'restart'], all)).toEqual(['retry', 'restart']);
  expect(actionsFor(run('failed', { continued_by: 'run_2' }), ['retry', 'restart'], all)).toEqual([]);
  expect(actionsFor(run('succeeded'), [], all)).toEqual(['restart', 'rollback']);
  expect(actionsFor(run('succeeded', { trigger: { type: 'rollback' } }), [], all)).toEqual(['restart']);
});

it('has another worker looked for where one was lost', () => {
  expect(actionsFor(run('paused'), ['reassign', 'retry', 'cancel'], all)).toEqual(['reassign', 'retry', 'cancel']);
  expect(actionsFor(run('paused'), ['reassign', 'retry', 'cancel'], { operate: false, vote: true })).toEqual([]);
});
