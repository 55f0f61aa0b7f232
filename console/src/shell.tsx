/** The frame around every room: navigation, the state of the connection, and who is signed in. */

import { useEffect, useState, type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useMay, useMe } from './api/session';
import { Help } from './keyboard/help';
import { useKeys } from './keyboard/keys';
import { useFeedState } from './live/live';
import { Dialog } from './parts/dialog';
import { Icon, type IconName } from './parts/icon';
import { Text } from './parts/text';
import { canDecide, openApprovals, useDecider } from './rooms/approvals/inbox';
import { go, Link, useAddress } from './route/router';
import { TenantSwitch } from './tenant-switch';

interface RoomLink {
  room: string;
  title: string;
  icon: IconName;
  press: string;
}

const ROOMS: RoomLink[] = [
  { room: 'runs', title: 'Runs', icon: 'runs', press: 'g r' },
  { room: 'approvals', title: 'Approvals', icon: 'approvals', press: 'g a' },
  { room: 'workflows', title: 'Workflows', icon: 'workflows', press: 'g w' },
  { room: 'schedules', title: 'Schedules', icon: 'schedules', press: 'g s' },
  { room: 'workers', title: 'Workers', icon: 'workers', press: 'g k' },
  { room: 'policy', title: 'Policy', icon: 'policy', press: 'g p' },
  { room: 'audit', title: 'Audit', icon: 'audit', press: 'g u' },
  { room: 'webhooks', title: 'Webhooks', icon: 'webhooks', press: 'g h' },
  { room: 'settings', title: 'Settings', icon: 'settings', press: 'g e' },
];
/** What a thumb reaches on a phone; the rest is behind “More”. */
const ON_PHONES = 3;

export function Shell({ children }: { children: ReactNode }) {
  const { parts } = useAddress();
  const here = parts[0] ?? 'runs';
  const [help, setHelp] = useState(false);
  const [more, setMore] = useState(false);
  const [switching, setSwitching] = useState(false);
  const waiting = useWaitingCount();
  useKeys('Everywhere', [
    ...ROOMS.map(({ room, title, press }) => ({ press, does: `Go to ${title.toLowerCase()}`, run: () => go(`/${room}`) })),
    { press: '?', does: 'Show these keys', run: () => setHelp(true) },
  ]);
  useEffect(() => {
    const title = ROOMS.find((room) => room.room === here)?.title;
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${title ?? 'Console'} · Interlock`;
  }, [here, waiting]);
  const link = ({ room, title, icon }: RoomLink) => (
    <Link key={room} to={`/${room}`} aria-current={here === room ? 'page' : undefined} onClick={() => setMore(false)}>
      <Icon name={icon} />
      <span>{title}</span>
      {room === 'approvals' && waiting > 0 && <Count of={waiting} />}
    </Link>
  );
  return (
    <div className="shell">
      <a className="skip" href="#room">
        Skip to the content
      </a>
      <nav className="side" aria-label="Rooms">
        <Link to="/runs" className="brand" aria-label="Interlock, all runs">
          <span className="mark" aria-hidden="true" />
          Interlock
        </Link>
        <div className="rooms">{ROOMS.map(link)}</div>
        <div className="side-foot">
          <Connection />
          <button type="button" className="side-button" onClick={() => setHelp(true)}>
            <Icon name="keyboard" />
            Keys <kbd>?</kbd>
          </button>
          <Who switchTenant={() => setSwitching(true)} />
        </div>
      </nav>
      <main id="room" tabIndex={-1}>
        {children}
      </main>
      <nav className="tabs" aria-label="Rooms, for small screens">
        {ROOMS.slice(0, ON_PHONES).map(link)}
        <button type="button" onClick={() => setMore(true)} aria-haspopup="dialog">
          <Icon name="more" />
          <span>More</span>
        </button>
      </nav>
      {more && (
        <Dialog title="More" close={() => setMore(false)}>
          <div className="more-rooms">{ROOMS.slice(ON_PHONES).map(link)}</div>
          <Connection />
          <Who switchTenant={() => (setMore(false), setSwitching(true))} />
        </Dialog>
      )}
      {switching && <TenantSwitch close={() => setSwitching(false)} />}
      {help && <Help close={() => setHelp(false)} />}
    </div>
  );
}

/** How many approvals this person could decide on now. */
function useWaitingCount(): number {
  const me = useDecider();
  const open = useQuery({ ...openApprovals, enabled: useMay('vote') });
  return open.data?.approvals.filter((approval) => canDecide(approval, me)).length ?? 0;
}

function Count({ of }: { of: number }) {
  return (
    <span className="count">
      {of > 99 ? '99+' : of}
      <span className="unseen"> open</span>
    </span>
  );
}

function Who({ switchTenant }: { switchTenant: () => void }) {
  const me = useMe();
  return (
    <div className="who-line">
      <Link to="/settings" className="who">
        <strong>
          <Text of={me.person ?? 'a key'} />
        </strong>
        <span className="quiet">
          <Text of={me.tenant_name} /> · {me.roles.join(', ')}
        </span>
      </Link>
      <button type="button" className="switch" onClick={switchTenant} aria-label="Go to another tenant" title="Go to another tenant" aria-haspopup="dialog">
        <Icon name="switch" />
      </button>
    </div>
  );
}

function Connection() {
  const state = useFeedState();
  const words = { live: 'Live', connecting: 'Connecting …', lost: 'Reconnecting …' }[state];
  const title =
    state === 'live' ? 'Changes appear by themselves.' : 'What you see may be out of date until the connection is back.';
  return (
    <p className={`connection ${state}`} role="status" title={title}>
      <span className="dot" aria-hidden="true" />
      {words}
    </p>
  );
}
