import { expect, it } from 'vitest';
import { asSentence } from './notes';

it('makes a sentence of what the server says', () => {
  expect(asSentence('the reason is missing')).toBe('The reason is missing.');
  expect(asSentence('Wait a moment.')).toBe('Wait a moment.');
});
