import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, must } from '../../api/client';
import { useMay, useMe } from '../../api/session';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { Loaded } from '../../parts/loaded';
import { Empty } from '../../parts/notes';
import { Section } from '../../parts/section';
import { Table } from '../../parts/table';
import { Instant, Text } from '../../parts/text';
import { delegationsQuery } from '../approvals/inbox';
import { Lend } from './lend';

export function Delegations() {
  const me = useMe();
  const administers = useMay('administer');
  const list = useQuery(delegationsQuery);
  const [doing, setDoing] = useState<'create' | { revoke: string }>();
  const close = () => setDoing(undefined);
  return (
    <Section about="A person lends their right to decide on approvals to another, for a time." action={me.person != null && <Button onClick={() => setDoing('create')}>Lend mine …</Button>}>
      <Loaded query={list} rows={3}>
        {({ delegations }) =>
          delegations.length === 0 ? (
            <Empty title="No delegations" command={'interlock approval delegate bob --for 14d --reason "on leave"'}>
              <p>Going away? Lend your right to decide, so that no run waits for you:</p>
            </Empty>
          ) : (
            <Table
              caption="Delegations in force or to come"
              rows={delegations}
              keyOf={(each) => each.delegation}
              columns={[
                { title: 'From', cell: (each) => <Text of={each.delegator} /> },
                { title: 'To', cell: (each) => <Text of={each.delegate} /> },
                { title: 'Until', cell: (each) => <><Instant at={each.until} /> {!each.in_force && <span className="tag">not in force</span>}</> },
                { title: 'Why', cell: (each) => <Text of={each.reason} /> },
                {
                  title: 'Action',
                  bare: true,
                  className: 'row-actions',
                  cell: (each) =>
                    (administers || each.delegator === me.person) && (
                      <Button look="quiet" onClick={() => setDoing({ revoke: each.delegation })}>
                        Revoke …
                      </Button>
                    ),
                },
              ]}
            />
          )
        }
      </Loaded>
      {doing === 'create' && <Lend close={close} />}
      {typeof doing === 'object' && (
        <Confirm
          title="Revoke the delegation"
          verb="Revoke"
          danger
          what="It counts no more, at once. Votes that were cast stay."
          changes="delegations"
          act={async () => {
            await must(api.DELETE('/api/v1/delegations/{delegation}', { params: { path: { delegation: doing.revoke } } }));
          }}
          close={close}
        />
      )}
    </Section>
  );
}
