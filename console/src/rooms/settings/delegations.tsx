import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, intention, must } from '../../api/client';
import { useMay, useMe } from '../../api/session';
import { Button } from '../../parts/button';
import { FormDialog, Input, Reason, text } from '../../parts/form';
import { Empty, Loading, ProblemNote } from '../../parts/notes';
import { Instant, Text } from '../../parts/text';
import { delegationsQuery } from '../approvals/inbox';

const DAYS_MAX = 90;

export function Delegations() {
  const me = useMe();
  const administers = useMay('administer');
  const list = useQuery(delegationsQuery);
  const queries = useQueryClient();
  const [doing, setDoing] = useState<'create' | { revoke: string }>();
  const [key, setKey] = useState(intention);
  const close = () => setDoing(undefined);
  const again = () => void queries.invalidateQueries({ queryKey: ['delegations'] });
  if (list.data === undefined) return list.error === null ? <Loading rows={3} /> : <ProblemNote error={list.error} />;
  return (
    <section>
      <header className="section-head">
        <p>A person lends their right to decide on approvals to another, for a time.</p>
        {me.person != null && <Button onClick={() => (setKey(intention()), setDoing('create'))}>Lend mine …</Button>}
      </header>
      {list.data.delegations.length === 0 ? (
        <Empty title="Nobody has lent anything" command={'interlock approval delegate bob --for 14d --reason "on leave"'}>
          <p>Going away? Lend your right to decide, so that nobody waits for you:</p>
        </Empty>
      ) : (
        <table className="rows">
          <caption className="unseen">Delegations in force or to come</caption>
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col">To</th>
              <th scope="col">Until</th>
              <th scope="col">Why</th>
              <th scope="col">
                <span className="unseen">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.data.delegations.map((each) => (
              <tr key={each.delegation}>
                <td>
                  <Text of={each.delegator} />
                </td>
                <td>
                  <Text of={each.delegate} />
                </td>
                <td>
                  <Instant at={each.until} /> {!each.in_force && <span className="tag">not in force</span>}
                </td>
                <td>
                  <Text of={each.reason} />
                </td>
                <td>
                  {(administers || each.delegator === me.person) && (
                    <Button look="quiet" onClick={() => setDoing({ revoke: each.delegation })}>
                      Revoke …
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {doing === 'create' && (
        <FormDialog
          title="Lend my right to decide"
          verb="Lend it"
          close={close}
          act={async (form) => {
            const days = Number(text(form, 'days'));
            const body = { delegate: text(form, 'delegate'), until: Date.now() + days * 86_400_000, reason: text(form, 'reason') };
            await must(api.POST('/api/v1/delegations', { headers: key, body }));
            again();
          }}
        >
          <p>They may decide wherever you may. You two count as one person.</p>
          <Input name="delegate" label="To whom" required />
          <Input name="days" label="For how many days" type="number" min={1} max={DAYS_MAX} defaultValue={14} required />
          <Reason />
        </FormDialog>
      )}
      {typeof doing === 'object' && (
        <FormDialog
          title="Revoke the delegation"
          verb="Revoke"
          danger
          close={close}
          act={async () => {
            await must(api.DELETE('/api/v1/delegations/{delegation}', { params: { path: { delegation: doing.revoke } } }));
            again();
          }}
        >
          <p>It counts no more, at once. Votes that were cast stay.</p>
        </FormDialog>
      )}
    </section>
  );
}
