/** A file of browser tests: its groups share a server, a worker and a browser, which no other file has. */

import { after, before } from 'node:test';
import { Harness } from './harness.mjs';

export function suite(...groups) {
  let harness;
  before(async () => {
    harness = await Harness.start();
  });
  after(() => harness?.stop());
  for (const group of groups) group(() => harness);
}
