/** A live list whose rows stay in place while the viewer points at it. */

import { useRef } from 'react';
import type { Run } from '../../api/client';

export interface HeldRows {
  rows: Run[];
  /** Runs that match and are not shown. */
  arrived: number;
  /** Runs that are shown and are no longer in the answer: what their rows say is old. */
  left: number;
}

/**
 * While `hold` is true the rows stay the same ones, in the same order, and only what stands in them changes. A list that has
 * become empty is not held: nothing in it can be clicked by mistake.
 */
export function heldRows(shown: Run[], fresh: Run[], hold: boolean): HeldRows {
  if (!hold || shown.length === 0 || fresh.length === 0) return { rows: fresh, arrived: 0, left: 0 };
  const byId = new Map(fresh.map((run) => [run.run_id, run]));
  const known = new Set(shown.map((run) => run.run_id));
  return {
    rows: shown.map((run) => byId.get(run.run_id) ?? run),
    arrived: fresh.filter((run) => !known.has(run.run_id)).length,
    left: shown.filter((run) => !byId.has(run.run_id)).length,
  };
}

/** What a list that is held does not show, in words; undefined where it shows everything. */
export function heldBack({ arrived, left }: HeldRows): string | undefined {
  // A new run pushes the last one off a full page: that is no news of its own.
  if (arrived > 0) return `${arrived} new`;
  return left > 0 ? `${left} no longer here` : undefined;
}

interface Answered {
  fresh: Run[] | undefined;
  /** The rows are still those of the question before: they are shown, and not held. */
  stale: boolean;
}

export function useHeldRows({ fresh, stale }: Answered, hold: boolean, question: string): HeldRows {
  const last = useRef<{ question: string; rows: Run[] }>({ question, rows: [] });
  if (fresh === undefined || stale) return { rows: fresh ?? [], arrived: 0, left: 0 };
  const shown = last.current.question === question ? last.current.rows : [];
  const held = heldRows(shown, fresh, hold);
  last.current = { question, rows: held.rows };
  return held;
}
