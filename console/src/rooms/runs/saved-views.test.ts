import { expect, it } from 'vitest';
import { filtersOf, readViews, sharedAddress, VIEWS_MAX, viewAddress, withView } from './saved-views';

it('keeps the filters of an address, in one order, and nothing else of it', () => {
  const query = new URLSearchParams('workflow=w&after=run_1&state=failed&job=job_1&view=Mine&label=b:2&label=a:1');
  expect(filtersOf(query)).toBe('label=b%3A2&label=a%3A1&state=failed&workflow=w');
});

it('takes only what can be a view from what was kept', () => {
  expect(readViews(null)).toEqual([]);
  expect(readViews('{')).toEqual([]);
  expect(readViews('7')).toEqual([]);
  const kept = [{ name: 'a', query: 'state=failed&after=run_1' }, null, { name: 3, query: '' }, { name: 'x'.repeat(41), query: '' }];
  expect(readViews(JSON.stringify(kept))).toEqual([{ name: 'a', query: 'state=failed' }]);
  const many = Array.from({ length: 50 }, (_, number) => ({ name: String(number), query: '' }));
  expect(readViews(JSON.stringify(many))).toHaveLength(VIEWS_MAX);
});

it('replaces a view of the same name', () => {
  const views = [{ name: 'a', query: 'state=failed' }, { name: 'b', query: '' }];
  expect(withView(views, { name: 'a', query: 'state=paused' })).toEqual([views[1], { name: 'a', query: 'state=paused' }]);
});

it('has an address for oneself and one for others', () => {
  const view = { name: 'On & off', query: 'state=failed' };
  expect(viewAddress(view)).toBe('/runs?state=failed');
  expect(sharedAddress('https://h', view)).toBe('https://h/runs?state=failed&view=On+%26+off');
});
