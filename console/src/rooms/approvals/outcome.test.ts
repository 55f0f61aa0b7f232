import { expect, it } from 'vitest';
import { outcomeOf } from './outcome';

it('tells of every vote that was not counted', () => {
  expect(outcomeOf([], 3)).toBe('3 votes are counted.');
  expect(outcomeOf([{ title: 'Restart?', why: 'it has expired' }], 2)).toBe('1 vote is counted. Not counted: “Restart?”: it has expired.');
  const both = [
    { title: 'a?', why: 'it has expired' },
    { title: 'b?', why: 'sign in again.' },
  ];
  expect(outcomeOf(both, 2)).toBe('0 votes are counted. Not counted: “a?”: it has expired. Not counted: “b?”: sign in again.');
});
