/** What became of several votes: each counts, or does not, by itself. */

export interface Uncounted {
  /** What was asked. */
  title: string;
  why: string;
}

/** Tells of every one that was not counted, and how many were. */
export function outcomeOf(uncounted: readonly Uncounted[], of: number): string {
  const counted = of - uncounted.length;
  const votes = counted === 1 ? '1 vote is counted.' : `${counted} votes are counted.`;
  if (uncounted.length === 0) return votes;
  return [votes, ...uncounted.map(({ title, why }) => `Not counted: “${title}”: ${why.replace(/\.$/, '')}.`)].join(' ');
}
