import { expect, it } from 'vitest';
import { regoTokens } from './rego';

it('colours words of the language, texts and comments, and loses nothing', () => {
  const line = 'deny contains {"rule": "no_gifts"} if { # nobody';
  expect(regoTokens(line).filter((token) => token.kind !== 'plain').map((token) => token.text)).toEqual([
    'contains', '"rule"', '"no_gifts"', 'if', '# nobody',
  ]);
  for (const each of [line, '\tnot input.action.reversible', 'x := "a#b\\"c"', '', 'data.config.in_use']) {
    expect(regoTokens(each).map((token) => token.text).join('')).toBe(each);
  }
  expect(regoTokens('data.default.if').map((token) => token.kind)).toEqual(['plain']);
});
