import { useState } from 'react';

/**
 * Whether a room can be drawn: once none of what its height depends on is awaited any more. What came one by one would make it
 * jump. From then on it stays drawn, also while something else that was chosen in it is on its way.
 */
export function useSettled(...awaited: boolean[]): boolean {
  const [settled, setSettled] = useState(false);
  const waits = awaited.includes(true);
  if (!settled && !waits) setSettled(true);
  return settled || !waits;
}
