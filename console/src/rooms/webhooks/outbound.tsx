import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Check, FormDialog, maybe, Reason } from '../../parts/form';
import { Loading, ProblemNote } from '../../parts/notes';
import { Ago, Text } from '../../parts/text';
import { at, go, Link } from '../../route/router';
import { span } from '../../text/span';
import { SecretDialog } from './secret';

type Doing = 'rotate' | 'switch' | 'remove' | { replay: string };

export function OutboundCard({ endpoint }: { endpoint: Schema['OutboundView'] }) {
  const params = { path: { endpoint: endpoint.endpoint_id } };
  const queries = useQueryClient();
  const deliveries = useQuery({
    queryKey: ['outbound', endpoint.endpoint_id, 'deliveries'],
    queryFn: () => must(api.GET('/api/v1/webhook-endpoints/{endpoint}/deliveries', { params: { ...params, query: { limit: 50 } } })),
    refetchInterval: 5_000,
  });
  const rights = { define: useMay('define'), operate: useMay('operate') };
  const [doing, setDoing] = useState<Doing>();
  const [secret, setSecret] = useState<string>();
  const close = () => setDoing(undefined);
  const again = () => void queries.invalidateQueries({ queryKey: ['outbound'] });
  const on = endpoint.state === 'enabled';
  return (
    <div className="pane">
      <header className="pane-head">
        <h3>Deliveries</h3>
        {rights.define && <Button onClick={() => setDoing('switch')}>{on ? 'Disable …' : 'Enable …'}</Button>}
        {rights.define && <Button onClick={() => setDoing('rotate')}>Rotate the secret …</Button>}
        {rights.define && <Button onClick={() => setDoing('remove')}>Remove …</Button>}
      </header>
      {endpoint.note != null && (
        <p>
          <Text of={endpoint.note} />
        </p>
      )}
      {deliveries.error !== null && <ProblemNote error={deliveries.error} />}
      {deliveries.data === undefined ? (
        <Loading rows={4} />
      ) : deliveries.data.deliveries.length === 0 ? (
        <p className="quiet">Nothing was sent yet.</p>
      ) : (
        <table className="rows">
          <caption className="unseen">Messages, newest first</caption>
          <thead>
            <tr>
              <th scope="col">Event</th>
              <th scope="col">Run</th>
              <th scope="col">When</th>
              <th scope="col">Tries</th>
              <th scope="col">State</th>
              <th scope="col">
                <span className="unseen">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {deliveries.data.deliveries.map((delivery) => (
              <tr key={delivery.delivery_id}>
                <td>{delivery.event}</td>
                <td>
                  <Link to={at('runs', delivery.run_id)}>run</Link>
                </td>
                <td>
                  <Ago at={delivery.created_at} />
                </td>
                <td>
                  <Tries of={delivery.attempts} />
                </td>
                <td>
                  <span className={delivery.state === 'dead' ? 'tag bad' : 'tag'}>{delivery.state === 'dead' ? 'given up' : delivery.state}</span>
                  {delivery.next_at != null && (
                    <span className="quiet">
                      {' '}
                      next <Ago at={delivery.next_at} />
                    </span>
                  )}
                </td>
                <td>
                  {rights.operate && delivery.state !== 'pending' && (
                    <Button look="quiet" onClick={() => setDoing({ replay: delivery.delivery_id })}>
                      Send again …
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {doing === 'switch' && (
        <FormDialog
          title={on ? 'Disable this endpoint' : 'Enable this endpoint'}
          verb={on ? 'Disable' : 'Enable'}
          close={close}
          act={async (form) => {
            await must(
              on
                ? api.POST('/api/v1/webhook-endpoints/{endpoint}/disable', { params, body: { reason: maybe(form, 'reason') } })
                : api.POST('/api/v1/webhook-endpoints/{endpoint}/enable', { params, body: { skip_missed: form.has('skip') } }),
            );
            again();
          }}
        >
          <p>{on ? 'Messages wait until it is enabled again.' : 'Messages that have waited are sent now, in order.'}</p>
          {on ? <Reason required={false} /> : <Check name="skip" label="Leave out what was missed" />}
        </FormDialog>
      )}
      {doing === 'rotate' && (
        <FormDialog
          title="Rotate the secret"
          verb="Rotate"
          close={close}
          act={async () => {
            const made = await must(api.POST('/api/v1/webhook-endpoints/{endpoint}/rotate', { params, headers: intention() }));
            again();
            setSecret(made.secret);
          }}
        >
          <p>For 24 hours messages are signed with both, so that the receiver can change over.</p>
        </FormDialog>
      )}
      {doing === 'remove' && (
        <FormDialog
          title="Remove this endpoint"
          verb="Remove"
          danger
          close={close}
          act={async () => {
            await must(api.DELETE('/api/v1/webhook-endpoints/{endpoint}', { params }));
            again();
            go('/webhooks');
          }}
        >
          <p>It is told nothing any more. What was on its way ends.</p>
        </FormDialog>
      )}
      {typeof doing === 'object' && (
        <FormDialog
          title="Send it again"
          verb="Send again"
          close={close}
          act={async () => {
            await must(api.POST('/api/v1/webhook-endpoints/{endpoint}/replay', { params, body: { delivery_id: doing.replay } }));
            again();
            return 'It is on its way.';
          }}
        >
          <p>The same message is sent once more, with the same id, by which a careful receiver knows it.</p>
        </FormDialog>
      )}
      {secret !== undefined && <SecretDialog title="The new secret" secret={secret} close={() => setSecret(undefined)} />}
    </div>
  );
}

function Tries({ of }: { of: Schema['OutboundAttempt'][] }) {
  const last = of.at(-1);
  if (last === undefined) return <span className="quiet">none yet</span>;
  return (
    <details>
      <summary>
        {of.length} · {last.status ?? <Text of={last.error ?? 'no answer'} />}
      </summary>
      <ol className="tries">
        {of.map((attempt) => (
          <li key={attempt.attempt}>
            <Ago at={attempt.at} />, {span(attempt.duration_ms)}: {attempt.status ?? 'no answer'}{' '}
            <Text of={attempt.error ?? attempt.excerpt ?? ''} />
          </li>
        ))}
      </ol>
    </details>
  );
}
