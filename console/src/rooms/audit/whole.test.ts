import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { canonical } from '../../text/canonical';
import type { Checkpoint } from './signature';
import { commitment, Tree, verifyLog, wrongOrigin, type ProvenEntry } from './whole';

const sha = (...parts: Uint8Array[]) => Uint8Array.from(createHash('sha256').update(Buffer.concat(parts)).digest());
const OWN = { tenant: 'ten_a', log: 1 };
const ORIGIN = 'interlock/4f0c/ten_a/1';
const SALT = '00112233445566778899aabbccddeeff';

/** The definition itself: the root of a list is that of its two halves, the left one a power of two. */
function root(leaves: Uint8Array[]): Uint8Array {
  if (leaves.length === 1) return leaves[0]!;
  let half = 1;
  while (half * 2 < leaves.length) half *= 2;
  return sha(Uint8Array.of(1), root(leaves.slice(0, half)), root(leaves.slice(half)));
}

async function log(size: number, origin = ORIGIN): Promise<{ head: Checkpoint; entries: ProvenEntry[] }> {
  const entries: ProvenEntry[] = [];
  const leaves: Uint8Array[] = [];
  let prev = '0'.repeat(64);
  for (let index = 0; index < size; index++) {
    const opened = { salt: SALT, details: `{"n":${index}}` };
    const entry = { types: ['key.created'], index, origin, prev, details: await commitment('details', SALT, opened.details) };
    const hash = sha(Buffer.from(canonical(entry)));
    leaves.push(sha(Uint8Array.of(0), Buffer.from(SALT, 'hex'), hash));
    prev = Buffer.from(hash).toString('hex');
    entries.push({ entry, leaf_salt: SALT, opened });
  }
  const head = { origin, size, root: Buffer.from(root(leaves)).toString('base64'), signed: '', signature: new Uint8Array() };
  return { head, entries };
}

const PAGE = 3;
const verified = ({ head, entries }: Awaited<ReturnType<typeof log>>) =>
  verifyLog(head, OWN, async (from) => ({ entries: entries.slice(from, from + PAGE) }), () => {});

it('the tree of leaves one after the other is that of the definition', async () => {
  for (const size of [1, 2, 3, 4, 7, 8, 13]) {
    const leaves = Array.from({ length: size }, (_, index) => sha(Uint8Array.of(index)));
    const tree = new Tree();
    for (const leaf of leaves) await tree.add(Uint8Array.from(leaf));
    expect(Buffer.from(await tree.root()).toString('hex')).toBe(Buffer.from(root(leaves)).toString('hex'));
  }
});

it('finds a log whole, and the first entry that was altered, removed, moved in or cut off', async () => {
  expect(await verified(await log(10))).toEqual({ whole: true, entries: 10, opened: 10 });
  const altered = await log(10);
  altered.entries[4]!.entry.types = ['key.revoked'];
  expect(await verified(altered)).toMatchObject({ whole: false, entry: 5 });
  const told = await log(10);
  told.entries[4]!.opened!.details = '{"n":5}';
  expect(await verified(told)).toMatchObject({ whole: false, entry: 4, why: 'its details are not what was logged' });
  const removed = await log(10);
  removed.entries.splice(6, 1);
  expect(await verified(removed)).toMatchObject({ whole: false, entry: 6, why: 'removed: entry 7 stands in its place' });
  const cut = await log(10);
  cut.entries.length = 8;
  expect(await verified(cut)).toMatchObject({ whole: false, entry: 8 });
  const moved = await log(10);
  moved.entries[2]!.entry.origin = 'another';
  expect(await verified(moved)).toMatchObject({ whole: false, entry: 2, why: 'it belongs to another log' });
  const last = await log(10);
  last.entries[9]!.entry.types = ['key.revoked'];
  expect(await verified(last)).toMatchObject({ whole: false, why: 'the entries do not lead to the root that was signed' });
});

it('a whole log of another tenant, or another one of this tenant, is not the one that is looked at', async () => {
  const other = await verified(await log(3, 'interlock/4f0c/ten_b/1'));
  expect(other).toEqual({ whole: false, why: 'spliced from another log: its head is of interlock/4f0c/ten_b/1, the log of another tenant' });
  expect(await verified(await log(3, 'interlock/4f0c/ten_a/2'))).toMatchObject({ whole: false, why: expect.stringContaining('another log of this tenant') });
  expect(await verified(await log(1))).toMatchObject({ whole: true });
  for (const origin of ['', 'ten_a/1', 'ten_a', 'interlock/ten_a/1/x', 'interlock/ten_a']) expect(wrongOrigin(origin, OWN)).toBeDefined();
});
