import { expect, it } from 'vitest';
import { summary } from './tests';

it('says how many did not pass, where some did not', () => {
  expect(summary({ passed: 1, failed: 0, tests: [] })).toBe('1 test passed');
  expect(summary({ passed: 12, failed: 0, tests: [] })).toBe('12 tests passed');
  expect(summary({ passed: 11, failed: 1, tests: [] })).toBe('1 of 12 tests did not pass');
});
