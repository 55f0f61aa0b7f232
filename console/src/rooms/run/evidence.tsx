/** Evidence of an ended run: one signed file, what it says, and how to verify it. */

import { useQuery } from '@tanstack/react-query';
import type { Run } from '../../api/client';
import { Copy } from '../../parts/copy';
import { Facts } from '../../parts/facts';
import { Loaded } from '../../parts/loaded';
import { Command, Loading } from '../../parts/notes';
import { Link } from '../../route/router';
import { SignatureVerdict } from '../audit/head';
import { auditKeyQuery } from '../audit/query';
import { evidenceQuery, isBeingSealed, type Evidence } from './evidence-query';

export function EvidenceTab({ run }: { run: Run }) {
  const key = useQuery(auditKeyQuery);
  const bundle = useQuery({ ...evidenceQuery(run.run_id, key.data?.public_key), enabled: key.data !== undefined });
  if (bundle.data === undefined && isBeingSealed(bundle.failureReason)) {
    return (
      <>
        <p role="status">The run’s end is being written into the audit log. The evidence is there in a moment.</p>
        <Loading rows={4} />
      </>
    );
  }
  return (
    <Loaded query={bundle} rows={5}>
      {(evidence) => <Bundle run={run.run_id} of={evidence} />}
    </Loaded>
  );
}

function Bundle({ run, of }: { run: string; of: Evidence }) {
  const address = `/api/v1/runs/${encodeURIComponent(run)}/evidence`;
  return (
    <div className="evidence">
      <p>What the run did, signed, with the proof that the audit log says the same.</p>
      <Facts
        of={[
          ['Signature', <SignatureVerdict of={of.signature} />],
          [
            'SHA-256',
            <span className="hash">
              <code title={of.sha256}>{of.sha256.slice(0, 12)}…</code>
              <Copy text={of.sha256} what="the bundle’s hash" />
              {of.intact === false && <span className="tag bad">not the hash of what was sent</span>}
            </span>,
          ],
          [
            'Tells of',
            <>
              {of.tells} {of.about !== run && <span className="tag bad">this is the evidence of another run</span>}
            </>,
          ],
          ['Number', of.number === 0 ? 'the first' : `addendum ${of.number}: an effect became known after the end`],
        ]}
      />
      <div className="row-of-buttons">
        <a className="button primary" href={address} download={`${run}.dsse.json`}>
          Download the bundle
        </a>
        <a className="button plain" href={`${address}?format=html`} target="_blank" rel="noopener">
          Open it as a page
        </a>
        <Link className="button plain" to={`/audit?run=${run}`}>
          Its entries in the log
        </Link>
      </div>
      <details>
        <summary>Verify it without this server</summary>
        <p>
          Two verdicts: <em>integrity</em> (signed by the key, in the log, unaltered) and <em>completeness</em> (every event, approval
          and receipt of the run is there). It needs the file and the public key, kept elsewhere, and no server.
        </p>
        <Command text={`interlock evidence verify ${run}.dsse.json --key interlock.pem`} />
      </details>
    </div>
  );
}
