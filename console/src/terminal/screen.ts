/**
 * What a step has written, as lines: colours are kept, a carriage return writes over its line, and everything else that a
 * terminal would obey is left out or spelled out. Nothing of it becomes markup.
 */

export type OutputStream = 'stdout' | 'stderr' | 'status';

export interface Chunk {
  attempt: number;
  seq: number;
  stream: OutputStream;
  at: number;
  text: string;
}

export interface Span {
  text: string;
  /** Class names: colours and weights. */
  look: string;
}

export interface Line {
  number: number;
  stream: OutputStream;
  spans: Span[];
}

/** The page keeps the newest lines; the download has all of them. */
export const LINES_MAX = 5_000;
/** A line that does not end is broken. */
const LINE_CHARS_MAX = 4_000;

const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
const SEQUENCE = /^\u001b(?:\[([0-9;:]*)([ -/]*[@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Z0-9]|[=>78cDEHM])/;
/** The beginning of one, at the end of a chunk. */
const BEGUN = /^\u001b(?:\[[0-9;:]*[ -/]*|\][^\u0007\u001b]*\u001b?|[()])?$/;

export class Screen {
  lines: Line[] = [];
  /** How many lines were there before those that are kept. */
  dropped = 0;
  private next = 1;
  private look = new Look();
  private pending: Record<OutputStream, string> = { stdout: '', stderr: '', status: '' };
  private open: Line | undefined;
  /** Whether what comes next on the line replaces it. */
  private returned = false;

  /** Adds a chunk. Lines that change are replaced by new ones, so that the others need not be drawn again. */
  take(chunk: Chunk): void {
    let text = this.pending[chunk.stream] + chunk.text;
    this.pending[chunk.stream] = '';
    if (chunk.stream === 'status') this.look = new Look();
    while (text !== '') {
      const at = text.search(/[\n\r\u001b]/);
      if (at !== 0) {
        this.write(chunk.stream, at < 0 ? text : text.slice(0, at));
        if (at < 0) return;
        text = text.slice(at);
        continue;
      }
      if (text[0] === '\n') {
        this.end(chunk.stream);
        text = text.slice(1);
      } else if (text[0] === '\r') {
        this.returned = true;
        text = text.slice(1);
      } else {
        const sequence = SEQUENCE.exec(text);
        if (sequence !== null) {
          if (sequence[2] === 'm') this.look.change(sequence[1] ?? '');
          if (sequence[2] === 'K' && this.returned) this.erase();
          text = text.slice(sequence[0].length);
        } else if (BEGUN.test(text) && text.length < 64) {
          this.pending[chunk.stream] = text;
          return;
        } else {
          // No sequence that we know: the character is spelled out where it is shown.
          this.write(chunk.stream, text[0]!);
          text = text.slice(1);
        }
      }
    }
  }

  private write(stream: OutputStream, text: string): void {
    if (this.open !== undefined && this.open.stream !== stream) this.open = undefined;
    if (this.returned) this.erase();
    const line = this.open ?? { number: this.next++, stream, spans: [] };
    const changed = { ...line, spans: [...line.spans, { text, look: this.look.names() }] };
    if (this.open === undefined) {
      this.lines.push(changed);
      if (this.lines.length > LINES_MAX) {
        this.dropped += this.lines.length - LINES_MAX;
        this.lines.splice(0, this.lines.length - LINES_MAX);
      }
    } else {
      this.lines[this.lines.length - 1] = changed;
    }
    const length = changed.spans.reduce((sum, span) => sum + span.text.length, 0);
    this.open = length < LINE_CHARS_MAX ? changed : undefined;
  }

  /** A line feed. Behind a carriage return it only ends the line. */
  private end(stream: OutputStream): void {
    this.returned = false;
    if (this.open === undefined || this.open.stream !== stream) {
      this.open = undefined;
      this.write(stream, '');
    }
    this.open = undefined;
  }

  private erase(): void {
    this.returned = false;
    if (this.open === undefined) return;
    this.open = { ...this.open, spans: [] };
    this.lines[this.lines.length - 1] = this.open;
  }
}

/** Colours and weights as they stand. */
class Look {
  private ink = '';
  private ground = '';
  private marks = new Set<string>();

  names(): string {
    return [this.ink, this.ground, ...this.marks].filter((name) => name !== '').join(' ');
  }

  change(text: string): void {
    const codes = text === '' ? [0] : text.split(/[;:]/).map(Number);
    for (let index = 0; index < codes.length; index += 1) {
      const code = codes[index]!;
      if (code === 0) {
        this.ink = this.ground = '';
        this.marks.clear();
      } else if (code === 1) this.marks.add('t-bold');
      else if (code === 2) this.marks.add('t-dim');
      else if (code === 3) this.marks.add('t-italic');
      else if (code === 4) this.marks.add('t-under');
      else if (code === 22) this.marks = new Set([...this.marks].filter((mark) => mark !== 't-bold' && mark !== 't-dim'));
      else if (code === 23) this.marks.delete('t-italic');
      else if (code === 24) this.marks.delete('t-under');
      else if (code >= 30 && code <= 37) this.ink = `t-${COLORS[code - 30]}`;
      else if (code >= 90 && code <= 97) this.ink = `t-${COLORS[code - 90]}`;
      else if (code === 39) this.ink = '';
      else if (code >= 40 && code <= 47) this.ground = `t-on-${COLORS[code - 40]}`;
      else if (code >= 100 && code <= 107) this.ground = `t-on-${COLORS[code - 100]}`;
      else if (code === 49) this.ground = '';
      else if (code === 38 || code === 48) {
        // 256 colours: the first sixteen are the named ones, the others come near enough to none.
        const number = codes[index + 1] === 5 ? codes[index + 2] : undefined;
        if (number !== undefined && number < 16) {
          const name = COLORS[number % 8]!;
          if (code === 38) this.ink = `t-${name}`;
          else this.ground = `t-on-${name}`;
        }
        index += codes[index + 1] === 5 ? 2 : codes[index + 1] === 2 ? 4 : 0;
      }
    }
  }
}

/** The text of a line, for the search. */
export function textOf(line: Line): string {
  return line.spans.map((span) => span.text).join('');
}
