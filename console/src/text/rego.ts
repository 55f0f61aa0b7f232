/** Enough of Rego to colour it. It only colours; it decides nothing. */

import type { YamlToken } from './yaml';

const WORDS = 'package|import|default|if|else|contains|in|some|every|not|as|with|true|false|null';
const PART = new RegExp(`(#.*$)|("(?:[^"\\\\]|\\\\.)*"|\`[^\`]*\`)|(?<![\\w.])(?:${WORDS})(?![\\w.])`, 'g');

export function regoTokens(line: string): YamlToken[] {
  const found: YamlToken[] = [];
  let from = 0;
  for (const match of line.matchAll(PART)) {
    const [whole, comment, text] = match;
    if (match.index > from) found.push({ kind: 'plain', text: line.slice(from, match.index) });
    found.push({ kind: comment !== undefined ? 'comment' : text !== undefined ? 'text' : 'name', text: whole });
    from = match.index + whole.length;
  }
  if (from < line.length) found.push({ kind: 'plain', text: line.slice(from) });
  return found;
}
