/** Spans and instants in words. Instants are Unix milliseconds. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `340 ms`, `2.4 s`, `3 min 5 s`, `4 h 12 min`, `3 d 2 h`. */
export function span(ms: number): string {
  const length = Math.max(0, ms);
  if (length < SECOND) return `${Math.round(length)} ms`;
  if (length < 10 * SECOND) return `${(Math.floor(length / 100) / 10).toFixed(1)} s`;
  if (length < MINUTE) return `${Math.floor(length / SECOND)} s`;
  if (length < HOUR) return two(length, MINUTE, 'min', SECOND, 's');
  if (length < DAY) return two(length, HOUR, 'h', MINUTE, 'min');
  return two(length, DAY, 'd', HOUR, 'h');
}

function two(length: number, large: number, largeName: string, small: number, smallName: string): string {
  const first = Math.floor(length / large);
  const rest = Math.floor((length % large) / small);
  return rest === 0 ? `${first} ${largeName}` : `${first} ${largeName} ${rest} ${smallName}`;
}

/** One unit only, for lists: `12 s`, `5 min`, `3 h`, `2 d`. */
export function roughly(ms: number): string {
  const length = Math.max(0, ms);
  if (length < MINUTE) return `${Math.floor(length / SECOND)} s`;
  if (length < HOUR) return `${Math.floor(length / MINUTE)} min`;
  if (length < 2 * DAY) return `${Math.floor(length / HOUR)} h`;
  return `${Math.floor(length / DAY)} d`;
}

/** Where an instant lies: `just now`, `5 min ago`, `in 3 h`. */
export function away(at: number, now: number): string {
  const distance = at - now;
  if (Math.abs(distance) < 2 * SECOND) return 'just now';
  return distance < 0 ? `${roughly(-distance)} ago` : `in ${roughly(distance)}`;
}

/** A clock that runs down: `4:09`, `1:02:11`; behind zero `-0:12`. */
export function clock(ms: number): string {
  const seconds = Math.floor(Math.abs(ms) / SECOND);
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60), seconds % 60];
  const minutes = h > 0 ? `${h}:${String(m).padStart(2, '0')}` : String(m);
  return `${ms < 0 ? '−' : ''}${minutes}:${String(s).padStart(2, '0')}`;
}

/** In the viewer's zone, to the second. */
export function local(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

export function utc(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** The time of day in the viewer's zone, to the millisecond: for events of one run. */
export function timeOfDay(at: number): string {
  const date = new Date(at);
  return `${date.toLocaleTimeString(undefined, { hour12: false })}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** An instant of the last days beside another: the time alone where it is of the same day. */
export function shortTime(at: number, beside: number, timeStyle: 'short' | 'medium' = 'short'): string {
  const date = new Date(at);
  const sameDay = date.toDateString() === new Date(beside).toDateString();
  return date.toLocaleString(undefined, sameDay ? { timeStyle } : { weekday: 'short', hour: '2-digit', minute: '2-digit' });
}

/** A span beside another instant, in the viewer's zone and, in a second line, in UTC. */
export function fromTo(from: number, to: number, beside: number): string {
  const style = to - from < MINUTE ? 'medium' : 'short';
  return `${shortTime(from, beside, style)} – ${shortTime(to, beside, style)}\n${utc(from)} – ${utc(to)}`;
}
