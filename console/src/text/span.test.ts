import { expect, it } from 'vitest';
import { away, clock, fromTo, roughly, span } from './span';

it('says spans in the two units that matter', () => {
  expect(span(340)).toBe('340 ms');
  expect(span(2_449)).toBe('2.4 s');
  expect(span(59_999)).toBe('59 s');
  expect(span(185_000)).toBe('3 min 5 s');
  expect(span(3 * 3_600_000)).toBe('3 h');
  expect(span(50 * 3_600_000)).toBe('2 d 2 h');
});

it('says where an instant lies', () => {
  expect(away(1_000, 2_000)).toBe('just now');
  expect(away(0, 65_000)).toBe('1 min ago');
  expect(away(7_200_000, 0)).toBe('in 2 h');
  expect(roughly(47 * 3_600_000)).toBe('47 h');
});

it('says a short span to the second, and in UTC too', () => {
  const from = Date.UTC(2026, 10, 18, 1, 19, 10);
  expect(fromTo(from, from + 10_000, from)).toMatch(/:10.* – .*:20.*\n2026-11-18 01:19:10 UTC – 2026-11-18 01:19:20 UTC$/);
  expect(fromTo(from, from + 600_000, from)).not.toMatch(/:10.* – .*\n/);
});

it('runs clocks down, and on behind zero', () => {
  expect(clock(249_000)).toBe('4:09');
  expect(clock(3_731_000)).toBe('1:02:11');
  expect(clock(-12_000)).toBe('−0:12');
});
