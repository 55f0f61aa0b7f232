/** The console: who is signed in, what is live, and which room the address names. */

import { useEffect, type ReactNode } from 'react';
import { SessionProvider, useFlag } from './api/session';
import { LiveProvider } from './live/live';
import { Boundary } from './parts/boundary';
import { Empty, ProblemNote } from './parts/notes';
import { ToastProvider } from './parts/toast';
import { ApprovalsRoom } from './rooms/approvals/room';
import { AuditRoom } from './rooms/audit/room';
import { PolicyRoom } from './rooms/policy/room';
import { RunRoom } from './rooms/run/room';
import { RunsRoom } from './rooms/runs/room';
import { SchedulesRoom } from './rooms/schedules/room';
import { SettingsRoom } from './rooms/settings/room';
import { WebhooksRoom } from './rooms/webhooks/room';
import { WorkersRoom } from './rooms/workers/room';
import { WorkspaceRoom } from './rooms/workspace/room';
import { WorkflowRoom } from './rooms/workflows/one';
import { WorkflowsRoom } from './rooms/workflows/room';
import { go, Link, useAddress } from './route/router';
import { Shell } from './shell';

export function App() {
  return (
    <ToastProvider>
      <SessionProvider before={(problem) => <div className="before">{problem !== null && <ProblemNote error={problem} />}</div>}>
        <LiveProvider>
          <Shell>
            <BoundedRoom />
          </Shell>
        </LiveProvider>
      </SessionProvider>
    </ToastProvider>
  );
}

function BoundedRoom() {
  const { path } = useAddress();
  return (
    <Boundary at={path}>
      <Room />
    </Boundary>
  );
}

function Room(): ReactNode {
  const { parts } = useAddress();
  const workspace = useFlag('ui.task_workspace.enabled');
  const [room, name, ...rest] = parts;
  if (room === undefined) return <ToRuns />;
  if (rest.length === 0) {
    if (room === 'runs') return name === undefined ? <RunsRoom /> : <RunRoom key={name} id={name} />;
    if (room === 'workspace' && name !== undefined && workspace) return <WorkspaceRoom key={name} id={name} />;
    if (room === 'approvals') return <ApprovalsRoom selected={name} />;
    if (room === 'workflows') return name === undefined ? <WorkflowsRoom /> : <WorkflowRoom key={name} name={name} />;
    if (room === 'schedules') return <SchedulesRoom selected={name} />;
    if (room === 'workers') return <WorkersRoom selected={name} />;
    if (room === 'policy' && name === undefined) return <PolicyRoom />;
    if (room === 'audit' && name === undefined) return <AuditRoom />;
    if (room === 'webhooks') return <WebhooksRoom selected={name} />;
    if (room === 'settings') return <SettingsRoom part={name ?? 'account'} />;
  }
  return (
    <Empty title="There is no such page">
      <p>
        The address may be mistyped. <Link to="/runs">See all runs</Link>
      </p>
    </Empty>
  );
}

function ToRuns() {
  useEffect(() => go('/runs', 'replace'), []);
  return null;
}
