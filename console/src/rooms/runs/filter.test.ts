import { expect, it } from 'vitest';
import { bulkFilter, filterOf, inWords, isEmpty, notForBulk, searched } from './filter';

it('reads the address, and nothing that is no state', () => {
  const filter = filterOf(new URLSearchParams('state=failed&workflow=order&label=team:sre&since=1h'), 7_230_000);
  expect(filter).toMatchObject({ state: 'failed', workflow: 'order', label: ['team:sre'], created_from: 3_600_000 });
  expect(isEmpty(filterOf(new URLSearchParams('state=broken&after=run_1'), 0))).toBe(true);
});

it('asks a bulk job the same question', () => {
  const filter = filterOf(new URLSearchParams('state=paused&input=host:db:1'), 0);
  expect(bulkFilter(filter)).toEqual({ state: 'paused', inputs: { host: 'db:1' } });
  expect(inWords(filter)).toBe('state paused, input host:db:1');
});

it('offers no bulk action on everything, nor on what its filter cannot say', () => {
  const reason = (query: string) => notForBulk(filterOf(new URLSearchParams(query), 0));
  expect(reason('')).toMatch(/never means everything/);
  expect(reason('state=failed&text=INC')).toMatch(/no part of a text/);
  expect(reason('state=failed&subject=INC1')).toBeUndefined();
});

it('understands what is typed', () => {
  expect(searched('run_01a1e407bc4372b68a85d4b42dda2e58')).toEqual({ run: 'run_01a1e407bc4372b68a85d4b42dda2e58' });
  expect(searched('INC1001')).toEqual({ name: 'text', value: 'INC1001' });
  expect(searched('subject:INC1001')).toEqual({ name: 'subject', value: 'INC1001' });
  expect(searched('team:sre')).toEqual({ name: 'label', value: 'team:sre' });
  expect(searched('input.host:db-1')).toEqual({ name: 'input', value: 'host:db-1' });
  expect(searched('  ')).toBeUndefined();
});
