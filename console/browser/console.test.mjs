/** The console in a real browser, against a real server and a real worker. */

import { after, before } from 'node:test';
import { approvalTests } from './approvals.mjs';
import { auditTests } from './audit.mjs';
import { changeTests } from './changes.mjs';
import { firstPaintTests } from './first-paint.mjs';
import { Harness } from './harness.mjs';
import { lostTests } from './lost.mjs';
import { oidcTests } from './oidc.mjs';
import { outputTests } from './output.mjs';
import { policyTests } from './policy.mjs';
import { roomTests } from './rooms.mjs';
import { runTests } from './runs.mjs';
import { signInTests } from './sign-in.mjs';
import { undoTests } from './undo.mjs';
import { verbTests } from './verbs.mjs';
import { workerTests } from './workers.mjs';

let harness;
before(async () => {
  harness = await Harness.start();
});
after(() => harness?.stop());

signInTests(() => harness);
firstPaintTests(() => harness);
oidcTests(() => harness);
runTests(() => harness);
approvalTests(() => harness);
workerTests(() => harness);
policyTests(() => harness);
auditTests(() => harness);
outputTests(() => harness);
changeTests(() => harness);
roomTests(() => harness);
verbTests(() => harness);
undoTests(() => harness);
lostTests(() => harness);
