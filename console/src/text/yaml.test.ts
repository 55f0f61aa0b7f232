import { expect, it } from 'vitest';
import { yamlTokens } from './yaml';

it('colours names, expressions, texts and comments, and loses nothing', () => {
  const line = 'subject: ${{ inputs.order }} # one active run';
  expect(yamlTokens(line).map((token) => token.kind)).toEqual(['name', 'plain', 'expression', 'plain', 'comment']);
  expect(yamlTokens("the shop's and the customer's").map((token) => token.kind)).toEqual(['plain']);
  for (const each of [line, "  - id: 'it''s'", 'a#b: 1', '    cron: "0 3 * * *"']) {
    expect(yamlTokens(each).map((token) => token.text).join('')).toBe(each);
  }
});
