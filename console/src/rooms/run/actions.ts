/** What can be done about a run now. The server says what helps; a few things are always possible. */

import type { Run, RunState, Schema, Step, StepState } from '../../api/client';

export type Action = 'approve' | 'reject' | 'resolve' | 'retry' | 'reassign' | 'resume' | 'skip' | 'signal' | 'rollback' | 'restart' | 'pause' | 'cancel';

const OVER: RunState[] = ['succeeded', 'failed', 'canceled'];
const PAUSABLE: RunState[] = ['pending', 'running', 'waiting_approval', 'waiting_signal', 'rolling_back'];

/** How long a worker may have a run and not begin its step before a search for another one is offered. */
const IDLE_MS = 10_000;

export function isOver(state: RunState): boolean {
  return OVER.includes(state);
}

const STOPPED: StepState[] = ['skipped', 'failed', 'canceled', 'rolled_back'];

/** It writes nothing more, but may begin again: the server keeps its output open. The output of one that succeeded ends by itself. */
export function hasStopped(step: Step): boolean {
  return STOPPED.includes(step.state);
}

export interface Rights {
  operate: boolean;
  vote: boolean;
}

/** What else is known of the run: its steps, and why it stands where it stands at this moment. */
export interface Standing {
  steps: readonly Step[];
  because: readonly Schema['Cause'][];
  now: number;
}

const UNKNOWN: Standing = { steps: [], because: [], now: 0 };

export function actionsFor(run: Run, remedies: readonly Schema['Remedy'][], rights: Rights, standing = UNKNOWN): Action[] {
  const found = new Set<Action>();
  for (const remedy of remedies) {
    if (remedy === 'wait' || remedy === 'start_worker' || remedy === 'switch_on') continue;
    const votes = remedy === 'approve' || remedy === 'reject';
    if (votes ? rights.vote : rights.operate) found.add(remedy);
  }
  if (!rights.operate) return [...found];
  // No run is made from one that has left an effect in doubt.
  if (isOver(run.state) && !found.has('resolve')) found.add('restart');
  // Another run undoes it; the server knows whether there is anything to undo.
  if (run.state === 'succeeded' && run.trigger?.type !== 'rollback') found.add('rollback');
  // A run that a person has paused may be undone, once nothing runs. It is rolled back once.
  const isStill = !standing.steps.some((step) => step.state === 'running') && !isBeingUndone(standing.steps);
  if (run.state === 'paused' && found.has('resume') && isStill) found.add('rollback');
  if (PAUSABLE.includes(run.state) && run.control === 'active') found.add('pause');
  if (isUnattended(run, standing)) found.add('reassign');
  // A run from which another one was made is the past: the last one of the chain is the one to go on from.
  if (run.continued_by != null) {
    found.delete('retry');
    found.delete('restart');
  }
  return [...found];
}

/** Whether its rollback has begun. */
export function isBeingUndone(steps: readonly Step[]): boolean {
  return steps.some((step) => step.kind === 'rollback');
}

/** Whether a worker can be looked for though none was lost: the one that has the run does not begin, or none was found at once. */
function isUnattended(run: Run, { because, now }: Standing): boolean {
  if (run.control !== 'active') return false;
  return because.some((cause) => {
    if (cause.cause === 'assigning') return cause.asked == null && (cause.failures ?? []).length > 0;
    const shares = cause.cause === 'unclaimed' && (cause.needs ?? []).includes('workdir');
    return shares && run.assignment?.state === 'acked' && now - cause.since > IDLE_MS;
  });
}

/** Steps that a run can go back over: nothing of theirs is under way or unknown. */
const REWINDABLE: StepState[] = ['ready', 'waiting_approval', 'waiting_signal', 'succeeded', 'skipped', 'failed'];

/** Whether the run can begin again at a step. `asks`: people are asked whether it goes on. */
export function canRestartFrom(step: Step, run: Run, steps: readonly Step[], asks: boolean): boolean {
  if (step.kind === 'rollback' || run.continued_by != null) return false;
  if (isOver(run.state)) return !steps.some((each) => each.state === 'in_doubt');
  const passed = steps.filter((each) => each.position >= step.position && each.position <= run.position);
  const isFree = passed.length > 0 && passed.every((each) => REWINDABLE.includes(each.state));
  return run.state === 'paused' && isFree && !asks && !isBeingUndone(steps);
}
