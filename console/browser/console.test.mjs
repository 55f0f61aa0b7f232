/** The console in a real browser, against a real server and a real worker. */

import { approvalTests } from './approvals.mjs';
import { auditTests } from './audit.mjs';
import { changeTests } from './changes.mjs';
import { firstPaintTests } from './first-paint.mjs';
import { oidcTests } from './oidc.mjs';
import { outputTests } from './output.mjs';
import { policyTests } from './policy.mjs';
import { runTests } from './runs.mjs';
import { signInTests } from './sign-in.mjs';
import { suite } from './suite.mjs';
import { workerTests } from './workers.mjs';

suite(
  signInTests,
  firstPaintTests,
  oidcTests,
  runTests,
  approvalTests,
  workerTests,
  policyTests,
  auditTests,
  outputTests,
  changeTests,
);
