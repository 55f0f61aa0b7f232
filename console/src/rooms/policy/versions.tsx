/** The versions of the policy, and which of them counts. */

import { useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { FormDialog } from '../../parts/form';
import { Empty } from '../../parts/notes';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { Link } from '../../route/router';
import { nameOf, shortHash, type Policy, type PolicyVersion } from './query';

type Change = Pick<Schema['ChangePolicy'], 'active' | 'shadow'>;

/** A version that was pushed, or the one that comes with the server. */
type Row = Partial<PolicyVersion> & { version: number };

export function Versions({ policy, versions }: { policy: Policy; versions: PolicyVersion[] }) {
  const administers = useMay('administer');
  const [change, setChange] = useState<Change>();
  const rows: Row[] = [...versions, { version: 0 }];
  return (
    <>
      {versions.length === 0 && (
        <Empty title="No version of your own" command={'interlock policy export my-bundle\ninterlock policy push my-bundle --note "no gifts"'}>
          <p>
            The default policy decides. To add to it, copy its files, put rules of your own beside them, and push the folder: its
            tests must pass, and it counts only when it is put in force.
          </p>
        </Empty>
      )}
      <Table
        caption="Versions of the policy, newest first"
        className="policy-versions"
        rows={rows}
        keyOf={(row) => row.version}
        columns={[
          {
            title: 'Version',
            cell: (row) => (
              <>
                <Link to={`/policy?version=${row.version}`}>{nameOf(row.version)}</Link>
                {row.version === (policy.active ?? 0) && <span className="tag good-tag">in force</span>}
                {row.version === policy.shadow && <span className="tag warn">beside it</span>}
              </>
            ),
          },
          { title: 'Why', cell: (row) => (row.version === 0 ? <span className="quiet">comes with the server</span> : <Text of={row.note ?? ''} />) },
          {
            title: 'Made',
            cell: (row) =>
              row.created_at !== undefined && (
                <>
                  <Ago at={row.created_at} /> {row.created_by != null && <span className="quiet">by <Text of={row.created_by} /></span>}
                </>
              ),
          },
          { title: 'Hash', cell: (row) => row.hash !== undefined && <code title={row.hash} className="quiet">{shortHash(row.hash)}</code> },
          {
            title: 'Action',
            bare: true,
            className: 'row-actions',
            cell: (row) => administers && <Choices row={row} policy={policy} choose={setChange} />,
          },
        ]}
      />
      {change !== undefined && <ChangeDialog policy={policy} change={change} close={() => setChange(undefined)} />}
    </>
  );
}

function Choices({ row: { version }, policy, choose }: { row: Row; policy: Policy; choose: (change: Change) => void }) {
  const active = version === (policy.active ?? 0);
  return (
    <>
      {version === policy.shadow && (
        <Button look="quiet" onClick={() => choose({ shadow: 0 })}>
          Stop trying it …
        </Button>
      )}
      {version !== 0 && !active && version !== policy.shadow && (
        <Button look="quiet" onClick={() => choose({ shadow: version })}>
          Try beside …
        </Button>
      )}
      {version !== 0 && (
        <Link className="button quiet" to={`/policy?tab=replay&version=${version}`}>
          Replay
        </Link>
      )}
      {!active && (
        <Button look="quiet" onClick={() => choose({ active: version })}>
          Put in force …
        </Button>
      )}
    </>
  );
}

function wordsOf({ active, shadow }: Change): { title: string; verb: string; what: string } {
  if (active != null) {
    const what = `${nameOf(active)} decides on everything from now on. What was decided before stays decided, and what people have approved stays approved.`;
    return { title: `Put ${active === 0 ? 'the default policy' : nameOf(active).toLowerCase()} in force`, verb: 'Put in force', what };
  }
  if (shadow === 0) return { title: 'Stop trying the other version', verb: 'Stop', what: 'Only the version in force is asked from now on.' };
  const what = 'It is asked beside the version in force, and decides nothing. What it would have said stands with each decision of a run.';
  return { title: `Try ${nameOf(shadow).toLowerCase()} beside`, verb: 'Try it', what };
}

function ChangeDialog({ policy, change, close }: { policy: Policy; change: Change; close: () => void }) {
  const queries = useQueryClient();
  const { title, verb, what } = wordsOf(change);
  async function act() {
    try {
      // Refused where another admin has changed the policy meanwhile; then the page shows that change.
      await must(api.PATCH('/api/v1/policy', { body: { ...change, revision: policy.revision } }));
    } finally {
      await queries.invalidateQueries({ queryKey: ['policy'] });
    }
    return 'The policy is changed.';
  }
  return (
    <FormDialog title={title} verb={verb} danger={change.active != null} close={close} act={act}>
      <p>{what}</p>
    </FormDialog>
  );
}
