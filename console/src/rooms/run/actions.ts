/** What can be done about a run now. The server says what helps; a few things are always possible. */

import type { Run, RunState, Schema, Step, StepState } from '../../api/client';

export type Action = 'approve' | 'reject' | 'resolve' | 'retry' | 'reassign' | 'resume' | 'skip' | 'signal' | 'rollback' | 'restart' | 'pause' | 'cancel';

const OVER: RunState[] = ['succeeded', 'failed', 'canceled'];
const PAUSABLE: RunState[] = ['pending', 'running', 'waiting_approval', 'waiting_signal'];

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

export function actionsFor(run: Run, remedies: readonly Schema['Remedy'][], rights: Rights): Action[] {
  const found: Action[] = [];
  for (const remedy of remedies) {
    if (remedy === 'wait' || remedy === 'start_worker') continue;
    const votes = remedy === 'approve' || remedy === 'reject';
    if (votes ? rights.vote : rights.operate) found.push(remedy);
  }
  if (!rights.operate) return found;
  if (isOver(run.state) && !found.includes('restart')) found.push('restart');
  // Another run undoes it; the server knows whether there is anything to undo.
  if (run.state === 'succeeded' && run.trigger?.type !== 'rollback') found.push('rollback');
  if (PAUSABLE.includes(run.state) && run.control === 'active') found.push('pause');
  // A run from which another one was made is the past: the last one of the chain is the one to go on from.
  return run.continued_by == null ? found : found.filter((action) => action !== 'retry' && action !== 'restart');
}
