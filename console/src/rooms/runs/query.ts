import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, must } from '../../api/client';
import type { RunFilter } from './filter';

export const PAGE = 50;

export function runsQuery(filter: RunFilter, after: string | undefined) {
  return queryOptions({
    queryKey: ['runs', filter, after],
    queryFn: () => {
      const { state, ...others } = filter;
      const states = state === undefined ? {} : { state: [state] };
      return must(api.GET('/api/v1/runs', { params: { query: { ...others, ...states, after, limit: PAGE } } }));
    },
    placeholderData: keepPreviousData,
  });
}

/** Names for the filter: workflows that have a file. */
export const workflowNames = queryOptions({
  queryKey: ['workflows', 'names'],
  queryFn: () => must(api.GET('/api/v1/workflows', { params: { query: { limit: 500 } } })),
  staleTime: 60_000,
});
