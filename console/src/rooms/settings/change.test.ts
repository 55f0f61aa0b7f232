import { expect, it } from 'vitest';
import { deedsFor, isHidden, type Change } from './change';

const change = (state: string) => ({ state, asked_by: 'ada' }) as Change;

it('lets others decide, and who asked carry it out', () => {
  expect(deedsFor(change('requested'), 'bob')).toEqual(['agree', 'reject']);
  expect(deedsFor(change('requested'), 'ada')).toEqual([]);
  expect(deedsFor(change('approved'), 'ada')).toEqual(['carry out']);
  expect(deedsFor(change('approved'), 'bob')).toEqual([]);
  expect(deedsFor(change('used'), 'ada')).toEqual([]);
});

it('knows a request of which a part is not kept', () => {
  expect(isHidden({ slack: { signing_secret: '(hidden)' } })).toBe(true);
  expect(isHidden({ roles: ['admin'], name: 'x' })).toBe(false);
  expect(isHidden(null)).toBe(false);
});
