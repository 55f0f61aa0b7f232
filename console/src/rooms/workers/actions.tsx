/** What can be done about a worker: take it out of service, for good or for a while, or forget one that has gone. */

import { useState } from 'react';
import { api, must } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { Input, text } from '../../parts/form';
import { go } from '../../route/router';
import { visible } from '../../text/visible';
import { deedFor, maintenanceOf } from './fleet';
import type { Worker } from './query';

export function WorkerActions({ worker }: { worker: Worker }) {
  const [asked, setAsked] = useState(false);
  const operates = useMay('operate');
  const deed = deedFor(worker);
  if (!operates) return null;
  const name = visible(worker.worker);
  const params = { path: { session: worker.session_id } };
  const dialog = { changes: 'workers', close: () => setAsked(false) };
  return (
    <>
      <Maintenance worker={worker} />
      {deed !== undefined && <Button onClick={() => setAsked(true)}>{deed === 'drain' ? 'Drain …' : 'Forget …'}</Button>}
      {asked && deed === 'drain' && (
        <Confirm
          {...dialog}
          title={`Take “${name}” out of service`}
          verb="Drain"
          what={`${drains(worker.running)} It then signs off, and its program ends. Nothing is taken back from it, and no other worker is touched.`}
          act={async () => {
            await must(api.POST('/api/v1/workers/{session}/drain', { params, body: {} }));
            return `“${name}” is draining.`;
          }}
        />
      )}
      {asked && deed === 'forget' && (
        <Confirm
          {...dialog}
          title={`Forget “${name}”`}
          verb="Forget"
          danger
          what="It leaves this list. What it did stays in the runs and in the audit log. If its program comes back, it registers anew."
          act={async () => {
            await must(api.DELETE('/api/v1/workers/{session}', { params }));
            go('/workers?gone=too');
            return `“${name}” is forgotten.`;
          }}
        />
      )}
    </>
  );
}

const HOUR_MS = 3_600_000;

/** Keeps new work from a worker that stays connected, or lets it have some again. */
function Maintenance({ worker }: { worker: Worker }) {
  const [asked, setAsked] = useState(false);
  const which = maintenanceOf(worker);
  if (which === undefined) return null;
  const name = visible(worker.worker);
  const params = { path: { session: worker.session_id } };
  const dialog = { changes: 'workers', close: () => setAsked(false) };
  return (
    <>
      <Button onClick={() => setAsked(true)}>{which === 'begin' ? 'Maintenance …' : 'End maintenance …'}</Button>
      {asked && which === 'begin' && (
        <Confirm
          {...dialog}
          title={`Put “${name}” into maintenance`}
          verb="Begin maintenance"
          what="It stays connected and finishes the steps and runs that it has. It is given nothing new until the maintenance ends."
          act={async (form) => {
            const hours = Number(text(form, 'hours'));
            const until = hours > 0 ? Math.round(Date.now() + hours * HOUR_MS) : undefined;
            await must(api.POST('/api/v1/workers/{session}/maintenance', { params, body: { reason: text(form, 'reason'), until } }));
            return `“${name}” is in maintenance.`;
          }}
        >
          <Input name="reason" label="Why" required maxLength={4_000} />
          <Input name="hours" label="For how many hours" hint="Without a number it lasts until it is ended." type="number" min={0} step="any" />
        </Confirm>
      )}
      {asked && which === 'end' && (
        <Confirm
          {...dialog}
          title={`End the maintenance of “${name}”`}
          verb="End maintenance"
          what="It is given work again."
          act={async () => {
            await must(api.DELETE('/api/v1/workers/{session}/maintenance', { params }));
            return `The maintenance of “${name}” has ended.`;
          }}
        />
      )}
    </>
  );
}

function drains(running: number): string {
  if (running === 0) return 'It has no step now, and is given none any more.';
  return `It is given nothing new, and finishes the ${running === 1 ? 'step that it has' : `${running.toLocaleString()} steps that it has`}.`;
}
