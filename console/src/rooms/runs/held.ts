/** A live list that does not move under somebody's hand. */

import { useRef } from 'react';
import type { Run } from '../../api/client';

/**
 * While `hold` is true the rows stay the same ones, in the same order, and only what stands in them changes; `arrived` says
 * how many runs wait to be shown.
 */
export function heldRows(shown: Run[], fresh: Run[], hold: boolean): { rows: Run[]; arrived: number } {
  if (!hold || shown.length === 0) return { rows: fresh, arrived: 0 };
  const byId = new Map(fresh.map((run) => [run.run_id, run]));
  const known = new Set(shown.map((run) => run.run_id));
  const rows = shown.map((run) => byId.get(run.run_id) ?? run);
  return { rows, arrived: fresh.filter((run) => !known.has(run.run_id)).length };
}

interface Answered {
  fresh: Run[] | undefined;
  /** The rows are still those of the question before: they are shown, and not held. */
  stale: boolean;
}

export function useHeldRows({ fresh, stale }: Answered, hold: boolean, question: string): { rows: Run[]; arrived: number } {
  const last = useRef<{ question: string; rows: Run[] }>({ question, rows: [] });
  if (fresh === undefined || stale) return { rows: fresh ?? [], arrived: 0 };
  const shown = last.current.question === question ? last.current.rows : [];
  const held = heldRows(shown, fresh, hold);
  last.current = { question, rows: held.rows };
  return held;
}
