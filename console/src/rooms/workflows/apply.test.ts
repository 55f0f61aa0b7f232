import { expect, it } from 'vitest';
import { placeIn } from './apply';

it('finds the place of a line and a column, and stays inside of the text', () => {
  const text = 'name: w\nsteps:\n  - id: a\n';
  expect(placeIn(text, 1, 1)).toBe(0);
  expect(placeIn(text, 3, 5)).toBe(text.indexOf('id: a'));
  expect(placeIn(text, 2, 99)).toBe(text.indexOf('\n  - id'));
  expect(placeIn(text, 99, 99)).toBe(text.length);
});
