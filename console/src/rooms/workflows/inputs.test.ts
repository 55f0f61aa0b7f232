import { expect, it } from 'vitest';
import { schemaOf, valueOf } from './inputs';

it('gives each input the type that the workflow declares', () => {
  expect(valueOf('n', { type: 'integer' }, '12')).toBe(12);
  expect(valueOf('t', { type: 'string' }, '12')).toBe('12');
  expect(valueOf('b', { type: 'boolean' }, 'true')).toBe(true);
  expect(valueOf('b', { type: 'boolean' }, '')).toBe(false);
  expect(valueOf('e', { enum: [1, 'two'] }, '1')).toBe(1);
  expect(valueOf('o', { type: 'object' }, '{"a":1}')).toEqual({ a: 1 });
  expect(valueOf('s', { type: 'string', secret: true }, 'DB_PASSWORD')).toEqual({ $secret: 'DB_PASSWORD' });
});

it('leaves out what was not typed, and refuses what does not fit', () => {
  expect(valueOf('t', { type: 'string' }, '')).toBeUndefined();
  expect(() => valueOf('n', { type: 'integer' }, '1.5')).toThrow('whole number');
  expect(() => valueOf('o', { type: 'array' }, 'a, b')).toThrow('JSON');
});

it('reads the short form of a declaration', () => {
  expect(schemaOf('integer')).toEqual({ type: 'integer' });
});
