/** What happened over time, in equal spans: how many runs ended in each, how many failed, and how many were under way. */

import type { RunState } from '../api/client';

/** What is known of a run: when it began, when it ended, and how. */
export interface Lived {
  state: RunState;
  created_at: number;
  finished_at?: number | null;
}

export interface Bucket {
  from: number;
  to: number;
  started: number;
  succeeded: number;
  failed: number;
  canceled: number;
  /** Runs that had begun and not ended when the span was over. */
  open: number;
  /** Approvals that were asked for and not decided by then, where that is known. */
  approvals?: number;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Spans that people count in. */
const LENGTHS = [10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 24 * HOUR];
export const BUCKETS_MAX = 40;

/** The shortest of those spans that needs no more than `BUCKETS_MAX` of them. */
export function lengthOf(from: number, to: number): number {
  return LENGTHS.find((length) => Math.ceil(to / length) - Math.floor(from / length) <= BUCKETS_MAX) ?? Math.ceil((to - from) / BUCKETS_MAX);
}

export function buckets(runs: readonly Lived[], from: number, to: number): Bucket[] {
  const length = lengthOf(from, to);
  const first = Math.floor(from / length) * length;
  const count = Math.max(1, Math.min(BUCKETS_MAX, Math.ceil((to - first) / length)));
  const list = Array.from({ length: count }, (_, index): Bucket => {
    const begins = first + index * length;
    return { from: begins, to: begins + length, started: 0, succeeded: 0, failed: 0, canceled: 0, open: 0 };
  });
  const at = (instant: number) => Math.floor((instant - first) / length);
  for (const { state, created_at, finished_at } of runs) {
    const begun = at(created_at);
    const ended = finished_at == null ? count : at(finished_at);
    if (list[begun] !== undefined) list[begun].started += 1;
    const last = list[ended];
    if (last !== undefined && (state === 'succeeded' || state === 'failed' || state === 'canceled')) last[state] += 1;
    for (let index = Math.max(0, begun); index < Math.min(ended, count); index++) list[index]!.open += 1;
  }
  return list;
}
