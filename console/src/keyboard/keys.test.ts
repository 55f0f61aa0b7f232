import { afterEach, expect, it } from 'vitest';
import { pressed, register } from './keys';

let undo: (() => void)[] = [];
const key = (press: string) => ({ press, does: press, run: () => {} });

afterEach(() => {
  for (const each of undo) each();
  undo = [];
});

it('finds single keys and pairs', () => {
  undo.push(register({ title: 'all', keys: [key('j'), key('g r')] }));
  expect(pressed('j', 0)?.press).toBe('j');
  expect(pressed('g', 10)).toBeUndefined();
  expect(pressed('r', 20)?.press).toBe('g r');
  expect(pressed('r', 30)).toBeUndefined();
});

it('forgets the first key of a pair after a while', () => {
  undo.push(register({ title: 'all', keys: [key('g r')] }));
  pressed('g', 0);
  expect(pressed('r', 5_000)).toBeUndefined();
});

it('lets the room on top have a key that two rooms want', () => {
  const upper = key('a');
  undo.push(register({ title: 'below', keys: [key('a')] }), register({ title: 'on top', keys: [upper] }));
  expect(pressed('a', 0)).toBe(upper);
});
