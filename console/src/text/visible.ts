/**
 * Untrusted text made safe to show, by the same list as the server's: what commands, hides or reorders instead of being
 * read is spelled out (`\u{202e}`).
 */

const HIDDEN = new RegExp(
  '[' +
    '\\u{0}-\\u{1f}\\u{7f}-\\u{9f}' +
    '\\u{ad}\\u{34f}\\u{61c}\\u{115f}\\u{1160}\\u{17b4}\\u{17b5}\\u{3164}\\u{ffa0}' +
    '\\u{180b}-\\u{180f}\\u{200b}-\\u{200f}\\u{2028}-\\u{202e}\\u{2060}-\\u{206f}' +
    '\\u{2800}\\u{fe00}-\\u{fe0f}\\u{feff}\\u{fff0}-\\u{fffb}' +
    '\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}' +
    ']',
  'gu',
);

const NAMED: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function spelled(character: string): string {
  return NAMED[character] ?? `\\u{${character.codePointAt(0)!.toString(16)}}`;
}

export interface Piece {
  text: string;
  /** Spelled out, because the character itself would not be read. */
  hidden: boolean;
}

/** The text in pieces, hidden characters apart. `lines` leaves line feeds and tabs as they are. */
export function pieces(text: string, lines = false): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const character = match[0];
    if (lines && (character === '\n' || character === '\t')) continue;
    if (match.index > from) found.push({ text: text.slice(from, match.index), hidden: false });
    found.push({ text: spelled(character), hidden: true });
    from = match.index + character.length;
  }
  if (from < text.length) found.push({ text: text.slice(from), hidden: false });
  return found;
}

/** One line, for titles, labels and other places that take only text. */
export function visible(text: string): string {
  return text.replace(HIDDEN, spelled);
}
