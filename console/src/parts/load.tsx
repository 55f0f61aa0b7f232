/** How much of something is taken: a bar, and the two numbers. */
export function Load({ taken, of, label }: { taken: number; of: number; label: string }) {
  return (
    <span className="load">
      <meter min={0} max={Math.max(1, of)} value={Math.min(taken, of)} aria-label={label} />
      <span className="number">
        {taken.toLocaleString()} <span className="quiet">of {of.toLocaleString()}</span>
      </span>
    </span>
  );
}
