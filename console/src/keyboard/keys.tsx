/** Keys that do something, where they do it, and what: one list, which the help page shows. */

import { useEffect, useRef, useSyncExternalStore } from 'react';

export interface Key {
  /** `j`, `Enter`, `?`, or two keys after each other: `g r`. */
  press: string;
  does: string;
  run: () => void;
}

export interface KeyGroup {
  title: string;
  keys: Key[];
}

/** How long the second key of a pair may take. */
const PAIR_MS = 1_200;

let groups: KeyGroup[] = [];
const listeners = new Set<() => void>();
let first: { key: string; at: number } | undefined;

function changed(): void {
  groups = [...groups];
  for (const listener of listeners) listener();
}

/** Whether the key is typed into a field, or belongs to the dialog on top. */
function isTaken(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return true;
  const target = event.target instanceof HTMLElement ? event.target : undefined;
  if (target?.closest('input, textarea, select, [contenteditable]')) return true;
  if (event.key === 'Enter' && target?.closest('a, button, summary')) return true;
  return document.querySelector('dialog[open]') !== null;
}

export function pressed(key: string, now: number): Key | undefined {
  const pair = first !== undefined && now - first.at < PAIR_MS ? `${first.key} ${key}` : undefined;
  const find = (press: string) => groups.flatMap((group) => group.keys).findLast((known) => known.press === press);
  const found = (pair !== undefined ? find(pair) : undefined) ?? find(key);
  const begins = groups.some((group) => group.keys.some((known) => known.press.startsWith(`${key} `)));
  first = found === undefined && begins ? { key, at: now } : undefined;
  return found;
}

function onKey(event: KeyboardEvent): void {
  if (isTaken(event)) return;
  const found = pressed(event.key, event.timeStamp);
  if (found === undefined) return;
  event.preventDefault();
  found.run();
}

export function register(group: KeyGroup): () => void {
  if (groups.length === 0 && typeof window !== 'undefined') window.addEventListener('keydown', onKey);
  groups = [...groups, group];
  changed();
  return () => {
    groups = groups.filter((other) => other !== group);
    changed();
  };
}

/** Registers keys while the component stands on the page. The handlers may change with every drawing. */
export function useKeys(title: string, keys: Key[]): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  const names = keys.map((key) => `${key.press}\u0000${key.does}`).join('\u0001');
  useEffect(() => {
    const steady = latest.current.map((key) => ({
      ...key,
      run: () => latest.current.find((other) => other.press === key.press)?.run(),
    }));
    return register({ title, keys: steady });
  }, [title, names]);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useKeyGroups(): KeyGroup[] {
  return useSyncExternalStore(subscribe, () => groups);
}
