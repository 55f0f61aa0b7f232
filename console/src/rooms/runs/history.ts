/** The newest runs, as far back as the charts go. The server counts nothing over time, so the page counts a bounded number. */

import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, must } from '../../api/client';
import type { Lived } from '../../text/buckets';
import { bulkFilter, type RunFilter } from './filter';

const PAGE = 500;
const PAGES_MAX = 2;
const DAY = 86_400_000;
const SOONEST_MS = 60_000;
/** Charts of the last day need not be of this second. */
const EVERY_MS = 15_000;

export interface History {
  runs: Lived[];
  from: number;
  /** When it was asked for. */
  at: number;
  /** Whether these are all that started since `from`. */
  whole: boolean;
  /** Where they are not: how many there are, by the server's count. */
  counted?: { since: number; started: number; failed: number };
}

export function historyQuery({ state: _, ...filter }: RunFilter) {
  return queryOptions({
    // Not below `runs`: the feed would have it asked for again every second.
    queryKey: ['history', filter],
    queryFn: () => load(filter),
    staleTime: EVERY_MS,
    refetchInterval: EVERY_MS,
    placeholderData: keepPreviousData,
  });
}

async function load(filter: Omit<RunFilter, 'state'>): Promise<History> {
  const now = Date.now();
  const created_from = filter.created_from ?? now - DAY;
  const runs: Lived[] = [];
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const found = await must(api.GET('/api/v1/runs', { params: { query: { ...filter, created_from, after, limit: PAGE } } }));
    runs.push(...found.runs.map(({ state, created_at, finished_at }) => ({ state, created_at, finished_at })));
    after = found.next_after ?? undefined;
    // The last page names a place behind it as well, where it is full or a text was sought.
    if (after === undefined || found.runs.length === 0) break;
  }
  const whole = after === undefined;
  // A part of a text cannot be counted.
  const counted = whole || filter.text !== undefined ? undefined : await countOf({ ...filter, text: undefined, created_from });
  return { counted, runs, at: now, whole, from: beginning(runs, now, whole && filter.created_from !== undefined ? created_from : undefined) };
}

async function countOf(filter: Omit<RunFilter, 'state'> & { created_from: number }): Promise<History['counted']> {
  const count = async (state?: RunFilter['state']) => {
    const { text: _, ...asked } = bulkFilter({ ...filter, state }) as ReturnType<typeof bulkFilter> & { text?: string };
    return (await must(api.POST('/api/v1/bulk/preview', { body: { filter: asked } }))).count;
  };
  const [started, failed] = await Promise.all([count(), count('failed')]);
  return { since: filter.created_from, started, failed };
}

/** A day in which all began within the last minutes shows these minutes. */
export function beginning(runs: readonly Lived[], now: number, asked: number | undefined): number {
  return Math.min(asked ?? runs.at(-1)?.created_at ?? now, now - SOONEST_MS);
}
