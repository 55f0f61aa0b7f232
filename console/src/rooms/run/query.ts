/** What is asked about one run. All of it is out of date when an event of the run arrives. */

import { queryOptions, useQueryClient } from '@tanstack/react-query';
import { api, must, Refusal } from '../../api/client';
import { read, type RunEvent } from '../../text/events';

const path = (run: string) => ({ params: { path: { run } } });

export const runQuery = (run: string) =>
  queryOptions({ queryKey: ['run', run, 'run'], queryFn: () => must(api.GET('/api/v1/runs/{run}', path(run))) });

export const stepsQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'steps'],
    queryFn: async () => (await must(api.GET('/api/v1/runs/{run}/steps', path(run)))).steps,
  });

export const whyQuery = (run: string) =>
  queryOptions({ queryKey: ['run', run, 'why'], queryFn: () => must(api.GET('/api/v1/runs/{run}/why', path(run))) });

export const attemptsQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'attempts'],
    queryFn: async () => (await must(api.GET('/api/v1/runs/{run}/attempts', path(run)))).attempts,
  });

/** Which attempts of a step have written something. */
export const outputQuery = (run: string, step: string) =>
  queryOptions({
    queryKey: ['run', run, 'output', step],
    queryFn: () => must(api.GET('/api/v1/runs/{run}/steps/{step}/output', { params: { path: { run, step }, query: { limit: 1 } } })),
  });

export const receiptsQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'receipts'],
    queryFn: async () => (await must(api.GET('/api/v1/runs/{run}/receipts', path(run)))).receipts,
  });

export const decisionsQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'decisions'],
    queryFn: async () => (await must(api.GET('/api/v1/runs/{run}/decisions', path(run)))).decisions,
  });

/** What a rollback would undo: of everything, or of a step and what came after it. */
export const rollbackQuery = (run: string, step: string) =>
  queryOptions({
    queryKey: ['run', run, 'rollback', step],
    queryFn: () => must(api.GET('/api/v1/runs/{run}/rollback', { params: { path: { run }, query: step === '' ? {} : { step } } })),
  });

export const runApprovalsQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'approvals'],
    queryFn: async () => (await must(api.GET('/api/v1/approvals', { params: { query: { run, limit: 200 } } }))).approvals,
  });

/** A run of a thousand steps has some thousands of events; beyond this the page would be slow. */
export const EVENTS_MAX = 10_000;
const EVENTS_PAGE = 500;

/** All events, of which only those are fetched that the page does not have yet: they never change. */
export function useEventsQuery(run: string) {
  const queries = useQueryClient();
  const queryKey = ['run', run, 'events'];
  return queryOptions({
    queryKey,
    queryFn: async () => {
      let events = queries.getQueryData<RunEvent[]>(queryKey) ?? [];
      while (events.length < EVENTS_MAX) {
        const last = events.at(-1)?.seq ?? 0;
        const query = { last_event_id: String(last), limit: EVENTS_PAGE };
        const page = await must(api.GET('/api/v1/runs/{run}/events', { params: { path: { run }, query } }));
        if (page.events.length === 0) break;
        events = [...events, ...page.events.map(read)];
        if (page.events.length < EVENTS_PAGE) break;
      }
      return events;
    },
    structuralSharing: false,
  });
}

export type Phase = 'prechecks' | 'main' | 'postchecks';

/** One step as the workflow's file has it. */
export interface DefinedStep {
  id: string;
  description?: string;
  effect?: string;
  blast_radius?: string;
  if?: string;
  phase?: Phase;
  critical?: boolean;
  task?: string;
  uses?: string;
  run?: unknown;
  model?: unknown;
  transform?: unknown;
  wait?: unknown;
  approval?: unknown;
  rollback?: { task?: string; run?: unknown; uses?: string };
  retry?: unknown;
  with?: unknown;
}

/** The signal or the time that a step waits for. */
export function waitOf(step: DefinedStep): string {
  const wait = (step.wait ?? {}) as { signal?: string; for?: string; until?: string };
  return wait.signal ?? wait.for ?? wait.until ?? 'its time';
}

export interface Definition {
  description?: string;
  profile?: string;
  inputs?: Record<string, unknown>;
  steps?: DefinedStep[];
}

/** The version that the run pins; none for a run that was started with a plan of its own. */
export const definitionQuery = (workflow: string, version: number) =>
  queryOptions({
    queryKey: ['workflow', workflow, 'version', version],
    queryFn: async () => {
      try {
        const params = { path: { workflow, version } };
        return await must(api.GET('/api/v1/workflows/{workflow}/versions/{version}', { params }));
      } catch (error) {
        if (error instanceof Refusal && error.problem.status === 404) return null;
        throw error;
      }
    },
    staleTime: Infinity,
  });
