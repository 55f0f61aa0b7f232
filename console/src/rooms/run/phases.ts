/** Which part of a runbook a step belongs to, where its workflow says so. */

import type { Definition, Phase } from './query';

export const PHASE_WORDS: Record<Phase, string> = { prechecks: 'Checks before', main: 'Main part', postchecks: 'Checks after' };

/** The phase that begins with a step, by its key: none where the workflow names no phases. */
export function phaseStarts(definition: Definition | undefined): Map<string, Phase> {
  const steps = definition?.steps ?? [];
  const starts = new Map<string, Phase>();
  if (steps.every((step) => step.phase === undefined)) return starts;
  let here: Phase | undefined;
  for (const step of steps) {
    // What names none belongs to the main part.
    const phase = step.phase ?? 'main';
    if (phase !== here) starts.set(step.id, phase);
    here = phase;
  }
  return starts;
}
