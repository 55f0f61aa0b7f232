/** Numbers as they were sent. What a double cannot hold would be shown, approved and sent on as another number; so it is kept as its
 * text, under a random mark that the server cannot know, and written out as the number that it was. */

const MARK = `exact-${crypto.randomUUID()}-`;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');
/** A text, or a number. */
const TOKEN = /"(?:[^"\\]|\\.)*"|(-?\d[\d.eE+-]*)/g;
/** Only what is this long, or has such an exponent, can be more than a double holds. */
const LONG_NUMBER = /\d[\d.]{15,}|\d[eE][+-]?\d{3}/;

export function parseExact(text: string): unknown {
  const marked = text.replace(TOKEN, (token, number?: string) =>
    number !== undefined && LONG_NUMBER.test(number) && String(Number(number)) !== number ? `"${MARK}${number}"` : token,
  );
  return JSON.parse(marked) as unknown;
}

/** The text of a value that was read so. */
export function written(value: unknown, indent?: number): string {
  return (JSON.stringify(value, null, indent) ?? 'null').replace(MARKED, '$1');
}

/** Whether it stands for a number. */
export function isMarked(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith(MARK);
}

/** The text with such numbers as doubles, as canonical JSON has them. */
export function asDoubles(text: string): string {
  return text.replace(MARKED, (_, number: string) => String(Number(number)));
}

/** The same answer, read exactly; nothing where reading it as ever is exact. */
export async function exactly(response: Response): Promise<Response | undefined> {
  if (!response.ok || response.headers.get('content-type')?.includes('json') !== true) return undefined;
  const text = await response.clone().text();
  if (!LONG_NUMBER.test(text)) return undefined;
  const headers = new Headers(response.headers);
  // An answer whose length is said is read by its own `json()`.
  headers.set('content-length', String(text.length));
  const exact = new Response(text, { status: response.status, headers });
  exact.json = () => Promise.resolve(parseExact(text));
  return exact;
}
