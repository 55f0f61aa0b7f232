import { describe, expect, it } from 'vitest';
import { pieces, visible } from './visible';

describe('visible', () => {
  it('leaves plain text of any script alone', () => {
    for (const text of ['', 'order-41931', 'größer → ✓', '日本語', 'שלום', 'a\\b']) expect(visible(text)).toBe(text);
  });

  it('spells out what commands, hides or reorders', () => {
    expect(visible('a\u001b[2Jb')).toBe('a\\u{1b}[2Jb');
    expect(visible('x\u202etxt.exe')).toBe('x\\u{202e}txt.exe');
    expect(visible('ad\u200bmin\ufeff')).toBe('ad\\u{200b}min\\u{feff}');
    expect(visible('tag\u{e0041}')).toBe('tag\\u{e0041}');
    expect(visible('one\r\ntwo\tthree')).toBe('one\\r\\ntwo\\tthree');
  });

  it('keeps line breaks where lines are shown', () => {
    expect(pieces('one\n\ttwo\u0007', true)).toEqual([
      { text: 'one\n\ttwo', hidden: false },
      { text: '\\u{7}', hidden: true },
    ]);
  });
});
