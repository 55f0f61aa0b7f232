import { expect, it } from 'vitest';
import type { Run, Step } from '../../api/client';
import { actionsFor, canRestartFrom, type Standing } from './actions';

const run = (state: Run['state'], rest: Partial<Run> = {}) => ({ state, control: 'active', ...rest }) as Run;
const all = { operate: true, vote: true };
const steps = (...of: Partial<Step>[]) => of.map((step, position) => ({ kind: 'task', position, ...step }) as Step);
const standing = (rest: Partial<Standing>): Standing => ({ steps: [], because: [], now: 0, ...rest });

it('offers only what the person may do', () => {
  const waiting = run('waiting_approval');
  expect(actionsFor(waiting, ['approve', 'reject', 'cancel'], all)).toEqual(['approve', 'reject', 'cancel', 'pause']);
  expect(actionsFor(waiting, ['approve', 'reject', 'cancel'], { operate: false, vote: true })).toEqual(['approve', 'reject']);
  expect(actionsFor(waiting, ['approve', 'reject', 'cancel'], { operate: false, vote: false })).toEqual([]);
});

it('goes on from the last run of a chain only', () => {
  expect(actionsFor(run('failed'), ['retry', 'restart'], all)).toEqual(['retry', 'restart']);
  expect(actionsFor(run('failed', { continued_by: 'run_2' }), ['retry', 'restart'], all)).toEqual([]);
  expect(actionsFor(run('canceled'), ['resolve'], all)).toEqual(['resolve']);
  expect(actionsFor(run('succeeded'), [], all)).toEqual(['restart', 'rollback']);
  expect(actionsFor(run('succeeded', { trigger: { type: 'rollback' } }), [], all)).toEqual(['restart']);
});

it('has another worker looked for where one was lost', () => {
  expect(actionsFor(run('paused'), ['reassign', 'retry', 'cancel'], all)).toEqual(['reassign', 'retry', 'cancel']);
  expect(actionsFor(run('paused'), ['reassign', 'retry', 'cancel'], { operate: false, vote: true })).toEqual([]);
});

it('has a run undone that a person has paused, once nothing runs', () => {
  const paused = run('paused', { control: 'paused' });
  expect(actionsFor(paused, ['resume', 'cancel'], all, standing({ steps: steps({ state: 'ready' }) }))).toEqual(['resume', 'cancel', 'rollback']);
  expect(actionsFor(paused, ['resume', 'cancel'], all, standing({ steps: steps({ state: 'running' }) }))).toEqual(['resume', 'cancel']);
});

it('stops a rollback and lets it go on, and offers no second one', () => {
  const undoing = standing({ steps: steps({ state: 'succeeded' }, { kind: 'rollback', state: 'failed' }) });
  expect(actionsFor(run('rolling_back'), ['wait'], all, undoing)).toEqual(['pause']);
  expect(actionsFor(run('rolling_back', { control: 'paused' }), ['resume', 'cancel'], all, undoing)).toEqual(['resume', 'cancel']);
  expect(actionsFor(run('paused', { control: 'paused' }), ['resume', 'cancel'], all, undoing)).toEqual(['resume', 'cancel']);
});

it('lets a run that undoes another be given up as long as people are asked about it', () => {
  const undo = run('rolling_back', { trigger: { type: 'rollback' } });
  const stands = (state: Step['state']) => standing({ steps: steps({ state: 'succeeded' }, { kind: 'rollback', state }) });
  expect(actionsFor(undo, ['approve', 'reject', 'cancel'], { operate: true, vote: false }, stands('waiting_approval'))).toEqual(['cancel', 'pause']);
  expect(actionsFor(undo, ['wait'], all, stands('running'))).toEqual(['pause']);
});

it('has another worker looked for where the one that has the run does not begin', () => {
  const because: Standing['because'] = [{ cause: 'unclaimed', queue: 'default', needs: ['workdir'], since: 0, workers: 1 }];
  const had = run('pending', { assignment: { attempt: 1, state: 'acked', worker: 'box' } });
  expect(actionsFor(had, ['cancel'], all, standing({ because, now: 11_000 }))).toContain('reassign');
  expect(actionsFor(had, ['cancel'], all, standing({ because, now: 9_000 }))).not.toContain('reassign');
  expect(actionsFor(run('pending'), ['cancel'], all, standing({ because, now: 11_000 }))).not.toContain('reassign');
});

it('has another worker looked for where an attempt has come to nothing, and none is asked', () => {
  const assigning = { cause: 'assigning' as const, attempts_max: 3, queue: 'default', needs: [] };
  const failures = [{ why: 'no worker is connected', at: 0 }];
  const offered = (rest: object) => actionsFor(run('pending'), ['cancel'], all, standing({ because: [{ ...assigning, ...rest }] })).includes('reassign');
  expect([offered({}), offered({ failures }), offered({ failures, asked: 'box' })]).toEqual([false, true, false]);
});

it('begins again at a step that was reached, while nothing else is under way', () => {
  const paused = run('paused', { position: 1 });
  const list = steps({ state: 'succeeded' }, { state: 'failed' }, { state: 'pending' });
  expect(list.map((step) => canRestartFrom(step, paused, list, false))).toEqual([true, true, false]);
  expect(list.map((step) => canRestartFrom(step, run('failed', { position: 1 }), list, false))).toEqual([true, true, true]);
  expect(canRestartFrom(list[0]!, paused, list, true)).toBe(false);
  for (const other of [{ state: 'running' }, { state: 'in_doubt' }, { kind: 'rollback', state: 'failed' }] as const) {
    expect(canRestartFrom(list[0]!, paused, steps({ state: 'succeeded' }, other), false)).toBe(false);
  }
});
