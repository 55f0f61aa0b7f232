/** The fleet. Heartbeats are no events, so it is asked for again every few seconds. */

import { queryOptions } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { isUnassigned } from './fleet';

export type Worker = Schema['WorkerView'];
export type Queue = Schema['QueueView'];
export type Identity = Schema['WorkerIdentityView'];

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

/** Runs that are asked why they wait. */
const WAITING_MAX = 20;

/** Runs whose step no worker has, and why: the newest that have not ended, each asked by itself. */
export const unassignedQuery = (queue: string) =>
  queryOptions({
    queryKey: ['workers', 'unassigned', queue],
    queryFn: async () => {
      const state: Schema['RunState'][] = ['pending', 'running'];
      const { runs } = await must(api.GET('/api/v1/runs', { params: { query: { state, limit: WAITING_MAX } } }));
      const asked = runs.map(async (run) => ({ run, why: await must(api.GET('/api/v1/runs/{run}/why', { params: { path: { run: run.run_id } } })) }));
      return (await Promise.all(asked)).filter(({ why }) => isUnassigned(why.because, queue));
    },
  });

export const identitiesQuery = queryOptions({
  queryKey: ['workers', 'identities'],
  queryFn: async () => (await must(api.GET('/api/v1/worker-identities', { params: { query: { limit: 200 } } }))).identities,
});
