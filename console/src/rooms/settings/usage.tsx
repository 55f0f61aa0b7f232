/** How much of the tenant's limits is used now. */

import { useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { Load } from '../../parts/load';
import { backlog, statusQuery, tallies } from '../runs/status';

const MINUTE = 60_000;

export type LimitName = 'max_concurrency' | 'max_runs_per_min' | 'pending_runs_max';

const LABELS: Record<LimitName, string> = {
  max_concurrency: 'Steps at workers',
  max_runs_per_min: 'Runs that started in the last minute',
  pending_runs_max: 'Pending runs',
};

/** Runs that started within the last minute: a filter can be counted. */
const startedQuery = {
  queryKey: ['usage', 'started'],
  queryFn: async () => (await must(api.POST('/api/v1/bulk/preview', { body: { filter: { created_from: Date.now() - MINUTE } } }))).count,
  refetchInterval: 10_000,
};

export function useUsage(): Record<LimitName | 'active', number | undefined> {
  const status = useQuery(statusQuery).data;
  const started = useQuery(startedQuery).data;
  const runs = status === undefined ? undefined : tallies(status.runs);
  return {
    max_concurrency: status && backlog(status.queues).running,
    max_runs_per_min: started,
    pending_runs_max: runs && (runs.find(({ state }) => state === 'pending')?.runs ?? 0),
    active: runs?.reduce((sum, each) => sum + each.runs, 0),
  };
}

/** A limit, and how much of it is used now. */
export function Used({ limit, of, now }: { limit: LimitName; of: Schema['TenantView']; now: number | undefined }) {
  const most = of[limit];
  if (now === undefined) return <span className="quiet">…</span>;
  if (most != null) return <Load taken={now} of={most} label={LABELS[limit]} />;
  return (
    <>
      {now.toLocaleString()} <span className="quiet">now, no limit</span>
    </>
  );
}
