import { expect, it } from 'vitest';
import { openParts } from './charts';

it('shows no more waiting runs than there are open ones', () => {
  expect(openParts(3, 1).map((part) => part.value)).toEqual([1, 2]);
  expect(openParts(2, 5).map((part) => part.value)).toEqual([2, 0]);
  expect(openParts(0, 0).map((part) => part.value)).toEqual([0, 0]);
});
