import { afterEach, expect, test, vi } from 'vitest';
import { OutputFollow, type FollowState } from './follow';

class Fake {
  static opened: Fake[] = [];
  readyState = 1;
  closed = false;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  private heard = new Map<string, (event: MessageEvent) => void>();
  constructor(readonly url: string) {
    Fake.opened.push(this);
  }
  addEventListener(name: string, heard: (event: MessageEvent) => void) {
    this.heard.set(name, heard);
  }
  close() {
    this.closed = true;
  }
  say(name: string, data: unknown) {
    this.heard.get(name)?.({ data: JSON.stringify(data) } as MessageEvent);
  }
}

function follow() {
  Fake.opened = [];
  const texts: string[] = [];
  const states: FollowState[] = [];
  const handlers = { chunk: (chunk: { text: string }) => texts.push(chunk.text), state: (state: FollowState) => states.push(state) };
  const following = new OutputFollow('/stream', handlers, (url) => new Fake(url));
  return { following, texts, states };
}
const chunk = (attempt: number, seq: number) => ({ attempt, seq, stream: 'stdout', at: 0, text: `${attempt}.${seq}` });

afterEach(() => vi.useRealTimers());

test('it goes on behind the last chunk, and takes nothing twice', () => {
  vi.useFakeTimers();
  const { texts, states } = follow();
  Fake.opened[0]!.onopen?.();
  Fake.opened[0]!.say('output', chunk(1, 1));
  Fake.opened[0]!.say('output', chunk(1, 2));
  Fake.opened[0]!.onerror?.();
  vi.advanceTimersByTime(2_000);
  const [, again] = Fake.opened;
  expect(again?.url).toBe('/stream?last_event_id=1.2');
  again!.say('output', chunk(1, 2));
  again!.say('output', chunk(1, 3));
  again!.say('output', chunk(2, 1));
  expect(texts).toEqual(['1.1', '1.2', '1.3', '2.1']);
  expect(states).toEqual(['connecting', 'live', 'lost', 'lost']);
});

test('the end of the step ends it', () => {
  vi.useFakeTimers();
  const { states } = follow();
  Fake.opened[0]!.say('stream.end', { type: 'end' });
  vi.advanceTimersByTime(60_000);
  expect([Fake.opened.length, Fake.opened[0]!.closed, states.at(-1)]).toEqual([1, true, 'ended']);
});

test('who stops it hears nothing more', () => {
  vi.useFakeTimers();
  const { following } = follow();
  following.stop();
  Fake.opened[0]!.onerror?.();
  vi.advanceTimersByTime(60_000);
  expect(Fake.opened.length).toBe(1);
});
