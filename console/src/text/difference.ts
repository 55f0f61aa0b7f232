/** The difference between two texts, line by line: the longest lines in common stay, the rest is taken away or new. */

export interface DiffLine {
  kind: 'same' | 'gone' | 'new';
  text: string;
}

/** Files are at most a few hundred lines; past this they are shown as wholly changed rather than slowly. */
const CELLS_MAX = 4_000_000;

export function difference(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  if (a.length * b.length > CELLS_MAX) {
    return [...a.map((text) => ({ kind: 'gone' as const, text })), ...b.map((text) => ({ kind: 'new' as const, text }))];
  }
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i]! });
      [i, j] = [i + 1, j + 1];
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      lines.push({ kind: 'gone', text: a[i++]! });
    } else {
      lines.push({ kind: 'new', text: b[j++]! });
    }
  }
  return lines;
}
