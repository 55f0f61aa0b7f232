import { asDoubles } from './exact';

/** JSON with its names in order, so that two values that say the same look the same. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  // By UTF-16 code units, as RFC 8785 has it.
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, ordered((value as Record<string, unknown>)[name])]));
}

/** In the fewest bytes: RFC 8785 for texts and whole numbers, which is all that entries of the log have. */
export function canonical(value: unknown): string {
  return asDoubles(JSON.stringify(ordered(value)));
}
