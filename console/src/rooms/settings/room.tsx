/** Settings: oneself, and for admins the keys, people and limits of the tenant. */

import { useEffect, useRef } from 'react';
import { useMay } from '../../api/session';
import { Empty } from '../../parts/notes';
import { Link } from '../../route/router';
import { Account } from './account';
import { Changes } from './changes';
import { Delegations } from './delegations';
import { Groups } from './groups';
import { Keys } from './keys';
import { People } from './people';
import { Tenant } from './tenant';

const FOR_ADMINS = ['people', 'groups', 'keys', 'changes'];

export function SettingsRoom({ part }: { part: string }) {
  const administers = useMay('administer');
  const parts = [
    { id: 'account', title: 'You', show: <Account /> },
    { id: 'delegations', title: 'Delegations', show: <Delegations /> },
    { id: 'tenant', title: 'Tenant', show: <Tenant /> },
    ...(administers
      ? [
          { id: 'people', title: 'People', show: <People /> },
          { id: 'groups', title: 'Groups', show: <Groups /> },
          { id: 'keys', title: 'Keys', show: <Keys /> },
          { id: 'changes', title: 'Changes', show: <Changes /> },
        ]
      : []),
  ];
  const shown = parts.find((each) => each.id === part);
  const tabs = useRef<HTMLElement>(null);
  // On a phone the chosen one may stand outside of what is seen.
  useEffect(() => {
    void tabs.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [part]);
  return (
    <div className="room">
      <header className="room-head">
        <h1>Settings</h1>
      </header>
      <nav className="tab-list" aria-label="Settings" ref={tabs}>
        {parts.map((each) => (
          <Link key={each.id} to={`/settings/${each.id}`} aria-current={each.id === part ? 'page' : undefined}>
            {each.title}
          </Link>
        ))}
        <Link to="/webhooks">Webhooks</Link>
      </nav>
      {shown?.show ??
        (FOR_ADMINS.includes(part) ? (
          <Empty title="This is not for you">
            <p>Keys, people, groups and changes are for admins of the tenant. Ask one of them for the role.</p>
          </Empty>
        ) : (
          <Empty title="There is no such page">
            <p>
              The address may be mistyped. <Link to="/settings">See your own settings</Link>
            </p>
          </Empty>
        ))}
    </div>
  );
}
