import { expect, it } from 'vitest';
import { commandFor, deedFor, hindrancesOf, isAt, isUnassigned, isUnserved, maintenanceOf, otherCapabilities, placesOf, provenControls, provenProfiles, standingOf } from './fleet';
import type { Queue, Worker } from './query';

const worker = (rest: Partial<Worker>) => ({ state: 'online', slots: 4, running: 0, ...rest }) as Worker;

it('says first what is wrong with a worker, then what it does', () => {
  expect(standingOf(worker({}))).toBe('idle');
  expect(standingOf(worker({ running: 2 }))).toBe('working');
  expect(standingOf(worker({ running: 2, silent: true }))).toBe('silent');
  expect(standingOf(worker({ running: 2, state: 'draining' }))).toBe('draining');
  expect(standingOf(worker({ running: 2, state: 'offline', silent: true }))).toBe('offline');
  expect(standingOf(worker({ running: 2, state: 'errored' }))).toBe('errored');
  expect(standingOf(worker({ running: 2, state: 'maintenance' }))).toBe('maintenance');
  expect(standingOf(worker({ running: 2, state: 'maintenance', silent: true }))).toBe('silent');
});

it('says why a worker is given less, and who may change that', () => {
  const fault = { check: 'canary' as const, why: 'no seccomp', since: 1, run_id: 'run_1' };
  expect(hindrancesOf(worker({ state: 'errored', fault }))).toEqual([
    'canary: no seccomp (run_1). It is given no commands until its sandbox holds again.',
  ]);
  const maintenance = { by: 'olga', reason: 'a new disk', since: 1 };
  expect(hindrancesOf(worker({ state: 'maintenance', maintenance }))).toEqual(['In maintenance by olga: a new disk.']);
  expect(maintenanceOf(worker({}))).toBe('begin');
  expect(maintenanceOf(worker({ state: 'maintenance', maintenance }))).toBe('end');
  expect(maintenanceOf(worker({ shared: true }))).toBeUndefined();
  expect(maintenanceOf(worker({ state: 'draining' }))).toBeUndefined();
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

it('names what the waiting steps need: a task, commands, capabilities', () => {
  const unclaimed = { cause: 'unclaimed' as const, queue: 'default', since: 1 };
  const assigning = { cause: 'assigning' as const, queue: 'default', attempts_max: 3, needs: ['command:dev-flex', 'workdir', 'gpu'] };
  expect(commandFor('default', [{ ...unclaimed, task: 'db.inspect' }])).toBe('interlock worker --task db.inspect=PROGRAM');
  expect(commandFor('default', [{ ...unclaimed, needs: ['command:dev-flex'] }])).toBe('interlock worker --commands FILE');
  expect(commandFor('default', [{ ...unclaimed, task: 'db.inspect', needs: ['gpu', 'label:rack=a', 'max_latency_ms:50'] }])).toBe(
    'interlock worker --task db.inspect=PROGRAM --capability gpu --label rack=a',
  );
  expect(commandFor('default', [assigning])).toBe('interlock worker --commands FILE --capability gpu');
  expect(commandFor('default', [assigning, { ...unclaimed, task: 'a' }, { ...unclaimed, task: 'b' }])).toBe(
    'interlock worker --commands FILE --task NAME=PROGRAM --capability gpu',
  );
});

it('tells proven sandbox profiles from what else a worker can do', () => {
  const able = worker({ capabilities: ['effects', 'command:prod-critical', 'command:dev-flex', 'control:seccomp', 'ssh'] });
  expect(provenProfiles(able)).toEqual(['prod-critical', 'dev-flex']);
  expect(provenControls(able)).toEqual(['seccomp']);
  expect(otherCapabilities(able)).toEqual(['effects', 'ssh']);
  expect(provenProfiles(worker({}))).toEqual([]);
});

it('counts living workers by environment and segment', () => {
  const terms = (environments: string[], segments: string[]) => ({ environments, segments, profiles: [] });
  const fleet = [
    worker({ terms: terms(['prod'], ['vpc-a']), running: 1 }),
    worker({ terms: terms(['prod', 'staging'], []), running: 2 }),
    worker({ terms: terms(['*'], ['vpc-a']) }),
    worker({ terms: terms(['dev'], []), state: 'offline' }),
    worker({}),
  ];
  expect(placesOf(fleet).map(({ kind, name, workers, running, slots }) => [kind, name, workers, running, slots])).toEqual([
    ['environment', '*', 1, 0, 4],
    ['environment', 'prod', 2, 3, 8],
    ['environment', 'staging', 1, 2, 4],
    ['segment', 'vpc-a', 2, 1, 8],
  ]);
  expect(fleet.filter((each) => isAt(each, 'environment', 'staging'))).toHaveLength(2);
  expect(fleet.filter((each) => isAt(each, 'segment', 'vpc-a'))).toHaveLength(2);
  expect(placesOf([worker({})])).toEqual([]);
});

it('offers to drain what works, to forget what has gone, and neither for one inside a server', () => {
  expect(deedFor(worker({}))).toBe('drain');
  expect(deedFor(worker({ state: 'draining' }))).toBeUndefined();
  expect(deedFor(worker({ shared: true }))).toBeUndefined();
  expect(deedFor(worker({ state: 'offline' }))).toBe('forget');
  expect(deedFor(worker({ state: 'offline', running: 1 }))).toBeUndefined();
});

it('finds the runs whose step nobody of a queue has', () => {
  const unclaimed = { cause: 'unclaimed' as const, queue: 'gpu', since: 1, step: 'a' };
  expect(isUnassigned([unclaimed], 'gpu')).toBe(true);
  expect(isUnassigned([unclaimed], 'default')).toBe(false);
  expect(isUnassigned([{ cause: 'assigning' as const, queue: 'gpu', attempts_max: 3 }], 'gpu')).toBe(true);
  expect(isUnassigned([], 'gpu')).toBe(false);
});
