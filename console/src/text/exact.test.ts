import { expect, it } from 'vitest';
import { exactly, parseExact, written } from './exact';

const LONG = '{"a":9007199254740993,"b":[0.12345678901234567891,-1e400,1.5,12],"c":"it says 9007199254740993"}';

it('shows and sends a number that a double cannot hold as it came', () => {
  expect(written(parseExact(LONG))).toBe(LONG);
  expect((parseExact('{"at":1794941666019,"x":1.0}') as { at: number }).at).toBe(1794941666019);
  expect(written({ a: [1, 'x'] }, 2)).toBe(JSON.stringify({ a: [1, 'x'] }, null, 2));
});

it('reads an answer with such a number exactly, and others as ever', async () => {
  const json = { headers: { 'content-type': 'application/json' } };
  const exact = await exactly(new Response(LONG, json));
  expect(exact?.headers.get('content-length')).toBe(String(LONG.length));
  expect(written(await exact?.json())).toBe(LONG);
  expect(await exactly(new Response('{"a":1}', json))).toBeUndefined();
  expect(await exactly(new Response(LONG, { headers: { 'content-type': 'text/plain' } }))).toBeUndefined();
});
