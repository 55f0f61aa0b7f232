import { expect, it } from 'vitest';
import type { Approval } from '../../api/client';
import { askedBefore } from './compared';

const asked = (approval: string, requested_at: number, step?: string): Approval =>
  ({ approval, requested_at, action: step === undefined ? null : { step } }) as Approval;

it('compares with the newest earlier request for the same step', () => {
  const now = asked('c', 30, 'pay');
  const others = [asked('a', 10, 'pay'), asked('b', 20, 'pay'), asked('x', 25, 'ship'), now, asked('d', 40, 'pay')];
  expect(askedBefore(now, others)?.approval).toBe('b');
  expect(askedBefore(asked('g', 30), others)).toBeUndefined();
});
