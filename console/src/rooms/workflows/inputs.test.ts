import { expect, it } from 'vitest';
import { schemaOf, valueOf, limitsOf, typedAs } from './inputs';

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

it('fills in what another run had, and says what a value has to keep to', () => {
  expect([typedAs({ default: 'a' }), typedAs({ default: 3 }), typedAs({ default: { a: 1 } }), typedAs({})]).toEqual(['a', '3', '{"a":1}', '']);
  expect(typedAs({ secret: true, default: { $secret: 'db' } })).toBe('db');
  expect(limitsOf({ type: 'integer', min: 1, max: 9 })).toBe('A whole number. 1 to 9.');
  expect(limitsOf({ type: 'string', max_length: 5, pattern: '^x' })).toBe('At most 5 characters. Like ^x');
  expect(limitsOf({ type: 'string' })).toBe('');
});
