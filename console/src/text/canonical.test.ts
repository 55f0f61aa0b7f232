import { expect, it } from 'vitest';
import { canonical } from './canonical';

it('puts names in order at every depth, and leaves lists as they are', () => {
  expect(canonical({ b: 1, a: { d: [3, { z: 1, y: 2 }], c: 'é\n' } })).toBe('{"a":{"c":"é\\n","d":[3,{"y":2,"z":1}]},"b":1}');
});
