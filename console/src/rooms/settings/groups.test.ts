import { expect, it } from 'vitest';
import type { Schema } from '../../api/client';
import { groupsOf } from './groups';

const person = (name: string, roles: string[], groups: string[], disabled_at?: number) => ({ name, roles, groups, disabled_at }) as unknown as Schema['UserView'];

it('gathers people by group, and counts who can decide', () => {
  const people = [person('ada', ['admin'], ['sre', 'dba']), person('bob', ['approver'], ['sre']), person('vera', ['viewer'], ['sre']), person('gone', ['approver'], ['dba'], 5)];
  expect(groupsOf(people).map(({ name, people, deciding }) => [name, people.length, deciding])).toEqual([
    ['dba', 2, 1],
    ['sre', 3, 2],
  ]);
});
