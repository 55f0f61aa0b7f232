/** The tenant's events over one WebSocket, resumed without a gap where the connection was lost. */

import type { Schema } from '../api/client';

export type FeedEvent = Schema['EventView'];
export type FeedState = 'connecting' | 'live' | 'lost';

interface Control {
  type: 'subscribed' | 'heartbeat' | 'resync' | 'closing' | 'end' | 'refused';
  last_event_id?: string;
  code?: string;
}

interface Handlers {
  event: (event: FeedEvent) => void;
  state: (state: FeedState) => void;
  /** Events may have been missed for good: everything that is shown has to be asked for again. */
  gap: () => void;
  /** The session is over. */
  refused: () => void;
}

/** The server sends something every 15 s; after three times as long without a message the page reconnects. */
const SILENCE_MAX_MS = 45_000;
const PAUSE_MIN_MS = 500;
const PAUSE_MAX_MS = 15_000;
/** The session's own close code: the credential counts no more. */
const UNAUTHORIZED = 4401;

export class Feed {
  private socket: WebSocket | undefined;
  private lastEventId: string | undefined;
  private pause = PAUSE_MIN_MS;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private stopped = false;
  private everLive = false;

  constructor(
    private readonly address: string,
    private readonly handlers: Handlers,
  ) {
    this.connect();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    this.socket?.close();
  }

  /** Reconnects now, instead of after the pause: the network came back, or the page is visible again. */
  hurry(): void {
    if (this.stopped || this.retry === undefined) return;
    clearTimeout(this.retry);
    this.retry = undefined;
    this.connect();
  }

  private connect(): void {
    this.retry = undefined;
    const resume = this.lastEventId === undefined ? '' : `?last_event_id=${encodeURIComponent(this.lastEventId)}`;
    const socket = new WebSocket(`${this.address}${resume}`);
    this.socket = socket;
    this.handlers.state(this.everLive ? 'lost' : 'connecting');
    this.watch(socket);
    socket.onmessage = (message) => {
      if (socket !== this.socket) return;
      this.watch(socket);
      this.take(JSON.parse(String(message.data)) as FeedEvent | Control);
    };
    socket.onclose = (close) => {
      if (socket === this.socket) this.closed(close.code);
    };
  }

  private take(message: FeedEvent | Control): void {
    // How the stream itself stands has no run.
    if ('run_id' in message) {
      this.lastEventId = message.id;
      this.handlers.event(message);
      return;
    }
    if (message.last_event_id !== undefined) this.lastEventId = message.last_event_id;
    if (message.type === 'subscribed') {
      this.pause = PAUSE_MIN_MS;
      // What happened between the page's first answers and this moment came in no event.
      if (!this.everLive) this.handlers.gap();
      this.everLive = true;
      this.handlers.state('live');
    }
  }

  private closed(code: number): void {
    clearTimeout(this.silence);
    this.socket = undefined;
    if (this.stopped) return;
    if (code === UNAUTHORIZED) {
      this.handlers.refused();
      return;
    }
    this.handlers.state('lost');
    // A server that was restored from a backup knows an earlier place only: begin anew, and look at everything again.
    if (code === 1006 && this.pause >= PAUSE_MAX_MS) {
      this.lastEventId = undefined;
      this.handlers.gap();
    }
    this.retry = setTimeout(() => this.connect(), this.pause * (0.5 + Math.random() / 2));
    this.pause = Math.min(this.pause * 2, PAUSE_MAX_MS);
  }

  private watch(socket: WebSocket): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      if (socket !== this.socket) return;
      socket.close();
      this.closed(1006);
    }, SILENCE_MAX_MS);
  }
}
