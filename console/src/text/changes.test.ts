import { expect, it } from 'vitest';
import { changes } from './changes';

it('tells field by field what is new, gone and other', () => {
  const before = { host: 'db-1', ports: [1, 2], drain: true, old: null };
  const after = { host: 'db-2', ports: [1, 3, 4], drain: true, note: { by: 'ada' } };
  expect(changes(before, after)).toEqual([
    { path: 'host', before: '"db-1"', after: '"db-2"' },
    { path: 'note', before: undefined, after: '{"by":"ada"}' },
    { path: 'old', before: 'null', after: undefined },
    { path: 'ports[1]', before: '2', after: '3' },
    { path: 'ports[2]', before: undefined, after: '4' },
  ]);
  expect(changes({ a: 1, b: 2 }, { b: 2, a: 1 })).toEqual([]);
  expect(changes(1, '1')).toEqual([{ path: '', before: '1', after: '"1"' }]);
});
