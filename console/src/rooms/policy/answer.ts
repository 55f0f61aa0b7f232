/** What a policy answers, read and said in words. */

import type { Tone } from '../../parts/state';
import { span } from '../../text/span';

export interface Reason {
  rule: string;
  text: string;
}

export interface Obligations {
  quorum?: number;
  approvers?: string[];
  exclude?: string[];
  escalate_after_s?: number | null;
  expires_after_s?: number | null;
  scope?: string;
}

export interface Answer {
  verdict?: string;
  tier?: string;
  reasons?: Reason[];
  obligations?: Obligations | null;
}

/** The API hands the answer on as the rules gave it; fields of another form are left out. */
export function answerOf(value: unknown): Answer {
  if (typeof value !== 'object' || value === null) return {};
  const { verdict, tier, reasons, obligations } = value as Record<string, unknown>;
  const isReason = (each: Partial<Reason> | null) => typeof each?.rule === 'string' && typeof each.text === 'string';
  return {
    verdict: typeof verdict === 'string' ? verdict : undefined,
    tier: typeof tier === 'string' ? tier : undefined,
    reasons: Array.isArray(reasons) ? (reasons as Reason[]).filter(isReason) : [],
    obligations: typeof obligations === 'object' ? (obligations as Obligations | null) : null,
  };
}

const LOOKS: Record<string, [Tone, string]> = {
  allow: ['good', 'allowed'],
  needs_approval: ['asks', 'needs approval'],
  deny: ['bad', 'denied'],
  undecided: ['undone', 'no answer'],
};

export function lookOf(verdict: string): [Tone, string] {
  return LOOKS[verdict] ?? ['idle', verdict.replaceAll('_', ' ')];
}

const EXCLUDED: Record<string, string> = { starter: 'the person who started the run', author: 'the author of the workflow' };

/** What the answer demands of people, in one sentence; nothing where it demands nothing. */
export function demand(obligations: Obligations | null | undefined): string | undefined {
  if (obligations == null) return undefined;
  const { quorum = 1, approvers = [], exclude = [], escalate_after_s, expires_after_s, scope } = obligations;
  const who = approvers.length === 0 ? 'anybody who may approve' : `of ${approvers.join(', ')}`;
  const people = quorum === 1 ? 'One person' : `${quorum} different people`;
  const not = exclude.length === 0 ? '' : `, but not ${exclude.map((each) => EXCLUDED[each] ?? each).join(' or ')}`;
  const what = scope === 'phase' ? 'the whole phase' : 'this step';
  const reminded = escalate_after_s == null ? '' : ` They are reminded after ${span(escalate_after_s * 1_000)}.`;
  const expires = expires_after_s == null ? '' : ` The approval expires after ${span(expires_after_s * 1_000)}.`;
  return `${people} (${who}${not}) must agree to ${what}.${reminded}${expires}`;
}
