import { Mark, type Tone } from '../../parts/state';
import { standingOf, type Standing } from './fleet';
import type { Worker } from './query';

const LOOKS: Record<Standing, Tone> = {
  working: 'busy',
  idle: 'good',
  draining: 'undone',
  maintenance: 'undone',
  silent: 'asks',
  errored: 'bad',
  offline: 'idle',
};

export function WorkerMark({ of }: { of: Worker }) {
  const standing = standingOf(of);
  return <Mark tone={LOOKS[standing]} word={standing} />;
}
