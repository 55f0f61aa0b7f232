/**
 * Whether the log is whole: every entry names the one before it, what is shown of it is what was hashed, and all of them
 * lead to the root that the server signed. The browser does the arithmetic; the words are those of `interlock audit verify`.
 */

import { canonical } from '../../text/canonical';
import type { Checkpoint } from './signature';

/** An entry with what its leaf and its commitments are made of. */
export interface ProvenEntry {
  entry: Record<string, unknown> & { index: number; origin: string; prev: string; actor?: string; details?: string };
  leaf_salt?: string;
  opened?: { salt?: string; actor?: string; details?: string };
}

export interface ProvenPage {
  entries: ProvenEntry[];
  next?: number | null;
}

/** Which log a head must be of: the tenant's that is looked at. */
export interface OwnLog {
  tenant: string;
  log: number;
}

export type LogVerdict = { whole: true; entries: number; opened: number } | { whole: false; entry?: number; why: string };

/** Past this the command line does it: a page should not be busy for minutes. */
export const VERIFIED_MAX = 50_000;

type Bytes = Uint8Array<ArrayBuffer>;

async function sha(...parts: Uint8Array[]): Promise<Bytes> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    all.set(part, place);
    place += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', all));
}

const text = (words: string) => new TextEncoder().encode(words);
const hex = (bytes: Uint8Array) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const unhex = (digits: string) => Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** The root of a tree of leaves that come one after the other: what is kept are the roots of full trees, the largest first. */
export class Tree {
  private readonly full: { height: number; hash: Bytes }[] = [];

  async add(leaf: Bytes): Promise<void> {
    let last = { height: 0, hash: leaf };
    while (this.full.at(-1)?.height === last.height) {
      const left = this.full.pop()!;
      last = { height: last.height + 1, hash: await sha(Uint8Array.of(1), left.hash, last.hash) };
    }
    this.full.push(last);
  }

  async root(): Promise<Bytes> {
    let hash = this.full.at(-1)?.hash;
    if (hash === undefined) return sha();
    for (const { hash: left } of this.full.slice(0, -1).reverse()) hash = await sha(Uint8Array.of(1), left, hash);
    return hash;
  }
}

/** What a commitment to a text is. */
export async function commitment(field: string, salt: string, words: string): Promise<string> {
  return hex(await sha(text(`interlock audit commitment\0${field}\0`), unhex(salt), text(words)));
}

async function wrongIn({ entry, opened }: ProvenEntry): Promise<string | undefined> {
  if (opened?.salt === undefined) return undefined;
  for (const field of ['actor', 'details'] as const) {
    const said = opened[field];
    if (said !== undefined && (await commitment(field, opened.salt, said)) !== entry[field]) return `its ${field} are not what was logged`;
  }
  return undefined;
}

/**
 * What is wrong with the name of the log that a head is of: `SERVER/TENANT/NUMBER`. One key signs the logs of all tenants, so that
 * a good signature does not say whose log it is.
 */
export function wrongOrigin(origin: string, own: OwnLog): string | undefined {
  const parts = origin.split('/');
  const [tenant, number] = parts.slice(-2);
  if (parts.length > 2 && tenant === own.tenant && number === String(own.log)) return undefined;
  const whose = tenant === own.tenant ? 'another log of this tenant' : 'the log of another tenant';
  return `spliced from another log: its head is of ${origin}, ${whose}`;
}

export async function verifyLog(
  head: Checkpoint,
  own: OwnLog,
  page: (from: number) => Promise<ProvenPage>,
  progress: (done: number) => void,
): Promise<LogVerdict> {
  const foreign = wrongOrigin(head.origin, own);
  if (foreign !== undefined) return { whole: false, why: foreign };
  const tree = new Tree();
  let prev = '0'.repeat(64);
  let opened = 0;
  for (let place = 0; place < head.size; ) {
    const { entries } = await page(place);
    if (entries.length === 0) return { whole: false, entry: place, why: `cut off: the head has ${head.size} entries` };
    for (const proven of entries.slice(0, head.size - place)) {
      const { entry, leaf_salt } = proven;
      const bad = (why: string) => ({ whole: false as const, entry: place, why });
      if (entry.index !== place) return bad(`removed: entry ${entry.index} stands in its place`);
      if (entry.origin !== head.origin) return bad('it belongs to another log');
      if (entry.prev !== prev) return bad('it does not follow the entry before it');
      if (leaf_salt === undefined) return bad('it has no salt');
      const wrong = await wrongIn(proven);
      if (wrong !== undefined) return bad(wrong);
      const hash = await sha(text(canonical(entry)));
      await tree.add(await sha(Uint8Array.of(0), unhex(leaf_salt), hash));
      prev = hex(hash);
      if (proven.opened !== undefined) opened += 1;
      place += 1;
    }
    progress(place);
  }
  const root = btoa(String.fromCharCode(...(await tree.root())));
  if (root !== head.root) return { whole: false, why: 'the entries do not lead to the root that was signed' };
  return { whole: true, entries: head.size, opened };
}
