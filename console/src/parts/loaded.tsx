/** What the server answered, or lines of about its height until it has, or what was wrong. */

import type { ReactNode } from 'react';
import type { UseQueryResult } from '@tanstack/react-query';
import { Loading, ProblemNote } from './notes';

interface Props<T> {
  query: UseQueryResult<T, Error>;
  /** How many lines stand there meanwhile. */
  rows?: number;
  children: (data: T) => ReactNode;
}

export function Loaded<T>({ query, rows, children }: Props<T>) {
  if (query.data === undefined) return query.error === null ? <Loading rows={rows} /> : <ProblemNote error={query.error} />;
  return (
    <>
      {query.error !== null && <ProblemNote error={query.error} />}
      {children(query.data)}
    </>
  );
}
