import { expect, it } from 'vitest';
import { bytesOf, readCheckpoint, sha256, signedBytes, verify } from './signature';

// Signed by a server.
const PEM = '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAvd/ueohgZGVk2tn2LWapIjyFC1sFTore2GJJ9nUjpHo=\n-----END PUBLIC KEY-----\n';
const NOTE =
  'interlock/8774f1403d17c54f/ten_01a1e4d904ca719ab2dc767af92c9edf/1\n47\njll62WEKAJc1YWl6hKgVUPCOYf3xaL16S3+jASmeq04=\n\n— interlock/8774f1403d17c54f TXN1hykj4u5hR97gEi29eBmYCYDLlnaAQFARu8cnHHKjgVrbLFRCT1yAUrS2BnAeOBwC0mRIz0Q9LrxcvgZB9E/IFwk=\n';

it('reads a signed head and checks its signature', async () => {
  const head = readCheckpoint(NOTE)!;
  expect(head).toMatchObject({ size: 47, origin: 'interlock/8774f1403d17c54f/ten_01a1e4d904ca719ab2dc767af92c9edf/1' });
  expect(head.signature).toHaveLength(64);
  expect(await verify(PEM, new TextEncoder().encode(head.signed), head.signature)).toBe('good');
  const longer = head.signed.replace('47', '48');
  expect(await verify(PEM, new TextEncoder().encode(longer), head.signature)).toBe('bad');
});

it('leaves a note that it cannot read, and a key that it cannot use', async () => {
  expect(readCheckpoint('')).toBeUndefined();
  expect(readCheckpoint('origin\n1\nroot\n')).toBeUndefined();
  expect(await verify('-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----', new Uint8Array(1), new Uint8Array(64))).toBe('unchecked');
});

it('signs an envelope as DSSE says', () => {
  const signed = signedBytes('http://example.com/HelloWorld', new TextEncoder().encode('hello world'));
  expect(new TextDecoder().decode(signed)).toBe('DSSEv1 29 http://example.com/HelloWorld 11 hello world');
});

it('hashes text, and reads base64', async () => {
  expect(await sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect([...bytesOf('AAEC')]).toEqual([0, 1, 2]);
});
