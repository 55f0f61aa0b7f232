/** What a list of workers and queues says about the fleet as a whole. */

import type { Schema } from '../../api/client';
import type { Queue, Worker } from './query';

export type Standing = 'working' | 'idle' | 'draining' | 'maintenance' | 'silent' | 'errored' | 'offline';

/** One word for a worker: what it does, unless something is wrong with it. */
export function standingOf(worker: Worker): Standing {
  if (worker.state !== 'online' && !(worker.state === 'maintenance' && worker.silent === true)) return worker.state;
  if (worker.silent === true) return 'silent';
  return worker.running > 0 ? 'working' : 'idle';
}

/** Steps wait in the queue, and no worker takes from it. */
export function isUnserved(queue: Queue): boolean {
  return queue.workers === 0 && queue.ready > 0;
}

const COMMAND = 'command:';
const LABEL = 'label:';

/** What a worker says of itself without being told to. */
const BUILT_IN = ['workdir', 'effects'];

/** The command that starts a worker for a queue, and for the steps that wait for one, as their causes say. */
export function commandFor(queue?: string, causes: readonly Cause[] = []): string {
  const from = queue === undefined || queue === 'default' ? '' : ` --queue ${queue}`;
  const waiting = causes.filter((cause) => isWaiting(cause));
  const needs = new Set(waiting.flatMap((cause) => ('needs' in cause ? (cause.needs ?? []) : [])));
  const capabilities = [...needs].filter((name) => !name.includes(':') && !BUILT_IN.includes(name)).map((name) => ` --capability ${name}`);
  const labels = [...needs].filter((name) => name.startsWith(LABEL)).map((name) => ` --label ${name.slice(LABEL.length)}`);
  const commands = waiting.filter(isCommand);
  const others = waiting.filter((cause) => !isCommand(cause));
  const tasks = new Set(others.map((cause) => ('task' in cause ? cause.task : undefined) ?? 'NAME'));
  const task = others.length === 0 && commands.length > 0 ? '' : ` --task ${tasks.size === 1 ? [...tasks][0] : 'NAME'}=PROGRAM`;
  return `interlock worker${from}${commands.length > 0 ? ' --commands FILE' : ''}${task}${capabilities.join('')}${labels.join('')}`;
}

type Cause = Schema['Cause'];
type Waiting = Extract<Cause, { cause: 'unclaimed' | 'unknown_task' | 'assigning' }>;

/** The step waits for a worker. */
function isWaiting(cause: Cause): cause is Waiting {
  return cause.cause === 'unclaimed' || cause.cause === 'unknown_task' || cause.cause === 'assigning';
}

/** What waits is a command, or a run whose commands share a directory. */
function isCommand(cause: Waiting): boolean {
  return cause.cause === 'assigning' || (cause.cause === 'unclaimed' && cause.task == null && (cause.needs ?? []).length > 0);
}

const CONTROL = 'control:';

/** The sandbox profiles that the worker's host was proven able to keep, each by trying its controls out when it started. */
export function provenProfiles(worker: Worker): string[] {
  return (worker.capabilities ?? []).filter((name) => name.startsWith(COMMAND)).map((name) => name.slice(COMMAND.length));
}

/** Each control that was tried out on the worker's host and held: `seccomp`, `landlock`, `cgroup-memory`, … */
export function provenControls(worker: Worker): string[] {
  return (worker.capabilities ?? []).filter((name) => name.startsWith(CONTROL)).map((name) => name.slice(CONTROL.length));
}

export function otherCapabilities(worker: Worker): string[] {
  return (worker.capabilities ?? []).filter((name) => !name.startsWith(COMMAND) && !name.startsWith(CONTROL));
}

export type PlaceKind = 'environment' | 'segment';

/** Workers that have an environment or a network segment in common. */
export interface Place {
  kind: PlaceKind;
  /** `*` is every environment. */
  name: string;
  workers: number;
  running: number;
  slots: number;
}

function namesOf(worker: Worker, kind: PlaceKind): readonly string[] {
  return (kind === 'environment' ? worker.terms?.environments : worker.terms?.segments) ?? [];
}

/** Where the workers are that live: none where no worker has a certificate that says so. */
export function placesOf(workers: readonly Worker[]): Place[] {
  const places = new Map<string, Place>();
  for (const worker of workers.filter((each) => each.state !== 'offline')) {
    for (const kind of ['environment', 'segment'] as const) {
      for (const name of namesOf(worker, kind)) {
        const place = places.get(`${kind} ${name}`) ?? { kind, name, workers: 0, running: 0, slots: 0 };
        places.set(`${kind} ${name}`, { ...place, workers: place.workers + 1, running: place.running + worker.running, slots: place.slots + worker.slots });
      }
    }
  }
  return [...places.values()].sort((a, b) => a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name));
}

/** Whether the worker takes steps there; a worker of every environment does so in each. */
export function isAt(worker: Worker, kind: PlaceKind, name: string): boolean {
  const names = namesOf(worker, kind);
  return names.includes(name) || (kind === 'environment' && names.includes('*'));
}

/** What can be done about a worker: one inside a server comes and goes with it. */
export function deedFor(worker: Worker): 'drain' | 'forget' | undefined {
  if (worker.state === 'offline') return worker.running === 0 ? 'forget' : undefined;
  return worker.shared === true || worker.state === 'draining' ? undefined : 'drain';
}

/** Whether an operator can keep new work from the worker, or let it have some again. */
export function maintenanceOf(worker: Worker): 'begin' | 'end' | undefined {
  if (worker.shared === true || worker.state === 'offline' || worker.state === 'draining') return undefined;
  return worker.maintenance == null ? 'begin' : 'end';
}

/** Why the worker is given less than it could have, in words. */
export function hindrancesOf(worker: Worker): string[] {
  const { fault, maintenance } = worker;
  const run = fault?.run_id == null ? '' : ` (${fault.run_id})`;
  const by = maintenance?.by == null ? '' : ` by ${maintenance.by}`;
  return [
    ...(fault == null ? [] : [`${fault.check}: ${fault.why}${run}. It is given no commands until its sandbox holds again.`]),
    ...(maintenance == null ? [] : [`In maintenance${by}: ${maintenance.reason}.`]),
  ];
}

/** Why a run's step is with no worker of a queue, as its causes say it. */
export function isUnassigned(causes: readonly Cause[], queue: string): boolean {
  return causes.some((cause) => isWaiting(cause) && cause.queue === queue);
}
