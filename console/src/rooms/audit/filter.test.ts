import { expect, it } from 'vitest';
import { auditFilterOf, dayStart, isFiltered } from './filter';

const filterOf = (query: string) => auditFilterOf(new URLSearchParams(query));

it('reads the address, and nothing that the server would refuse', () => {
  const run = `run_${'0'.repeat(32)}`;
  expect(filterOf(`run=${run}&type=approval&actor=ada`)).toMatchObject({ run, type: 'approval', actor: 'ada' });
  expect(isFiltered(filterOf('run=INC1001&actor=%20&from=yesterday'))).toBe(false);
});

it('takes whole days of the viewer’s zone', () => {
  const { since, until } = filterOf('from=2026-01-31&to=2026-01-31');
  expect(new Date(since!).getDate()).toBe(31);
  expect(until).toBe(dayStart('2026-02-01'));
});
