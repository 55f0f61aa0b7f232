import { expect, it } from 'vitest';
import type { Approval, Schema } from '../../api/client';
import { foldDecisions, givenFor } from './fold-decisions';

type Decision = Schema['DecisionView'];
const decided = (decision: string, verdict: string, rule: string, at = 0) =>
  ({ decision, verdict, tier: 'low', at, answer: { verdict, reasons: [{ rule, text: rule }] } }) as unknown as Decision;

it('puts decisions with the same verdict and reasons together', () => {
  const list = [decided('d4', 'allow', 'reads'), decided('d3', 'deny', 'reads'), decided('d2', 'allow', 'reads'), decided('d1', 'allow', 'known')];
  expect(foldDecisions(list).map((equal) => equal.map((each) => each.decision))).toEqual([['d4', 'd2'], ['d3'], ['d1']]);
});

it('says that an approval was given only for the decision that asked for it', () => {
  const approval = (state: string, requested_at: number) => ({ state, requested_at }) as Approval;
  const asks = (at: number) => decided('d', 'needs_approval', 'two_keys', at);
  expect(givenFor(asks(5_000), [approval('approved', 5_001)])).toBe(true);
  expect(givenFor(asks(5_000), [approval('requested', 5_001)])).toBe(false);
  expect(givenFor(asks(90_000), [approval('approved', 5_001), approval('requested', 90_001)])).toBe(false);
  expect(givenFor(decided('d', 'allow', 'reads'), [approval('approved', 0)])).toBe(false);
});
