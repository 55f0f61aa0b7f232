import { expect, it } from 'vitest';
import { labelsOf } from './start-options';

it('takes labels line by line, and says what is wrong with one', () => {
  expect(labelsOf('team:sre\n\n why: a: b ')).toEqual({ team: 'sre', why: 'a: b' });
  expect(labelsOf('')).toEqual({});
  expect(() => labelsOf('team')).toThrow('name:value');
});
