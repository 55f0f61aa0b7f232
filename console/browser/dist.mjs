/**
 * `CONSOLE_DIST=1`: the console is served from `dist`, and everything else by the server behind it. So what was changed here
 * is tested without building the binary again. The page has the policy that the server gives it.
 */

import { readFileSync } from 'node:fs';
import { preview } from 'vite';

const SERVED_BY = '../crates/server/src/pages/console.rs';

function policy() {
  const [, text] = /const POLICY: &str = "((?:[^"\\]|\\\n)*)";/.exec(readFileSync(SERVED_BY, 'utf8')) ?? [];
  if (text === undefined) throw new Error(`${SERVED_BY} names no policy of the page`);
  return text.replace(/\\\n\s*/g, '');
}

export async function servedFromDist(server) {
  process.env.INTERLOCK_SERVER = server;
  const headers = { 'content-security-policy': policy() };
  const served = await preview({ logLevel: 'silent', preview: { host: '127.0.0.1', port: 0, headers } });
  const { port } = served.httpServer.address();
  return { url: `http://127.0.0.1:${port}`, close: () => served.close() };
}
