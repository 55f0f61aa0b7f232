import { expect, it } from 'vitest';
import { phaseStarts } from './phases';

it('names the step that begins each phase, and nothing where there are none', () => {
  const steps = [{ id: 'a', phase: 'prechecks' as const }, { id: 'b', phase: 'prechecks' as const }, { id: 'c' }, { id: 'd', phase: 'main' as const }, { id: 'e', phase: 'postchecks' as const }];
  expect([...phaseStarts({ steps })]).toEqual([['a', 'prechecks'], ['c', 'main'], ['e', 'postchecks']]);
  expect(phaseStarts({ steps: [{ id: 'a' }] }).size).toBe(0);
  expect(phaseStarts(undefined).size).toBe(0);
});
