import { expect, it } from 'vitest';
import { grants } from './permission';

it('lets each role do what the server lets it do', () => {
  expect(grants(['viewer'], 'read')).toBe(true);
  expect(grants(['viewer'], 'operate')).toBe(false);
  expect(grants(['approver'], 'vote')).toBe(true);
  expect(grants(['operator'], 'vote')).toBe(false);
  expect(grants(['operator', 'approver'], 'vote')).toBe(true);
  expect(grants(['operator'], 'administer')).toBe(false);
  expect(grants(['worker'], 'read')).toBe(false);
});
