import { expect, it } from 'vitest';
import { canonical, readable } from './canonical';

it('puts names in order at every depth, and leaves lists as they are', () => {
  expect(canonical({ b: 1, a: { d: [3, { z: 1, y: 2 }], c: 'é\n' } })).toBe('{"a":{"c":"é\\n","d":[3,{"y":2,"z":1}]},"b":1}');
  expect(readable({ b: 1, a: 2 })).toBe(readable({ a: 2, b: 1 }));
});
