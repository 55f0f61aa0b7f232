import { expect, it } from 'vitest';
import type { Approval, Me } from '../../api/client';
import { canDecide, chosenOf, inOrder, reasonOf, rightOn, titleOf, whyNot } from './inbox';

const approval = (rest: Partial<Approval>): Approval =>
  ({ approval: 'apr', state: 'requested', approvers: [], excluded: [], votes: [], expires_at: 100, ...rest }) as Approval;
const bob = { person: 'bob', roles: ['approver'], groups: ['sre'] } as unknown as Me;

it('offers a decision to whom the approval asks, once', () => {
  expect(canDecide(approval({}), bob)).toBe(true);
  expect(canDecide(approval({ approvers: ['sre'] }), bob)).toBe(true);
  expect(canDecide(approval({ approvers: ['dba'] }), bob)).toBe(false);
  expect(canDecide(approval({ excluded: ['bob'] }), bob)).toBe(false);
  expect(canDecide(approval({ excluded: ['bob'], self_approval: true }), bob)).toBe(true);
  expect(canDecide(approval({ votes: [{ person: 'bob', approve: true, at: 1 }] }), bob)).toBe(false);
  expect(canDecide(approval({ votes: [{ person: 'ada', on_behalf_of: 'bob', approve: true, at: 1 }] }), bob)).toBe(false);
  expect(canDecide(approval({ state: 'approved' }), bob)).toBe(false);
  expect(canDecide(approval({}), { ...bob, roles: ['viewer'] })).toBe(false);
  expect(canDecide(approval({}), { ...bob, person: null })).toBe(false);
});

it('offers what was lent, but not where the two count as one person already', () => {
  const lent = { ...bob, lenders: ['dora'] };
  expect(rightOn(approval({ approvers: ['dba'] }), lent)).toEqual({ own: false, lenders: ['dora'] });
  expect(rightOn(approval({}), lent)).toEqual({ own: true, lenders: ['dora'] });
  expect(rightOn(approval({}), { ...lent, roles: ['viewer'] })).toEqual({ own: false, lenders: ['dora'] });
  expect(canDecide(approval({}), { ...lent, roles: ['viewer'] })).toBe(true);
  expect(canDecide(approval({ may_decide: false }), { ...lent, roles: ['viewer'] })).toBe(false);
  expect(canDecide(approval({ approvers: ['dba'], excluded: ['dora'] }), lent)).toBe(false);
  expect(canDecide(approval({ approvers: ['dba'], excluded: ['bob'] }), lent)).toBe(false);
  expect(canDecide(approval({ approvers: ['dba'], votes: [{ person: 'dora', approve: true, at: 1 }] }), lent)).toBe(false);
});

it('puts mine first, then what is due first', () => {
  const later = approval({ approval: 'later', escalate_at: 90 });
  const sooner = approval({ approval: 'sooner', escalate_at: 20 });
  const others = approval({ approval: 'others', approvers: ['dba'], escalate_at: 1 });
  expect(inOrder([others, later, sooner], bob).map((each) => each.approval)).toEqual(['sooner', 'later', 'others']);
});

it('believes the server about who may not decide', () => {
  expect(canDecide(approval({ may_decide: false }), bob)).toBe(false);
  expect(canDecide(approval({ may_decide: true, approvers: ['dba'] }), bob)).toBe(false);
});

it('says why a person is not offered a decision', () => {
  expect(whyNot(approval({ votes: [{ person: 'bob', approve: true, at: 1 }] }), bob)).toMatch(/^You have voted/);
  expect(whyNot(approval({ excluded: ['bob'] }), bob)).toMatch(/^You started or directed/);
  expect(whyNot(approval({}), { ...bob, roles: ['viewer'] })).toBe('Deciding needs the role approver.');
  expect(whyNot(approval({ approvers: ['dba'] }), bob)).toBe('Members of dba decide on this one.');
  expect(whyNot(approval({ may_decide: false }), bob)).toBe('Others decide on this one.');
});

it('lists those that are chosen', () => {
  const mine = approval({ approval: 'mine', escalate_at: 90, workflow: 'restart', subject: 'INC-1', message: 'Restart?' });
  const late = approval({ approval: 'late', escalate_at: null, approvers: ['dba'], workflow: 'refund' });
  const ids = (shown: 'all' | 'mine' | 'overdue', words = '') => chosenOf([mine, late], bob, { shown, words, now: 50 }).map((each) => each.approval);
  expect([ids('all'), ids('mine'), ids('overdue')]).toEqual([['mine', 'late'], ['mine'], ['late']]);
  expect([ids('all', 'inc-1 RESTART'), ids('all', 'refund'), ids('mine', 'refund')]).toEqual([['mine'], ['late'], []]);
});

it('asks about the action, and says the rule as the reason', () => {
  const gate = approval({ message: 'Restart db-1?' });
  expect([titleOf(gate, 'INC1'), reasonOf(gate)]).toEqual(['Restart db-1?', undefined]);
  const guarding = approval({ message: 'Restart db-1?', action: { kind: 'approval', then: [] } as unknown as Approval['action'] });
  expect([titleOf(guarding, 'INC1'), reasonOf(guarding)]).toEqual(['Restart db-1?', undefined]);
  const action = { operation: 'card:refund' } as Approval['action'];
  const judged = approval({ action, purpose: 'gate', message: 'critical_step: the step is declared critical' });
  expect([titleOf(judged, 'order-1'), reasonOf(judged)]).toEqual(['card:refund for order-1?', 'critical_step: the step is declared critical']);
  expect(titleOf(approval({ action, purpose: 'skip' }))).toBe('skip card:refund?');
});
