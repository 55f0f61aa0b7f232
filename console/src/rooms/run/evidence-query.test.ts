import { generateKeyPairSync, sign } from 'node:crypto';
import { expect, it } from 'vitest';
import { sha256, signedBytes } from '../audit/signature';
import { readEvidence } from './evidence-query';

const TYPE = 'application/vnd.in-toto+json';
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();

function envelope(statement: unknown): string {
  const payload = Buffer.from(JSON.stringify(statement));
  const sig = sign(null, signedBytes(TYPE, payload), privateKey).toString('base64');
  return JSON.stringify({ payload: payload.toString('base64'), payloadType: TYPE, signatures: [{ keyid: 'k', sig }] });
}

const statement = { predicate: { number: 0, record: { run: { run: 'run_1' }, steps: [1, 2], approvals: [1], receipts: [] }, logs: [{ entries: [1, 2, 3] }] } };

it('reads a bundle, checks its signature and its hash', async () => {
  const text = envelope(statement);
  const hash = (await sha256(text))!;
  expect(await readEvidence(text, hash, pem)).toEqual({
    signature: 'good', sha256: hash, intact: true, number: 0, tells: '2 steps, 1 approval, 3 entries of the log', about: 'run_1',
  });
});

it('says so where the key did not sign it, or another file was meant', async () => {
  const other = Buffer.from(JSON.stringify({ predicate: { ...statement.predicate, number: 1 } })).toString('base64');
  const text = envelope(statement).replace(/"payload":"[^"]+"/, `"payload":"${other}"`);
  expect(await readEvidence(text, 'f'.repeat(64), pem)).toMatchObject({ signature: 'bad', intact: false, number: 1 });
});
