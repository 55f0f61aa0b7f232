import { expect, it } from 'vitest';
import { answerOf, demand, lookOf } from './answer';

it('says what an answer demands of people', () => {
  const obligations = { quorum: 2, approvers: ['sre', 'dba'], exclude: ['starter', 'author'], escalate_after_s: 1_800, expires_after_s: 86_400, scope: 'step' };
  expect(demand(obligations)).toBe(
    '2 different people (of sre, dba, but not the person who started the run or the author of the workflow) must agree to this step. They are reminded after 30 min. The approval expires after 1 d.',
  );
  expect(demand({ quorum: 1, scope: 'phase' })).toBe('One person (anybody who may approve) must agree to the whole phase.');
  expect(demand(null)).toBeUndefined();
});

it('reads what rules gave, and leaves out what is not of its form', () => {
  expect(answerOf({ verdict: 'deny', tier: 'high', reasons: [{ rule: 'a', text: 'b' }, { rule: 1 }, null], obligations: null })).toEqual({
    verdict: 'deny', tier: 'high', reasons: [{ rule: 'a', text: 'b' }], obligations: null,
  });
  expect(answerOf('allow')).toEqual({});
  expect(answerOf({ reasons: 'none', tier: 3 })).toEqual({ reasons: [], obligations: null });
});

it('has a word for a verdict that it does not know', () => {
  expect(lookOf('needs_approval')).toEqual(['asks', 'needs approval']);
  expect(lookOf('ask_later')).toEqual(['idle', 'ask later']);
});
