/** Runs over time for the charts. The server counts them; only what has a part of a text is counted here, of a bounded number. */

import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { buckets, type Bucket, type Lived } from '../../text/buckets';
import type { RunFilter } from './filter';

const PAGE = 500;
const PAGES_MAX = 2;
const DAY = 86_400_000;
const SOONEST_MS = 60_000;
/** Charts of the last day need not be of this second. */
const EVERY_MS = 30_000;
/** How often the page looks closer at a day in which all happened within a part of it. */
const CLOSER_MAX = 2;

export interface History {
  list: Bucket[];
  /** When it was counted. */
  at: number;
  /** Whether everything since the first bar is counted. */
  whole: boolean;
  /** How many runs were looked through, where the page has counted them. */
  lookedThrough?: number;
}

type HistoryFilter = Omit<RunFilter, 'state'>;

export function historyQuery({ state: _, ...filter }: RunFilter) {
  return queryOptions({
    // Not below `runs`: the feed would have it asked for again every second.
    queryKey: ['history', filter],
    queryFn: () => (filter.text === undefined ? counted(filter) : listed(filter)),
    staleTime: EVERY_MS,
    refetchInterval: EVERY_MS,
    placeholderData: keepPreviousData,
  });
}

async function counted({ created_from, text: _, ...filter }: HistoryFilter): Promise<History> {
  const ask = (from?: number) => must(api.GET('/api/v1/stats', { params: { query: { ...filter, from } } }));
  let stats = await ask(created_from);
  for (let closer = 0; created_from === undefined && closer < CLOSER_MAX; closer++) {
    const from = closerFrom(stats);
    if (from === undefined) break;
    stats = await ask(from);
  }
  return { list: stats.spans.map((span) => bucketOf(span, stats.span_ms)), at: stats.at, whole: stats.whole };
}

function bucketOf({ approvals_open, ...span }: Schema['StatsSpan'], length: number): Bucket {
  return { ...span, to: span.from + length, approvals: approvals_open };
}

/** Where to look closer from: the first span in which something began or ended, where that is in the last quarter. */
export function closerFrom({ spans, from, before }: Pick<Schema['StatsView'], 'spans' | 'from' | 'before'>): number | undefined {
  const first = spans.find((span) => span.started + span.succeeded + span.failed + span.canceled > 0);
  if (first === undefined || first.from - from < (before - from) * 0.75) return undefined;
  return Math.min(first.from, before - SOONEST_MS);
}

/** By what the list says: a part of a text is sought run by run. */
async function listed(filter: HistoryFilter): Promise<History> {
  const at = Date.now();
  const created_from = filter.created_from ?? at - DAY;
  const runs: Lived[] = [];
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const found = await must(api.GET('/api/v1/runs', { params: { query: { ...filter, created_from, after, limit: PAGE } } }));
    runs.push(...found.runs.map(({ state, created_at, finished_at }) => ({ state, created_at, finished_at })));
    after = found.next_after ?? undefined;
    // The last page names a place behind it as well, where it is full.
    if (after === undefined || found.runs.length === 0) break;
  }
  const whole = after === undefined;
  const from = Math.min((whole ? filter.created_from : undefined) ?? runs.at(-1)?.created_at ?? at, at - SOONEST_MS);
  return { list: buckets(runs, from, at), at, whole, lookedThrough: runs.length };
}
