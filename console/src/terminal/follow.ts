/** What a step writes, as it writes it: goes on behind the last chunk where the connection was lost. */

import type { Chunk } from './screen';

export type FollowState = 'connecting' | 'live' | 'lost' | 'ended';

interface Handlers {
  chunk: (chunk: Chunk) => void;
  state: (state: FollowState) => void;
}

interface Source {
  readyState: number;
  close: () => void;
  addEventListener: (name: string, heard: (event: MessageEvent) => void) => void;
  onopen: (() => void) | null;
  onerror: (() => void) | null;
}

const PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 15_000;

export class OutputFollow {
  private source: Source | undefined;
  private last: string | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private pause = PAUSE_MS;
  private stopped = false;
  private ever = false;

  constructor(
    private readonly address: string,
    private readonly handlers: Handlers,
    private readonly make: (url: string) => Source = (url) => new EventSource(url) as unknown as Source,
  ) {
    this.connect();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.retry);
    this.source?.close();
  }

  private connect(): void {
    const from = this.last === undefined ? '' : `${this.address.includes('?') ? '&' : '?'}last_event_id=${encodeURIComponent(this.last)}`;
    const source = this.make(`${this.address}${from}`);
    this.source = source;
    this.handlers.state(this.ever ? 'lost' : 'connecting');
    source.onopen = () => {
      this.ever = true;
      this.pause = PAUSE_MS;
      this.handlers.state('live');
    };
    source.addEventListener('output', (event) => {
      const chunk = JSON.parse(String(event.data)) as Chunk;
      const id = `${chunk.attempt}.${chunk.seq}`;
      if (this.last !== undefined && !isLater(id, this.last)) return;
      this.last = id;
      this.handlers.chunk(chunk);
    });
    source.addEventListener('stream.end', () => {
      this.stop();
      this.handlers.state('ended');
    });
    // The browser would reconnect by itself. This code does it instead, so that the pause grows and it goes on behind the last chunk.
    source.onerror = () => this.lost(source);
    for (const word of ['stream.closing', 'stream.refused']) source.addEventListener(word, () => this.lost(source));
  }

  private lost(source: Source): void {
    if (this.stopped || source !== this.source) return;
    source.close();
    this.source = undefined;
    this.handlers.state('lost');
    this.retry = setTimeout(() => this.connect(), this.pause * (0.5 + Math.random() / 2));
    this.pause = Math.min(this.pause * 2, PAUSE_MAX_MS);
  }
}

/** Whether the place is behind the other one. */
function isLater(id: string, than: string): boolean {
  const [attempt = 0, seq = 0] = id.split('.').map(Number);
  const [otherAttempt = 0, otherSeq = 0] = than.split('.').map(Number);
  return attempt > otherAttempt || (attempt === otherAttempt && seq > otherSeq);
}
