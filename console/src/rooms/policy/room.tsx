/** Policy: what decides on actions, which versions there are, and what each would decide. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Copy } from '../../parts/copy';
import { Facts } from '../../parts/facts';
import { Loaded } from '../../parts/loaded';
import { Room } from '../../parts/room';
import { Tabs } from '../../parts/tabs';
import { Ago, Text } from '../../parts/text';
import { useParam } from '../../route/router';
import { Playground } from './playground';
import { nameOf, policyQuery, policyVersionsQuery, shortHash, type Policy } from './query';
import { PushDialog } from './push';
import { Replay } from './replay';
import { Rules } from './rules';
import { Tests } from './tests';
import { Versions } from './versions';

export function PolicyRoom() {
  const policy = useQuery(policyQuery);
  const versions = useQuery(policyVersionsQuery);
  const administers = useMay('administer');
  const defines = useMay('define');
  const [tab, setTab] = useParam('tab');
  const [pushing, setPushing] = useState(false);
  const tabs = [
    { id: 'rules', title: 'Rules' },
    { id: 'versions', title: 'Versions' },
    // Questions compute for as long as the rules take: those who write workflows ask them.
    ...(defines ? [{ id: 'playground', title: 'Playground' }] : []),
    // Tests compute for as long as they are written to: admins run them.
    ...(administers ? [{ id: 'tests', title: 'Tests' }] : []),
    // What was decided may name anything that a run was given: the server shows it to admins.
    ...(administers ? [{ id: 'replay', title: 'Replay' }] : []),
  ];
  const shown = tabs.find((each) => each.id === tab)?.id ?? 'rules';
  return (
    <Room title="Policy" actions={administers && <Button onClick={() => setPushing(true)}>New version …</Button>}>
      <Loaded query={policy} rows={4}>
        {(inForce) => (
          <>
            <InForce policy={inForce} />
            <Tabs tabs={tabs} shown={shown} show={setTab} />
            <div role="tabpanel" aria-label={tabs.find((each) => each.id === shown)?.title}>
              <Loaded query={versions}>
                {(list) => (
                  <>
                    {shown === 'rules' && <Rules policy={inForce} versions={list} />}
                    {shown === 'versions' && <Versions policy={inForce} versions={list} />}
                    {shown === 'playground' && <Playground policy={inForce} versions={list} />}
                    {shown === 'tests' && <Tests policy={inForce} versions={list} />}
                    {shown === 'replay' && <Replay policy={inForce} versions={list} />}
                  </>
                )}
              </Loaded>
            </div>
          </>
        )}
      </Loaded>
      {pushing && <PushDialog close={() => setPushing(false)} />}
    </Room>
  );
}

function InForce({ policy }: { policy: Policy }) {
  return (
    <section className="pane in-force" aria-label="The policy in force">
      <Facts
        of={[
          [
            'In force',
            <>
              <strong>{nameOf(policy.active)}</strong>{' '}
              {policy.active == null && <span className="quiet">comes with the server; it counts until a version of your own is put in force</span>}
            </>,
          ],
          ['Hash', <Hash of={policy.active_hash} />],
          [
            'Beside it',
            policy.shadow == null ? (
              <span className="quiet">none is tried</span>
            ) : (
              <>
                <strong>{nameOf(policy.shadow)}</strong> <span className="quiet">is asked too, and decides nothing</span>
              </>
            ),
          ],
          ...(policy.updated_at == null
            ? []
            : ([
                [
                  'Changed',
                  <>
                    <Ago at={policy.updated_at} /> {policy.updated_by != null && <>by <Text of={policy.updated_by} /></>}
                  </>,
                ],
              ] as [string, React.ReactNode][])),
        ]}
      />
    </section>
  );
}

export function Hash({ of }: { of: string }) {
  return (
    <span className="hash">
      <code title={of}>{shortHash(of)}…</code>
      <Copy text={of} what="the hash" />
    </span>
  );
}
