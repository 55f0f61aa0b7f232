/** The signed head of the log, the key it is signed with, and how to verify the whole log. */

import { useQuery } from '@tanstack/react-query';
import { Copy } from '../../parts/copy';
import { Facts } from '../../parts/facts';
import { Loaded } from '../../parts/loaded';
import { Command } from '../../parts/notes';
import { Mark, type Tone } from '../../parts/state';
import { Text } from '../../parts/text';
import { auditKeyQuery, checkpointQuery } from './query';
import { readCheckpoint, verify, type Verdict } from './signature';
import { VerifyButton } from './whole-view';

const COMMANDS = `interlock audit key > interlock.pem
interlock audit checkpoint > today.checkpoint
interlock audit verify --key interlock.pem --checkpoint today.checkpoint`;

export function SignedHead() {
  const head = useQuery(checkpointQuery);
  const key = useQuery(auditKeyQuery);
  return (
    <section className="pane signed-head" aria-label="The signed head of the log">
      <Loaded query={head} rows={3}>
        {({ log, checkpoint }) => (
          <Loaded query={key} rows={3}>
            {({ public_key, key_id }) => (
              <>
                <HeadFacts log={log} checkpoint={checkpoint} pem={public_key} keyId={key_id} />
                <VerifyButton pem={public_key} />
              </>
            )}
          </Loaded>
        )}
      </Loaded>
      <details>
        <summary>Verify it without this server</summary>
        <p>
          The button trusts the key that this server shows. Keep the key and now and then a head where this server cannot reach them. <code>interlock audit verify</code> reads every
          entry, computes the chain and the tree anew, and compares them with the signed heads and with the ones that you kept. It
          ends with 0 where the log is whole, and with 1 and the first bad entry where one was altered, removed, moved or cut off.
        </p>
        <Command text={COMMANDS} />
        <p className="quiet">
          <code>interlock audit export log.jsonl</code> takes the log along; verifying it then needs no server.
        </p>
      </details>
    </section>
  );
}

interface HeadProps {
  log: number;
  checkpoint: string;
  pem: string;
  keyId: string;
}

function HeadFacts({ log, checkpoint, pem, keyId }: HeadProps) {
  const head = readCheckpoint(checkpoint);
  const checked = useQuery({
    queryKey: ['audit', 'checked', checkpoint, pem],
    queryFn: () => (head === undefined ? ('bad' as const) : verify(pem, new TextEncoder().encode(head.signed), head.signature)),
    staleTime: Infinity,
  });
  return (
    <Facts
      of={[
        [
          'Signed head',
          <span className="hash">
            <span>
              <strong>{head?.size.toLocaleString() ?? '?'}</strong> entries{log > 1 && `, log ${log}: the one before it ended with a restore`}
            </span>
            <Copy text={checkpoint} what="the signed head" />
          </span>,
        ],
        ['Root', <code className="wrap"><Text of={head?.root ?? 'not readable'} /></code>],
        ['Signature', <SignatureVerdict of={checked.data} />],
        [
          'Public key',
          <span className="hash">
            <code title={keyId}>{keyId.slice(0, 12)}…</code>
            <Copy text={pem} what="the public key" />
          </span>,
        ],
      ]}
    />
  );
}

const VERDICTS: Record<Verdict, [Tone, string]> = {
  good: ['good', 'good, by this server'],
  bad: ['bad', 'bad: the server’s key did not sign this'],
  unchecked: ['idle', 'not checked: this browser cannot'],
};

export function SignatureVerdict({ of }: { of: Verdict | undefined }) {
  if (of === undefined) return <span className="quiet">being checked …</span>;
  const [tone, word] = VERDICTS[of];
  return <Mark tone={tone} word={word} />;
}
