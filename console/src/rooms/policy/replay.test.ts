import { expect, it } from 'vitest';
import { outcomes } from './replay';

it('counts every decision once, and names first what is newly allowed', () => {
  const found = { decisions: 28, same: 1, newly_allowed: 2, newly_gated: 3, newly_denied: 4, newly_undecided: 5, otherwise: 6, unreadable: 7, differences: [], more: false };
  expect(outcomes(found).reduce((sum, [, count]) => sum + count, 0)).toBe(found.decisions);
  expect(outcomes(found)[0]).toEqual(['newly allowed', 2, 'asks']);
});
