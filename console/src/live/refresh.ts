/** What an event makes out of date. Events come in bursts; what they touch is asked for again once per burst. */

import type { QueryClient } from '@tanstack/react-query';
import type { FeedEvent } from './feed';

/** Soon enough to be live, seldom enough that a busy tenant does not keep the page asking. */
const RUN_EVERY_MS = 250;
const LISTS_EVERY_MS = 1_000;
/** Past this many runs in one burst, all that is shown is asked for again. */
const RUNS_MAX = 200;

export class Refresher {
  private readonly runs = new Set<string>();
  private approvals = false;
  private missed = false;
  private runTimer: ReturnType<typeof setTimeout> | undefined;
  private listTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly queries: QueryClient) {}

  take(event: FeedEvent): void {
    this.runs.add(event.run_id);
    // A vote, a start at a gate and an end all move the inbox.
    if (event.type.startsWith('approval.') || event.type.startsWith('session.')) this.approvals = true;
    this.runTimer ??= setTimeout(() => this.refreshRuns(), RUN_EVERY_MS);
    this.listTimer ??= setTimeout(() => this.refreshLists(), LISTS_EVERY_MS);
  }

  /** The page is visible again. */
  seen(): void {
    if (!this.missed) return;
    this.missed = false;
    this.everything();
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
    if (this.isUnseen()) return this.refreshApprovals();
    for (const run of runs) {
      void this.queries.invalidateQueries({ queryKey: run === undefined ? ['run'] : ['run', run] });
    }
    this.refreshApprovals();
  }

  /** Also on a hidden page: its title says how many approvals wait. */
  private refreshApprovals(): void {
    if (!this.approvals) return;
    this.approvals = false;
    void this.queries.invalidateQueries({ queryKey: ['approvals'] });
  }

  /** A page in the background asks for nothing that it cannot show. */
  private isUnseen(): boolean {
    if (!document.hidden) return false;
    this.missed = true;
    return true;
  }

  private refreshLists(): void {
    this.listTimer = undefined;
    if (this.isUnseen()) return;
    void this.queries.invalidateQueries({ queryKey: ['runs'] });
    void this.queries.invalidateQueries({ queryKey: ['bulk'] });
  }
}
