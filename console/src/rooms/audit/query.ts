/** What is asked about the tenant's audit log. */

import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, must } from '../../api/client';
import type { AuditFilter } from './filter';

const PAGE = 50;

/** An entry as the log has it. What it stands for is opened as far as the viewer may see it and it was not erased. */
export interface LoggedEntry {
  entry: {
    index: number;
    at: number;
    types: string[];
    initiator: string;
    run?: string;
    subject?: string;
    /** The hash of the entry before it. */
    prev: string;
    /** Hashes of what is opened. */
    actor?: string;
    details?: string;
  };
  opened?: { actor?: string; details?: string };
}

export interface AuditPage {
  log: number;
  size: number;
  entries: LoggedEntry[];
  next?: number | null;
}

export const auditQuery = (filter: AuditFilter, from: number | undefined) =>
  queryOptions({
    queryKey: ['audit', 'entries', filter, from],
    queryFn: async () => {
      const query = { ...filter, from, order: 'newest' as const, limit: PAGE };
      // Entries are JSON of the log's own form, which the description leaves open.
      return (await must(api.GET('/api/v1/audit', { params: { query } }))) as unknown as AuditPage;
    },
    placeholderData: keepPreviousData,
  });

export const checkpointQuery = queryOptions({
  queryKey: ['audit', 'checkpoint'],
  queryFn: () => must(api.GET('/api/v1/audit/checkpoint')),
});

export const auditKeyQuery = queryOptions({
  queryKey: ['audit', 'key'],
  queryFn: () => must(api.GET('/api/v1/audit/key')),
  staleTime: Infinity,
});
