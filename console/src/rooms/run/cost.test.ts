import { expect, it } from 'vitest';
import { amount, costWords } from './cost';

it('tells small amounts and large ones', () => {
  expect(amount(0)).toBe('0.00');
  expect(amount(1_234)).toBe('0.001234');
  expect(amount(2_500_000_000)).toBe('2,500.00');
  expect(amount(1_500_000, 'credits')).toBe('1.50 credits');
});

it('tells tokens and model beside the price, and says where there is none', () => {
  expect(costWords({ micros: 12_000, input_tokens: 1_500, output_tokens: 20, provider: 'corp', model: 'small' })).toBe(
    '0.012 · 1,500 tokens in, 20 out · corp small',
  );
  expect(costWords({ micros: 0, unpriced: true })).toBe('price unknown');
});
