import { expect, it } from 'vitest';
import { tokens } from './json';

it('tells names, texts, numbers and words apart', () => {
  expect(tokens('  "a": "b\\"c",').map((token) => token.kind)).toEqual(['mark', 'name', 'mark', 'mark', 'text', 'mark']);
  expect(tokens('  -1.5e3, true, null').map((token) => token.kind)).toEqual([
    'mark', 'number', 'mark', 'word', 'mark', 'word',
  ]);
});

it('loses nothing of a line', () => {
  for (const line of ['{', '  "x": [', '    "a: \\u202e b",', '    12, false', '  ]']) {
    expect(tokens(line).map((token) => token.text).join('')).toBe(line);
  }
});
