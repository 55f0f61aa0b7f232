/** The button that verifies the log here and now, and its verdict. */

import { useState } from 'react';
import { useMutation } from '@tanstack/react-query';
import { api, must } from '../../api/client';
import { useMe } from '../../api/session';
import { Button } from '../../parts/button';
import { ProblemNote } from '../../parts/notes';
import { Mark } from '../../parts/state';
import { readCheckpoint, verify } from './signature';
import { VERIFIED_MAX, verifyLog, type LogVerdict, type ProvenPage } from './whole';

const PAGE = 500;

async function verifyNow(pem: string, tenant: string, progress: (done: number, of: number) => void): Promise<LogVerdict> {
  const { checkpoint, log } = await must(api.GET('/api/v1/audit/checkpoint'));
  const head = readCheckpoint(checkpoint);
  if (head === undefined) return { whole: false, why: 'its head cannot be read' };
  if (head.size > VERIFIED_MAX) {
    throw new Error(`The log has ${head.size.toLocaleString()} entries; a browser verifies up to ${VERIFIED_MAX.toLocaleString()}. The command line below has no such limit.`);
  }
  const signature = await verify(pem, new TextEncoder().encode(head.signed), head.signature);
  if (signature === 'bad') return { whole: false, why: 'the server’s key did not sign its head' };
  if (signature === 'unchecked') throw new Error('This browser cannot check the signature: open the page by https, or use the command line below.');
  const page = async (from: number) => {
    const query = { log, from, limit: PAGE, order: 'oldest' as const };
    // Entries are JSON of the log's own form, which the description leaves open.
    return (await must(api.GET('/api/v1/audit', { params: { query } }))) as unknown as ProvenPage;
  };
  return verifyLog(head, { tenant, log }, page, (done) => progress(done, head.size));
}

export function VerifyButton({ pem }: { pem: string }) {
  const { tenant } = useMe();
  const [progress, setProgress] = useState<{ done: number; of: number }>();
  const work = useMutation({ mutationFn: () => verifyNow(pem, tenant, (done, of) => setProgress({ done, of })) });
  return (
    <div className="verify">
      <Button onClick={() => work.mutate()} busy={work.isPending}>
        Verify the log
      </Button>
      <span role="status">
        {work.isPending && (
          <span className="quiet number">
            {(progress?.done ?? 0).toLocaleString()} of {progress?.of.toLocaleString() ?? '…'} entries
          </span>
        )}
        {!work.isPending && work.data !== undefined && <LogVerdictView of={work.data} />}
      </span>
      {work.error !== null && <ProblemNote error={work.error} />}
    </div>
  );
}

function LogVerdictView({ of }: { of: LogVerdict }) {
  if (of.whole) return <Mark tone="good" word={`whole: ${of.entries.toLocaleString()} entries lead to the signed root`} />;
  return <Mark tone="bad" word={`tampered with${of.entry === undefined ? '' : `, first bad entry ${of.entry}`}: ${of.why}`} />;
}
