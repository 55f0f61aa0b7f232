/** What differs between two values, field by field: for people who decide, and read it on a phone. */

import { written } from './exact';
export interface Change {
  /** `server.ports[1]`; empty for the whole. */
  path: string;
  /** As JSON; absent where there was none. */
  before?: string;
  after?: string;
}

/** Past this many changes a list of fields is too long to read. */
export const CHANGES_MAX = 50;

const isTree = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
const told = (value: unknown) => (value === undefined ? undefined : written(value));

export function changes(before: unknown, after: unknown, path = ''): Change[] {
  if (isTree(before) && isTree(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return names.flatMap((name) => changes(before[name], after[name], path === '' ? name : `${path}.${name}`));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) => changes(before[index], after[index], `${path}[${index}]`)).flat();
  }
  const [was, is] = [told(before), told(after)];
  return was === is ? [] : [{ path, before: was, after: is }];
}
