/** Settings: oneself, and for admins the keys, people and limits of the tenant. */

import { useMay } from '../../api/session';
import { Empty } from '../../parts/notes';
import { Link } from '../../route/router';
import { Account } from './account';
import { Delegations } from './delegations';
import { Keys } from './keys';
import { People } from './people';
import { Tenant } from './tenant';

export function SettingsRoom({ part }: { part: string }) {
  const administers = useMay('administer');
  const parts = [
    { id: 'account', title: 'You', show: <Account /> },
    { id: 'delegations', title: 'Delegations', show: <Delegations /> },
    { id: 'tenant', title: 'Tenant', show: <Tenant /> },
    ...(administers
      ? [
          { id: 'people', title: 'People', show: <People /> },
          { id: 'keys', title: 'Keys', show: <Keys /> },
        ]
      : []),
  ];
  const shown = parts.find((each) => each.id === part);
  return (
    <div className="room">
      <header className="room-head">
        <h1>Settings</h1>
      </header>
      <nav className="tab-list" aria-label="Settings">
        {parts.map((each) => (
          <Link key={each.id} to={`/settings/${each.id}`} aria-current={each.id === part ? 'page' : undefined}>
            {each.title}
          </Link>
        ))}
      </nav>
      {shown?.show ?? (
        <Empty title="This is not for you">
          <p>Keys and people are for admins of the tenant.</p>
        </Empty>
      )}
    </div>
  );
}
