/** Texts that others wrote, times, and ids, as they may be shown. */

import { Fragment, useSyncExternalStore } from 'react';
import { away, clock, local, span, utc } from '../text/span';
import { pieces } from '../text/visible';

/** Untrusted text: never markup, hidden characters spelled out, its direction kept to itself. */
export function Text({ of, lines = false }: { of: string; lines?: boolean }) {
  return (
    <bdi>
      {pieces(of, lines).map((piece, index) =>
        piece.hidden ? (
          <span key={index} className="hidden-character" title="A character that would not be seen">
            {piece.text}
          </span>
        ) : (
          <Fragment key={index}>{piece.text}</Fragment>
        ),
      )}
    </bdi>
  );
}

/** The same, with what stands between backticks as code: an error of the server or of a tool. */
export function Prose({ of, lines = false }: { of: string; lines?: boolean }) {
  return of.split(/`([^`\n]+)`/).map((part, index) => {
    if (part === '') return null;
    return index % 2 === 0 ? <Text key={index} of={part} lines={lines} /> : <code key={index}><Text of={part} lines={lines} /></code>;
  });
}

// One clock for the whole page: it ticks once a second, and only while the page is visible.
let now = Date.now();
let ticking: ReturnType<typeof setInterval> | undefined;
const watchers = new Set<() => void>();

function watch(listener: () => void): () => void {
  watchers.add(listener);
  ticking ??= setInterval(() => {
    if (document.hidden) return;
    now = Date.now();
    for (const watcher of watchers) watcher();
  }, 1_000);
  return () => {
    watchers.delete(listener);
    if (watchers.size > 0) return;
    clearInterval(ticking);
    ticking = undefined;
  };
}

export function useNow(): number {
  return useSyncExternalStore(watch, () => now);
}

function both(at: number): string {
  return `${local(at)}\n${utc(at)}`;
}

/** `5 min ago`; the instant itself, in the viewer's zone and in UTC, on hover. */
export function Ago({ at }: { at: number }) {
  const now = useNow();
  return (
    <time dateTime={new Date(at).toISOString()} title={both(at)}>
      {away(at, now)}
    </time>
  );
}

/** The instant in the viewer's zone; UTC on hover. */
export function Instant({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={utc(at)}>
      {local(at)}
    </time>
  );
}

/** How long something took, or has taken so far. */
export function Took({ from, to }: { from: number; to?: number | null }) {
  const now = useNow();
  return <>{span((to ?? Math.max(now, from)) - from)}</>;
}

/** A clock that runs down to an instant. */
export function Countdown({ to, label }: { to: number; label: string }) {
  const left = to - useNow();
  return (
    <time className={left < 0 ? 'clock late' : 'clock'} dateTime={new Date(to).toISOString()} title={both(to)}>
      <span className="unseen">{label} </span>
      {clock(left)}
    </time>
  );
}

/** The end of an id is what tells it apart; the whole of it is on hover. */
export function Id({ of, bare = false }: { of: string; bare?: boolean }) {
  const [prefix, rest] = of.includes('_') ? of.split(/_(.*)/s) : ['', of];
  const short = rest !== undefined && rest.length > 10 ? rest.slice(-8) : rest;
  return (
    <code className="id" title={of}>
      {prefix !== '' && !bare && <span className="quiet">{prefix}_…</span>}
      {short}
    </code>
  );
}
