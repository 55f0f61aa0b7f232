import { expect, it } from 'vitest';
import { closerFrom } from './history';

const HOUR = 3_600_000;
const span = (from: number, started: number) => ({ from, started, succeeded: 0, failed: 0, canceled: 0, open: 5, approvals_open: 1 });

it('looks closer only where all began and ended at the end of the range', () => {
  const day = (busy: number) => ({ from: 0, before: 24 * HOUR, spans: Array.from({ length: 24 }, (_, hour) => span(hour * HOUR, hour === busy ? 3 : 0)) });
  expect(closerFrom(day(23))).toBe(23 * HOUR);
  expect(closerFrom(day(18))).toBe(18 * HOUR);
  expect(closerFrom(day(2))).toBeUndefined();
  expect(closerFrom(day(99))).toBeUndefined();
});

it('never looks at less than a minute', () => {
  expect(closerFrom({ from: 0, before: 600_000, spans: [span(0, 0), span(590_000, 1)] })).toBe(540_000);
});
