/** The open approvals: which of them wait for this person, and in which order. */

import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, must, type Approval, type Me } from '../../api/client';
import { grants } from '../../api/permission';
import { useMe } from '../../api/session';

export const INBOX_MAX = 200;

export const openApprovals = queryOptions({
  queryKey: ['approvals', 'open'],
  queryFn: () => must(api.GET('/api/v1/approvals', { params: { query: { state: 'requested', order: 'due', limit: INBOX_MAX } } })),
});

/** Which of the open ones are listed. */
export type Shown = 'all' | 'mine' | 'overdue';

/** As the address names it. */
export function shownOf(name: string): Shown {
  return name === 'mine' || name === 'overdue' ? name : 'all';
}

export function isOverdue(approval: Approval, now: number): boolean {
  return approval.state === 'requested' && (approval.escalate_at ?? 0) < now;
}

/** By what is chosen, and by words that stand in the question, the workflow or the subject. */
export function chosenOf(approvals: readonly Approval[], me: Decider, by: { shown: Shown; words: string; now: number }): Approval[] {
  const words = by.words.toLowerCase().split(/\s+/).filter(Boolean);
  return approvals.filter((approval) => {
    if (by.shown === 'mine' && !canDecide(approval, me)) return false;
    if (by.shown === 'overdue' && !isOverdue(approval, by.now)) return false;
    const text = [titleOf(approval, approval.subject), approval.message, approval.workflow, approval.subject, approval.run_id].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export const approvalQuery = (approval: string) =>
  queryOptions({
    queryKey: ['approvals', approval],
    queryFn: () => must(api.GET('/api/v1/approvals/{approval}', { params: { path: { approval } } })),
  });

export const delegationsQuery = queryOptions({
  queryKey: ['delegations'],
  queryFn: () => must(api.GET('/api/v1/delegations', { params: { query: { limit: 200 } } })),
  staleTime: 60_000,
});

/** The person who is signed in, with those who have lent them their right to decide. */
export function useDecider(): Decider {
  const me = useMe();
  const delegations = useQuery({ ...delegationsQuery, enabled: me.person != null && grants(me.roles, 'read') });
  const lent = (delegations.data?.delegations ?? []).filter((each) => each.in_force && each.delegate === me.person);
  return { ...me, lenders: lent.map((each) => each.delegator) };
}

export function hasVoted(approval: Approval, person: string): boolean {
  return approval.votes.some((vote) => vote.person === person || vote.on_behalf_of === person);
}

/** Who decides: a person, and those who have lent them their right. */
export type Decider = Me & { lenders?: readonly string[] };

/** In whose right a decision is worth offering. The server looks at more: a lender's groups, who made an account, and when. */
export interface Right {
  own: boolean;
  lenders: readonly string[];
}

const NONE: Right = { own: false, lenders: [] };

/** Whether a person started or directed the run, and may not decide for that. */
function isBarred(approval: Approval, person: string): boolean {
  return approval.self_approval !== true && approval.excluded.includes(person);
}

export function rightOn(approval: Approval, me: Decider): Right {
  if (approval.state !== 'requested' || me.person == null) return NONE;
  // The two count as one person: what the one may not decide on, or has, the other may not in their name either.
  if (isBarred(approval, me.person) || hasVoted(approval, me.person)) return NONE;
  const asked = approval.approvers.length === 0 || approval.approvers.some((group) => (me.groups ?? []).includes(group));
  // What was lent is used without a role of one's own.
  const own = asked && grants(me.roles, 'vote');
  return { own, lenders: (me.lenders ?? []).filter((lender) => !isBarred(approval, lender) && !hasVoted(approval, lender)) };
}

export function canDecide(approval: Approval, me: Decider): boolean {
  const { own, lenders } = rightOn(approval, me);
  // The server has looked at more, where it was asked by this person.
  return (own || lenders.length > 0) && approval.may_decide !== false;
}

/** Why a person is not offered a decision. */
export function whyNot(approval: Approval, me: Decider): string {
  if (me.person != null && hasVoted(approval, me.person)) return 'You have voted. The others’ votes appear here as they come.';
  if (me.person != null && isBarred(approval, me.person)) return 'You started or directed this run, so others decide.';
  if (!grants(me.roles, 'vote') && (me.lenders ?? []).length === 0) return 'Deciding needs the role approver.';
  return approval.approvers.length === 0 ? 'Others decide on this one.' : `Members of ${approval.approvers.join(', ')} decide on this one.`;
}

/** When approvers are reminded, or else when the approval expires. */
export function dueAt(approval: Approval): number {
  return approval.escalate_at ?? approval.expires_at;
}

/** Mine first, then what is due first. */
export function inOrder(approvals: readonly Approval[], me: Decider): Approval[] {
  const rank = (approval: Approval) => (canDecide(approval, me) ? 0 : 1);
  // What is overdue has no instant any more at which it is due.
  const due = (approval: Approval) => approval.escalate_at ?? 0;
  return approvals.toSorted((a, b) => rank(a) - rank(b) || due(a) - due(b));
}

/** What is asked, in one line: the action, where there is one, else the workflow's own question. */
export function titleOf(approval: Approval, subject?: string | null): string {
  const { action, message } = approval;
  if (action == null || action.kind === 'approval') return message ?? 'The workflow asks without a message.';
  const asked = approval.purpose === 'gate' ? action.operation : `${approval.purpose} ${action.operation}`;
  return subject == null ? `${asked}?` : `${asked} for ${subject}?`;
}

/** Why people are asked, where the question is not the message itself. */
export function reasonOf({ action, message }: Approval): string | undefined {
  return action == null || action.kind === 'approval' ? undefined : (message ?? undefined);
}
