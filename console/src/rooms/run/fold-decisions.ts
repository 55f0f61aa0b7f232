/** Decisions of the policy on one step, with equal ones together. */

import type { Approval, Schema } from '../../api/client';
import { answerOf } from '../policy/answer';

type Decision = Schema['DecisionView'];

/** Decisions with the same verdict, tier, reasons and demands become one group; groups and members stay in their order. */
export function foldDecisions(decisions: readonly Decision[]): Decision[][] {
  const groups = new Map<string, Decision[]>();
  for (const decision of decisions) {
    const { reasons, obligations } = answerOf(decision.answer);
    const key = JSON.stringify([decision.verdict, decision.tier, reasons, obligations, answerOf(decision.shadow).verdict]);
    groups.set(key, [...(groups.get(key) ?? []), decision]);
  }
  return [...groups.values()];
}

/** The approval is requested with the decision; their clocks may differ by a moment. */
const SLACK_MS = 1_000;

/** Whether people have given the approval that the decision asked for: the first that was requested from then on. */
export function givenFor(decision: Decision, approvals: readonly Approval[]): boolean {
  if (decision.verdict !== 'needs_approval') return false;
  const asked = approvals.toSorted((a, b) => a.requested_at - b.requested_at).find((approval) => approval.requested_at >= decision.at - SLACK_MS);
  return asked?.state === 'approved';
}
