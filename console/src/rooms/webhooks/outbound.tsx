import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { Check, maybe, Reason } from '../../parts/form';
import { Loaded } from '../../parts/loaded';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { at, Link } from '../../route/router';
import { span } from '../../text/span';
import { EndpointActions } from './endpoint-actions';

type Delivery = Schema['OutboundDeliveryList']['deliveries'][number];

export function OutboundCard({ endpoint }: { endpoint: Schema['OutboundView'] }) {
  const params = { path: { endpoint: endpoint.endpoint_id } };
  const deliveries = useQuery({
    queryKey: ['outbound', endpoint.endpoint_id, 'deliveries'],
    queryFn: () => must(api.GET('/api/v1/webhook-endpoints/{endpoint}/deliveries', { params: { ...params, query: { limit: 50 } } })),
    refetchInterval: 5_000,
  });
  const [replay, setReplay] = useState<string>();
  const on = endpoint.state === 'enabled';
  return (
    <div className="pane">
      <header className="pane-head">
        <h3>Deliveries</h3>
        <EndpointActions
          changes="outbound"
          turn={{
            verb: on ? 'Disable' : 'Enable',
            title: on ? 'Disable this endpoint' : 'Enable this endpoint',
            what: on ? 'Messages wait until it is enabled again.' : 'Messages that have waited are sent now, in order.',
            fields: on ? <Reason required={false} /> : <Check name="skip" label="Leave out what was missed" />,
            act: (form) =>
              must(
                on
                  ? api.POST('/api/v1/webhook-endpoints/{endpoint}/disable', { params, body: { reason: maybe(form, 'reason') } })
                  : api.POST('/api/v1/webhook-endpoints/{endpoint}/enable', { params, body: { skip_missed: form.has('skip') } }),
              ),
          }}
          rotate={{
            title: 'Rotate the secret',
            what: 'For 24 hours messages are signed with both, so that the receiver can change over.',
            act: async () => (await must(api.POST('/api/v1/webhook-endpoints/{endpoint}/rotate', { params, headers: intention() }))).secret,
          }}
          remove={{
            title: 'Remove this endpoint',
            what: 'It is told nothing any more. What was on its way ends.',
            act: () => must(api.DELETE('/api/v1/webhook-endpoints/{endpoint}', { params })),
          }}
        />
      </header>
      {endpoint.note != null && (
        <p>
          <Text of={endpoint.note} />
        </p>
      )}
      <Loaded query={deliveries} rows={4}>
        {(found) => (found.deliveries.length === 0 ? <p className="quiet">Nothing was sent yet.</p> : <Deliveries of={found.deliveries} replay={setReplay} />)}
      </Loaded>
      {replay !== undefined && (
        <Confirm
          title="Send it again"
          verb="Send again"
          what="The same message is sent once more, with the same id, by which a careful receiver knows it."
          changes="outbound"
          act={async () => {
            await must(api.POST('/api/v1/webhook-endpoints/{endpoint}/replay', { params, body: { delivery_id: replay } }));
            return 'It is on its way.';
          }}
          close={() => setReplay(undefined)}
        />
      )}
    </div>
  );
}

function Deliveries({ of, replay }: { of: Delivery[]; replay: (delivery: string) => void }) {
  const operates = useMay('operate');
  return (
    <Table
      caption="Messages, newest first"
      rows={of}
      keyOf={(delivery) => delivery.delivery_id}
      columns={[
        { title: 'Event', className: 'c-event', cell: (delivery) => delivery.event },
        { title: 'Run', cell: (delivery) => <Link to={at('runs', delivery.run_id)}>run</Link> },
        { title: 'When', cell: (delivery) => <Ago at={delivery.created_at} /> },
        { title: 'Tries', cell: (delivery) => <Tries of={delivery.attempts} /> },
        {
          title: 'State',
          cell: (delivery) => (
            <>
              <span className={delivery.state === 'dead' ? 'tag bad' : 'tag'}>{delivery.state === 'dead' ? 'given up' : delivery.state}</span>
              {delivery.attempts.length > 0 && delivery.next_at != null && <span className="quiet"> next <Ago at={delivery.next_at} /></span>}
            </>
          ),
        },
        {
          title: 'Action',
          bare: true,
          className: 'row-actions',
          cell: (delivery) =>
            operates &&
            delivery.state !== 'pending' && (
              <Button look="quiet" onClick={() => replay(delivery.delivery_id)}>
                Send again …
              </Button>
            ),
        },
      ]}
    />
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
