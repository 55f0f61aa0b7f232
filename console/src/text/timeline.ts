/** A run's events as bars: per step, one segment for each attempt, wait and pause in between. */

import type { EventBody, RunEvent } from './events';

export type SegmentKind = 'worked' | 'failed' | 'retry' | 'signal' | 'approval' | 'doubt' | 'queued';

export interface Segment {
  kind: SegmentKind;
  from: number;
  /** Absent while it goes on. */
  to?: number;
  attempt?: number;
  note?: string;
}

/** Which segment an event begins, if it begins one. */
function begins(body: EventBody): SegmentKind | undefined {
  switch (body.event) {
    case 'execution.step.started':
      return 'worked';
    case 'execution.step.waiting':
      return 'signal';
    case 'execution.step.retrying':
      return 'retry';
    case 'execution.step.ready':
      // A step whose rollback has succeeded does not wait for a worker.
      return body.why === 'rolled_back' ? undefined : 'queued';
    case 'execution.step.in_doubt':
      return 'doubt';
    case 'approval.requested':
      return 'approval';
    default:
      return undefined;
  }
}

const ENDS = new Set([
  'execution.step.completed',
  'execution.step.failed',
  'execution.step.skipped',
  'execution.step.canceled',
  'approval.resolved',
]);

const FAILS = new Set(['execution.step.retrying', 'execution.step.failed', 'execution.step.in_doubt']);

/** Position of the step → its segments, oldest first. */
export function segments(events: readonly RunEvent[]): Map<number, Segment[]> {
  const found = new Map<number, Segment[]>();
  const close = (list: Segment[], at: number) => {
    const open = list.at(-1);
    if (open !== undefined && open.to === undefined) open.to = at;
    return open;
  };
  for (const { at, body } of events) {
    if (body.event.startsWith('session.')) {
      // What the run's end leaves open ends with it.
      const over = body.event === 'session.failed' || (body.event === 'session.canceled' && body.done !== false);
      if (over) for (const list of found.values()) close(list, at);
      continue;
    }
    if (body.step === undefined) continue;
    const list = found.get(body.step) ?? [];
    found.set(body.step, list);
    const kind = begins(body);
    if (kind === undefined && !ENDS.has(body.event)) continue;
    const before = close(list, at);
    // An attempt that left the step in doubt was lost, or gave up.
    const failed = FAILS.has(body.event);
    if (failed && before?.kind === 'worked') {
      before.kind = 'failed';
      before.note = body.error?.message;
    }
    if (kind !== undefined) list.push({ kind, from: at, attempt: body.attempt });
  }
  return found;
}

export const SEGMENT_WORDS: Record<SegmentKind, string> = {
  worked: 'running',
  failed: 'failed attempt',
  retry: 'waiting to try again',
  signal: 'waiting',
  approval: 'waiting for approval',
  doubt: 'in doubt',
  queued: 'ready',
};
