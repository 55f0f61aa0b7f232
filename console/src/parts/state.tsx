/** States as people see them: a shape, a colour and a word, so that none of the three is needed alone. */

import type { RunState, Schema, StepState } from '../api/client';

export type Tone = 'good' | 'busy' | 'asks' | 'bad' | 'undone' | 'idle';
type AnyState = RunState | StepState | Schema['ApprovalState'] | Schema['ReceiptState'];

const LOOKS: Record<AnyState, [Tone, string]> = {
  pending: ['idle', 'pending'],
  ready: ['busy', 'ready'],
  running: ['busy', 'running'],
  waiting_approval: ['asks', 'waiting for approval'],
  waiting_signal: ['idle', 'waiting for signal'],
  paused: ['asks', 'paused'],
  rolling_back: ['undone', 'rolling back'],
  succeeded: ['good', 'succeeded'],
  failed: ['bad', 'failed'],
  canceled: ['idle', 'canceled'],
  in_doubt: ['bad', 'in doubt'],
  skipped: ['idle', 'skipped'],
  rolled_back: ['undone', 'rolled back'],
  requested: ['asks', 'open'],
  approved: ['good', 'approved'],
  rejected: ['bad', 'rejected'],
  expired: ['bad', 'expired'],
  intent: ['busy', 'under way'],
};

/** A server that is newer than this page may have a state that it does not know. */
function lookOf(state: AnyState): [Tone, string] {
  return LOOKS[state] ?? ['idle', String(state).replaceAll('_', ' ')];
}

export function toneOf(state: AnyState): Tone {
  return lookOf(state)[0];
}

export function wordOf(state: AnyState): string {
  return lookOf(state)[1];
}

export function State({ of, detail }: { of: AnyState; detail?: string | null }) {
  const [tone, word] = lookOf(of);
  return (
    <span className={`state ${tone}`}>
      <Shape of={of} />
      {word}
      {detail != null && detail !== '' && <span className="quiet"> · {detail.replaceAll('_', ' ')}</span>}
    </span>
  );
}

/** A word that is no state of a run, with the same marks. */
export function Mark({ tone, word }: { tone: Tone; word: string }) {
  return (
    <span className={`state ${tone}`}>
      <svg className="shape" viewBox="0 0 16 16" aria-hidden="true">
        {tone === 'idle' ? <path d="M4 8h8" /> : <circle cx="8" cy="8" r="4" />}
      </svg>
      {word}
    </span>
  );
}

const RING = 'M14.5 8a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0';

/** An arrow that turns back. */
const BACK = 'M3 8a5 5 0 1 0 1.6-3.7L3 5.9m0-3v3h3';

const PATHS: Partial<Record<AnyState, string>> = {
  succeeded: 'M3.5 8.5l3 3 6-7',
  approved: 'M3.5 8.5l3 3 6-7',
  failed: 'M4.5 4.5l7 7m0-7l-7 7',
  rejected: 'M4.5 4.5l7 7m0-7l-7 7',
  expired: `${RING}M8 4.5V8l2.5 1.5`,
  canceled: 'M4 8h8',
  skipped: 'M4 4l5 4-5 4m7-8v8',
  paused: 'M6 4v8m4-8v8',
  in_doubt: `${RING}M6.2 6.2a1.8 1.8 0 1 1 2.4 1.7c-.4.1-.6.4-.6.8m0 2.4v.1`,
  waiting_approval: `${RING}M8 4.5v4m0 2.6v.1`,
  requested: `${RING}M8 4.5v4m0 2.6v.1`,
  waiting_signal: `${RING}M8 4.5V8l2.5 1.5`,
  rolling_back: BACK,
  rolled_back: BACK,
};

function Shape({ of }: { of: AnyState }) {
  const path = PATHS[of];
  return (
    <svg className="shape" viewBox="0 0 16 16" aria-hidden="true">
      {path === undefined ? <circle cx="8" cy="8" r={of === 'pending' ? 3.5 : 4} /> : <path d={path} />}
    </svg>
  );
}
