import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Feed, type FeedState } from './feed';

class FakeSocket {
  static opened: FakeSocket[] = [];
  onmessage?: (message: { data: string }) => void;
  onclose?: (close: { code: number }) => void;
  constructor(readonly url: string) {
    FakeSocket.opened.push(this);
  }
  close() {}
  says(message: object) {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

function listen() {
  const heard = { events: [] as string[], states: [] as FeedState[], gaps: 0, refused: 0 };
  const feed = new Feed('ws://here/ws/feed', {
    event: (envelope) => heard.events.push(envelope.id),
    state: (state) => heard.states.push(state),
    gap: () => heard.gaps++,
    refused: () => heard.refused++,
  });
  return { feed, heard };
}

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.opened = [];
  vi.stubGlobal('WebSocket', FakeSocket);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('goes on behind the last event that it has seen', () => {
  const { feed, heard } = listen();
  FakeSocket.opened[0]!.says({ type: 'subscribed', last_event_id: '4' });
  FakeSocket.opened[0]!.says({ id: '5', type: 'session.created', run_id: 'run_1' });
  FakeSocket.opened[0]!.onclose?.({ code: 1012 });
  vi.advanceTimersByTime(1_000);
  expect(FakeSocket.opened[1]!.url).toBe('ws://here/ws/feed?last_event_id=5');
  expect(heard.events).toEqual(['5']);
  expect(heard.gaps).toBe(1);
  feed.stop();
});

it('reconnects when it hears nothing for 45 seconds', () => {
  const { feed, heard } = listen();
  FakeSocket.opened[0]!.says({ type: 'subscribed', last_event_id: '4' });
  vi.advanceTimersByTime(44_000);
  FakeSocket.opened[0]!.says({ type: 'heartbeat', last_event_id: '9' });
  vi.advanceTimersByTime(44_000);
  expect(FakeSocket.opened).toHaveLength(1);
  vi.advanceTimersByTime(3_000);
  expect(FakeSocket.opened[1]!.url).toBe('ws://here/ws/feed?last_event_id=9');
  expect(heard.states).toContain('lost');
  feed.stop();
});

it('gives up when the session is over, and says so once', () => {
  const { feed, heard } = listen();
  FakeSocket.opened[0]!.onclose?.({ code: 4401 });
  vi.advanceTimersByTime(60_000);
  expect(heard.refused).toBe(1);
  expect(FakeSocket.opened).toHaveLength(1);
  feed.stop();
});
