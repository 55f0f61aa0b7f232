import { expect, it } from 'vitest';
import { adviceOn, asSentence } from './notes';

it('makes a sentence of what the server says', () => {
  expect(asSentence('the reason is missing')).toBe('The reason is missing.');
  expect(asSentence('Wait a moment.')).toBe('Wait a moment.');
});

it('says what to do about a refusal', () => {
  const problem = (code: string, detail = 'no') => ({ type: 'about:blank', title: 'No', status: 403, detail, code });
  expect(adviceOn(problem('PERMISSION_DENIED'))).toMatch(/Ask an admin/);
  expect(adviceOn(problem('PERMISSION_DENIED', 'this is for an administrator of the installation'))).toBe(undefined);
  expect(adviceOn(problem('SCHEDULE_NOT_FOUND'))).toMatch(/deleted, or belong to another tenant/);
  expect(adviceOn(problem('INVALID_REQUEST'))).toBe(undefined);
});
