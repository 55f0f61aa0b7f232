/** Enough of YAML to colour it: comments, names, texts and expressions. It only colours; it decides nothing. */

export type YamlKind = 'comment' | 'name' | 'text' | 'expression' | 'plain';
export interface YamlToken {
  kind: YamlKind;
  text: string;
}

const PART = /(#.*$)|(\$\{\{.*?\}\})|(?<!\w)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')|([\w$-]+(?=\s*:(?:\s|$)))/g;

export function yamlTokens(line: string): YamlToken[] {
  const found: YamlToken[] = [];
  let from = 0;
  for (const match of line.matchAll(PART)) {
    const [whole, comment, expression, text] = match;
    // `#` begins a comment only at the start of a line or behind a space.
    if (comment !== undefined && match.index > 0 && !/\s/.test(line[match.index - 1]!)) continue;
    if (match.index > from) found.push({ kind: 'plain', text: line.slice(from, match.index) });
    const kind = comment !== undefined ? 'comment' : expression !== undefined ? 'expression' : text !== undefined ? 'text' : 'name';
    found.push({ kind, text: whole });
    from = match.index + whole.length;
  }
  if (from < line.length) found.push({ kind: 'plain', text: line.slice(from) });
  return found;
}
