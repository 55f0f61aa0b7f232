import { expect, it } from 'vitest';
import { tenantAddress, withTenant } from './tenants';

it('keeps each tenant once, the newest first, and not too many', () => {
  expect(withTenant(['b', 'a'], 'a')).toEqual(['a', 'b']);
  const many = Array.from({ length: 20 }, (_, index) => `t${index}`).reduce((known: string[], each) => withTenant(known, each), []);
  expect(many.length).toBe(8);
  expect(many[0]).toBe('t19');
  expect(tenantAddress('a&b')).toBe('/login?tenant=a%26b');
});
