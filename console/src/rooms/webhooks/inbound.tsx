import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { FormDialog } from '../../parts/form';
import { JsonView } from '../../parts/json';
import { Command, Loading, ProblemNote } from '../../parts/notes';
import { Ago, Text } from '../../parts/text';
import { go } from '../../route/router';
import { SecretDialog } from './secret';

export function InboundCard({ endpoint }: { endpoint: Schema['InboundView'] }) {
  const params = { path: { endpoint: endpoint.endpoint_id } };
  const queries = useQueryClient();
  const deliveries = useQuery({
    queryKey: ['inbound', endpoint.endpoint_id, 'deliveries'],
    queryFn: () => must(api.GET('/api/v1/webhooks/{endpoint}/deliveries', { params: { ...params, query: { limit: 50 } } })),
    refetchInterval: 5_000,
  });
  const defines = useMay('define');
  const [doing, setDoing] = useState<'rotate' | 'pause' | 'remove'>();
  const [secret, setSecret] = useState<string>();
  const close = () => setDoing(undefined);
  const again = () => void queries.invalidateQueries({ queryKey: ['inbound'] });
  return (
    <div className="pane">
      <header className="pane-head">
        <h3>What came in</h3>
        {defines && <Button onClick={() => setDoing('pause')}>{endpoint.paused ? 'Resume …' : 'Pause …'}</Button>}
        {defines && <Button onClick={() => setDoing('rotate')}>Rotate the secret …</Button>}
        {defines && <Button onClick={() => setDoing('remove')}>Remove …</Button>}
      </header>
      <p className="quiet">The sender sends to:</p>
      <Command text={window.location.origin + endpoint.path} />
      {deliveries.error !== null && <ProblemNote error={deliveries.error} />}
      {deliveries.data === undefined ? (
        <Loading rows={3} />
      ) : deliveries.data.deliveries.length === 0 ? (
        <p className="quiet">Nothing has come in yet.</p>
      ) : (
        <table className="rows">
          <caption className="unseen">Deliveries, newest first</caption>
          <thead>
            <tr>
              <th scope="col">Event</th>
              <th scope="col">When</th>
              <th scope="col">State</th>
              <th scope="col">What became of it</th>
            </tr>
          </thead>
          <tbody>
            {deliveries.data.deliveries.map((delivery) => (
              <tr key={`${delivery.delivery}${delivery.received_at}`}>
                <td>
                  <Text of={delivery.event} />
                </td>
                <td>
                  <Ago at={delivery.received_at} />
                </td>
                <td>
                  <span className={delivery.status === 'failed' ? 'tag bad' : 'tag'}>{delivery.status}</span>
                </td>
                <td>
                  {delivery.error != null && <Text of={delivery.error} />}
                  {delivery.answer != null && (
                    <details>
                      <summary>Answer</summary>
                      <JsonView value={delivery.answer} what="the answer" />
                    </details>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {doing === 'pause' && (
        <FormDialog
          title={endpoint.paused ? 'Resume this address' : 'Pause this address'}
          verb={endpoint.paused ? 'Resume' : 'Pause'}
          close={close}
          act={async () => {
            await must(api.PATCH('/api/v1/webhooks/{endpoint}', { params, body: { paused: !endpoint.paused } }));
            again();
          }}
        >
          <p>{endpoint.paused ? 'What comes in starts workflows again.' : 'What comes in is refused until it is resumed.'}</p>
        </FormDialog>
      )}
      {doing === 'rotate' && (
        <FormDialog
          title="Rotate the secret"
          verb="Rotate"
          close={close}
          act={async () => {
            const made = await must(api.POST('/api/v1/webhooks/{endpoint}/rotate', { params, headers: intention(), body: {} }));
            again();
            setSecret(made.secret ?? undefined);
          }}
        >
          <p>The one before counts for 24 hours more, so that the sender can change over.</p>
        </FormDialog>
      )}
      {doing === 'remove' && (
        <FormDialog
          title="Remove this address"
          verb="Remove"
          danger
          close={close}
          act={async () => {
            await must(api.DELETE('/api/v1/webhooks/{endpoint}', { params }));
            again();
            go('/webhooks');
          }}
        >
          <p>Nothing is taken there any more, and the sender gets an error.</p>
        </FormDialog>
      )}
      {secret !== undefined && <SecretDialog title="The new secret" secret={secret} close={() => setSecret(undefined)} />}
    </div>
  );
}
