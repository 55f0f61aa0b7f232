import { expect, it } from 'vitest';
import { difference } from './difference';

it('keeps what both have and tells the rest apart', () => {
  expect(difference('a\nb\nc', 'a\nx\nc\nd')).toEqual([
    { kind: 'same', text: 'a' },
    { kind: 'gone', text: 'b' },
    { kind: 'new', text: 'x' },
    { kind: 'same', text: 'c' },
    { kind: 'new', text: 'd' },
  ]);
});
