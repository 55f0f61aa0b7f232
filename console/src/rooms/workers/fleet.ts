/** What a list of workers and queues says about the fleet as a whole. */

import type { Queue, Worker } from './query';

export type Standing = 'working' | 'idle' | 'draining' | 'silent' | 'errored' | 'offline';

/** One word for a worker: what it does, unless something is wrong with it. */
export function standingOf(worker: Worker): Standing {
  if (worker.state === 'offline' || worker.state === 'errored' || worker.state === 'draining') return worker.state;
  if (worker.silent === true) return 'silent';
  return worker.running > 0 ? 'working' : 'idle';
}

/** Steps stand in the queue, and nobody takes from it. */
export function isUnserved(queue: Queue): boolean {
  return queue.workers === 0 && queue.ready > 0;
}

/** The command that starts a worker for a queue. */
export function commandFor(queue?: string): string {
  const from = queue === undefined || queue === 'default' ? '' : ` --queue ${queue}`;
  return `interlock worker${from} --task NAME=PROGRAM`;
}
