import { expect, it } from 'vitest';
import { buckets, BUCKETS_MAX, lengthOf, type Lived } from './buckets';

const MINUTE = 60_000;

it('takes spans that people count in, and never too many of them', () => {
  expect(lengthOf(0, 5 * MINUTE)).toBe(10_000);
  expect(lengthOf(0, 60 * MINUTE)).toBe(2 * MINUTE);
  expect(lengthOf(0, 24 * 60 * MINUTE)).toBe(60 * MINUTE);
  for (const span of [1, 7_000, 123_456, 9_999_999, 700_000_000, 90_000_000_000]) {
    expect(buckets([], 12_345, 12_345 + span).length).toBeLessThanOrEqual(BUCKETS_MAX);
  }
});

it('counts a run where it began, where it ended, and under way in between', () => {
  const runs: Lived[] = [
    { state: 'succeeded', created_at: 1_000, finished_at: 2_000 },
    { state: 'failed', created_at: 5_000, finished_at: 25_000 },
    { state: 'waiting_approval', created_at: 12_000 },
    { state: 'canceled', created_at: -99_000, finished_at: 31_000 },
  ];
  const list = buckets(runs, 0, 40_000);
  expect(list.map((bucket) => bucket.from)).toEqual([0, 10_000, 20_000, 30_000]);
  expect(list.map((bucket) => bucket.started)).toEqual([2, 1, 0, 0]);
  expect(list.map((bucket) => bucket.succeeded)).toEqual([1, 0, 0, 0]);
  expect(list.map((bucket) => bucket.failed)).toEqual([0, 0, 1, 0]);
  expect(list.map((bucket) => bucket.canceled)).toEqual([0, 0, 0, 1]);
  expect(list.map((bucket) => bucket.open)).toEqual([2, 3, 2, 1]);
});
