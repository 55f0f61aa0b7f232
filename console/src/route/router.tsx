/** Addresses: every room, filter and selection is one, and the browser's own history does the rest. */

import { useCallback, useMemo, useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from 'react';

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('popstate', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('popstate', listener);
  };
}

const here = () => window.location.pathname + window.location.search;

export function go(to: string, how: 'push' | 'replace' = 'push'): void {
  if (to === here()) return;
  window.history[how === 'push' ? 'pushState' : 'replaceState'](null, '', to);
  if (how === 'push') window.scrollTo(0, 0);
  for (const listener of listeners) listener();
}

export interface Address {
  /** `/runs/run_1` is `['runs', 'run_1']`. */
  parts: string[];
  query: URLSearchParams;
  path: string;
}

export function useAddress(): Address {
  const text = useSyncExternalStore(subscribe, here);
  return useMemo(() => {
    const url = new URL(text, window.location.origin);
    const parts = url.pathname.split('/').filter(Boolean).map(decode);
    return { parts, query: url.searchParams, path: url.pathname };
  }, [text]);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** One parameter of the address: its value, and how to change it without another step in the history. */
export function useParam(name: string): [string, (value: string) => void] {
  const { query, path } = useAddress();
  const value = query.get(name) ?? '';
  const set = useCallback(
    (next: string) => {
      const changed = new URLSearchParams(query);
      if (next === '') changed.delete(name);
      else changed.set(name, next);
      go(withQuery(path, changed), 'replace');
    },
    [name, path, query],
  );
  return [value, set];
}

export function withQuery(path: string, query: URLSearchParams): string {
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** `/runs/{}` with a name in it. */
export function at(...parts: string[]): string {
  return `/${parts.map(encodeURIComponent).join('/')}`;
}

type LinkProps = { to: string } & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'>;

/** A link inside the console: a plain anchor, so that it can be copied and opened elsewhere. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  function follow(event: MouseEvent<HTMLAnchorElement>) {
    onClick?.(event);
    const elsewhere = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0;
    if (event.defaultPrevented || elsewhere) return;
    event.preventDefault();
    go(to);
  }
  return <a href={to} onClick={follow} {...rest} />;
}
