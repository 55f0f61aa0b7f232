/**
 * Whether the server's key has signed something. The browser does the arithmetic where it can. It finds a mistake, not a
 * server that lies about its key: against that, verify with a key that was kept elsewhere.
 */

export type Verdict = 'good' | 'bad' | 'unchecked';

export interface Checkpoint {
  origin: string;
  size: number;
  /** Base64. */
  root: string;
  /** The text that is signed. */
  signed: string;
  signature: Uint8Array<ArrayBuffer>;
}

const HINT_BYTES = 4;

/** A signed note: origin, size, root, an empty line, and a signature behind a name and the key's first bytes. */
export function readCheckpoint(note: string): Checkpoint | undefined {
  const [text, lines] = note.split(/\n\n(.*)/s);
  const [origin, size, root] = (text ?? '').split('\n');
  const encoded = /^— \S+ (\S+)$/m.exec(lines ?? '')?.[1];
  if (origin === undefined || root === undefined || encoded === undefined || !/^(0|[1-9]\d*)$/.test(size ?? '')) return undefined;
  return { origin, size: Number(size), root, signed: `${text}\n`, signature: bytesOf(encoded).slice(HINT_BYTES) };
}

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** What a DSSE envelope signs: its type and payload with their lengths. */
export function signedBytes(type: string, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`DSSEv1 ${new TextEncoder().encode(type).length} ${type} ${payload.length} `);
  const all = new Uint8Array(head.length + payload.length);
  all.set(head);
  all.set(payload, head.length);
  return all;
}

export async function verify(pem: string, message: Uint8Array<ArrayBuffer>, signature: Uint8Array<ArrayBuffer>): Promise<Verdict> {
  const spki = bytesOf(pem.replace(/-----[^-]+-----|\s/g, ''));
  try {
    // Absent on pages without https, and in browsers without Ed25519.
    const key = await crypto.subtle.importKey('spki', spki, { name: 'Ed25519' }, false, ['verify']);
    return (await crypto.subtle.verify('Ed25519', key, signature, message)) ? 'good' : 'bad';
  } catch {
    return 'unchecked';
  }
}

export async function sha256(text: string): Promise<string | undefined> {
  try {
    const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
    return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  } catch {
    return undefined;
  }
}
