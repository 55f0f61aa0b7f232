/** The fleet. Heartbeats are no events, so it is asked for again every few seconds. */

import { queryOptions } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';

export type Worker = Schema['WorkerView'];
export type Queue = Schema['QueueView'];

const EVERY_MS = 5_000;

export const workersQuery = (all: boolean) =>
  queryOptions({
    queryKey: ['workers', 'list', all],
    queryFn: async () => (await must(api.GET('/api/v1/workers', { params: { query: { all } } }))).workers,
    refetchInterval: EVERY_MS,
  });

export const workerQuery = (session: string) =>
  queryOptions({
    queryKey: ['workers', 'one', session],
    queryFn: () => must(api.GET('/api/v1/workers/{session}', { params: { path: { session } } })),
    refetchInterval: EVERY_MS,
  });

export const queuesQuery = queryOptions({
  queryKey: ['workers', 'queues'],
  queryFn: async () => (await must(api.GET('/api/v1/queues'))).queues,
  refetchInterval: EVERY_MS,
});
