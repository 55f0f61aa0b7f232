import { expect, it } from 'vitest';
import type { Run } from '../../api/client';
import { heldBack, heldRows } from './held';

const run = (id: string, state = 'running') => ({ run_id: id, state }) as Run;

it('takes what is new while the viewer does not point at the list', () => {
  expect(heldRows([run('a')], [run('b'), run('a')], false)).toEqual({ rows: [run('b'), run('a')], arrived: 0, left: 0 });
});

it('changes states in place and counts what arrived while the viewer does', () => {
  const held = heldRows([run('a'), run('z')], [run('b'), run('a', 'failed')], true);
  expect(held).toEqual({ rows: [run('a', 'failed'), run('z')], arrived: 1, left: 1 });
  expect(heldBack(held)).toBe('1 new');
});

it('says that rows are old once their runs no longer match', () => {
  const held = heldRows([run('a'), run('z')], [run('a')], true);
  expect(held).toEqual({ rows: [run('a'), run('z')], arrived: 0, left: 1 });
  expect(heldBack(held)).toBe('1 no longer here');
});

it('holds no list that has become empty', () => {
  const held = heldRows([run('a')], [], true);
  expect(held.rows).toEqual([]);
  expect(heldBack(held)).toBeUndefined();
});
