import { expect, test } from 'vitest';
import { LINES_MAX, Screen, textOf, type OutputStream } from './screen';

let seq = 0;
function shown(...texts: (string | [OutputStream, string])[]): Screen {
  const screen = new Screen();
  for (const each of texts) {
    const [stream, text] = typeof each === 'string' ? (['stdout', each] as const) : each;
    screen.take({ attempt: 1, seq: (seq += 1), at: 0, stream, text });
  }
  return screen;
}
const texts = (screen: Screen) => screen.lines.map(textOf);

test('lines are put together across chunks', () => {
  expect(texts(shown('on', 'e\ntw', 'o\n', '\n', 'three'))).toEqual(['one', 'two', '', 'three']);
});

test('colours are kept, also where a sequence is cut in two', () => {
  const [line] = shown('a\u001b[1;3', '1mb\u001b[0mc\n').lines;
  expect(line?.spans.filter((span) => span.text !== '')).toEqual([
    { text: 'a', look: '' },
    { text: 'b', look: 't-red t-bold' },
    { text: 'c', look: '' },
  ]);
});

test('a carriage return writes over its line, and one before a line feed does nothing', () => {
  expect(texts(shown('10%\r20%\r\u001b[K30%\r\ndone\n'))).toEqual(['30%', 'done']);
});

test('streams do not share a line', () => {
  const screen = shown('out', ['stderr', 'err\n'], ['status', '[exit code 1]\n']);
  expect(screen.lines.map((line) => [line.stream, textOf(line)])).toEqual([
    ['stdout', 'out'],
    ['stderr', 'err'],
    ['status', '[exit code 1]'],
  ]);
});

test('what would move the cursor or name the window is left out, what is unknown stays to be spelled out', () => {
  expect(texts(shown('\u001b[2J\u001b]0;title\u0007a\u001b[10;4Hb\u001b%x'))).toEqual(['ab\u001b%x']);
});

test('only the newest lines are kept, and numbered as they came', () => {
  const screen = shown(Array.from({ length: LINES_MAX + 10 }, (_, index) => `${index}\n`).join(''));
  expect([screen.lines.length, screen.dropped, screen.lines[0]?.number]).toEqual([LINES_MAX, 10, 11]);
});
