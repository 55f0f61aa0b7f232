/** What an event makes out of date. Events come in bursts; what they touch is asked for again once per burst. */

import type { QueryClient } from '@tanstack/react-query';
import type { Envelope } from './feed';

/** Soon enough to be live, seldom enough that a busy tenant does not keep the page asking. */
const RUN_EVERY_MS = 250;
const LISTS_EVERY_MS = 1_000;
/** Past this many runs in one burst, all that is shown is asked for again. */
const RUNS_MAX = 200;

export class Refresher {
  private readonly runs = new Set<string>();
  private approvals = false;
  private runTimer: ReturnType<typeof setTimeout> | undefined;
  private listTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly queries: QueryClient) {}

  take(envelope: Envelope): void {
    this.runs.add(envelope.session_id);
    // A vote, a start at a gate and an end all move the inbox.
    if (envelope.event.startsWith('approval.') || envelope.event.startsWith('session.')) this.approvals = true;
    this.runTimer ??= setTimeout(() => this.refreshRuns(), RUN_EVERY_MS);
    this.listTimer ??= setTimeout(() => this.refreshLists(), LISTS_EVERY_MS);
  }

  everything(): void {
    void this.queries.invalidateQueries();
  }

  stop(): void {
    clearTimeout(this.runTimer);
    clearTimeout(this.listTimer);
  }

  private refreshRuns(): void {
    this.runTimer = undefined;
    const runs = this.runs.size > RUNS_MAX ? [undefined] : [...this.runs];
    this.runs.clear();
    for (const run of runs) {
      void this.queries.invalidateQueries({ queryKey: run === undefined ? ['run'] : ['run', run] });
    }
    if (this.approvals) {
      this.approvals = false;
      void this.queries.invalidateQueries({ queryKey: ['approvals'] });
    }
  }

  private refreshLists(): void {
    this.listTimer = undefined;
    void this.queries.invalidateQueries({ queryKey: ['runs'] });
    void this.queries.invalidateQueries({ queryKey: ['bulk'] });
  }
}
