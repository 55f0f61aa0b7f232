/** What can be done about a worker: take it out of service, or forget one that has gone. */

import { useState } from 'react';
import { api, must } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { go } from '../../route/router';
import { visible } from '../../text/visible';
import { deedFor } from './fleet';
import type { Worker } from './query';

export function WorkerActions({ worker }: { worker: Worker }) {
  const [asked, setAsked] = useState(false);
  const operates = useMay('operate');
  const deed = deedFor(worker);
  if (!operates || deed === undefined) return null;
  const name = visible(worker.worker);
  const params = { path: { session: worker.session_id } };
  const dialog = { changes: 'workers', close: () => setAsked(false) };
  return (
    <>
      <Button onClick={() => setAsked(true)}>{deed === 'drain' ? 'Drain …' : 'Forget …'}</Button>
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

function drains(running: number): string {
  if (running === 0) return 'It has no step now, and is given none any more.';
  return `It is given nothing new, and finishes the ${running === 1 ? 'step that it has' : `${running.toLocaleString()} steps that it has`}.`;
}
