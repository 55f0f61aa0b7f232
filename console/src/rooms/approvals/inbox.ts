/** The open approvals: which of them wait for this person, and in which order. */

import { queryOptions } from '@tanstack/react-query';
import { api, must, type Approval, type Me } from '../../api/client';
import { grants } from '../../api/permission';

export const INBOX_MAX = 200;

export const openApprovals = queryOptions({
  queryKey: ['approvals', 'open'],
  queryFn: () => must(api.GET('/api/v1/approvals', { params: { query: { state: 'requested', limit: INBOX_MAX } } })),
});

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

export function hasVoted(approval: Approval, person: string): boolean {
  return approval.votes.some((vote) => vote.person === person || vote.on_behalf_of === person);
}

/** Whether it is worth offering. The server looks at more: who made an account, for instance, and when. */
export function canDecide(approval: Approval, me: Me): boolean {
  if (approval.state !== 'requested' || me.person == null || !grants(me.roles, 'vote')) return false;
  if (approval.excluded.includes(me.person) || hasVoted(approval, me.person)) return false;
  return approval.approvers.length === 0 || approval.approvers.some((group) => (me.groups ?? []).includes(group));
}

/** When somebody is chased, or it is over. */
export function dueAt(approval: Approval): number {
  return approval.escalate_at ?? approval.expires_at;
}

/** Mine first, then what is due first. */
export function inOrder(approvals: readonly Approval[], me: Me): Approval[] {
  const rank = (approval: Approval) => (canDecide(approval, me) ? 0 : 1);
  return approvals.toSorted((a, b) => rank(a) - rank(b) || dueAt(a) - dueAt(b));
}

/** What is asked, in one line: the action, where there is one, else the workflow's own question. */
export function titleOf(approval: Approval, subject?: string | null): string {
  const { action, message } = approval;
  if (action == null) return message ?? 'The workflow asks without a message.';
  const asked = approval.purpose === 'gate' ? action.operation : `${approval.purpose} ${action.operation}`;
  return subject == null ? `${asked}?` : `${asked} for ${subject}?`;
}

/** Why people are asked, where the question is not the message itself. */
export function reasonOf({ action, message }: Approval): string | undefined {
  return action == null ? undefined : (message ?? undefined);
}
