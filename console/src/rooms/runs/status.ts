/** How the tenant's work stands, by what the server counts. */

import { queryOptions } from '@tanstack/react-query';
import { api, must, type RunState, type Schema } from '../../api/client';

export type Status = Schema['StatusView'];

export const statusQuery = queryOptions({
  queryKey: ['status'],
  queryFn: () => must(api.GET('/api/v1/status')),
  refetchInterval: 5_000,
});

export interface Tally {
  state: RunState;
  runs: number;
}

/** From what waits to begin to what goes back. */
const ORDER: RunState[] = ['pending', 'running', 'waiting_signal', 'waiting_approval', 'paused', 'rolling_back'];

/** Runs that have not ended, by state alone: the server counts each reason apart. */
export function tallies(counted: Status['runs']): Tally[] {
  const sums = new Map<RunState, number>();
  for (const { state, runs } of counted) sums.set(state, (sums.get(state) ?? 0) + runs);
  const place = (state: RunState) => (ORDER.includes(state) ? ORDER.indexOf(state) : ORDER.length);
  return [...sums].map(([state, runs]) => ({ state, runs })).filter(({ runs }) => runs > 0).toSorted((a, b) => place(a.state) - place(b.state));
}

export interface Backlog {
  ready: number;
  running: number;
  /** Since when the oldest step of any queue can be claimed. */
  oldest?: number;
}

export function backlog(queues: Status['queues']): Backlog {
  const since = queues.map((queue) => queue.oldest_ready_at).filter((at) => at != null);
  return {
    ready: queues.reduce((sum, queue) => sum + queue.ready, 0),
    running: queues.reduce((sum, queue) => sum + queue.running, 0),
    oldest: since.length === 0 ? undefined : Math.min(...since),
  };
}
