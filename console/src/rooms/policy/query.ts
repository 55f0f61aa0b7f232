/** What is asked about the tenant's policy. */

import { queryOptions } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';

export type Policy = Schema['PolicyView'];
export type PolicyVersion = Schema['PolicyVersion'];

export const policyQuery = queryOptions({ queryKey: ['policy', 'view'], queryFn: () => must(api.GET('/api/v1/policy')) });

const VERSIONS_SHOWN = 100;

export const policyVersionsQuery = queryOptions({
  queryKey: ['policy', 'versions'],
  queryFn: async () => (await must(api.GET('/api/v1/policy/versions', { params: { query: { limit: VERSIONS_SHOWN } } }))).versions,
});

/** The files of a version, which never change; of the policy that comes with the server for none. */
export const policyFilesQuery = (version: number | undefined) =>
  queryOptions({
    queryKey: ['policy', 'files', version ?? 0],
    queryFn: async () => (await must(api.GET('/api/v1/policy/files', { params: { query: { version } } }))).files,
    staleTime: Infinity,
  });

/** `Version 3`, or the one that comes with the server. */
export function nameOf(version: number | null | undefined): string {
  return version == null || version === 0 ? 'Default policy' : `Version ${version}`;
}

export function shortHash(hash: string): string {
  return hash.slice(0, 12);
}
