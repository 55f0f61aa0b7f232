import { useQuery } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { JsonView } from '../../parts/json';
import { Loaded } from '../../parts/loaded';
import { Command } from '../../parts/notes';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { EndpointActions } from './endpoint-actions';

type Delivery = Schema['InboundDeliveryList']['deliveries'][number];

export function InboundCard({ endpoint }: { endpoint: Schema['InboundView'] }) {
  const params = { path: { endpoint: endpoint.endpoint_id } };
  const deliveries = useQuery({
    queryKey: ['inbound', endpoint.endpoint_id, 'deliveries'],
    queryFn: () => must(api.GET('/api/v1/webhooks/{endpoint}/deliveries', { params: { ...params, query: { limit: 50 } } })),
    refetchInterval: 5_000,
  });
  return (
    <div className="pane">
      <header className="pane-head">
        <h3>What came in</h3>
        <EndpointActions
          changes="inbound"
          turn={{
            verb: endpoint.paused ? 'Resume' : 'Pause',
            title: endpoint.paused ? 'Resume this address' : 'Pause this address',
            what: endpoint.paused ? 'What comes in starts workflows again.' : 'What comes in is refused until it is resumed.',
            act: () => must(api.PATCH('/api/v1/webhooks/{endpoint}', { params, body: { paused: !endpoint.paused } })),
          }}
          rotate={{
            title: 'Rotate the secret',
            what: 'The one before counts for 24 hours more, so that the sender can change over.',
            act: async () => (await must(api.POST('/api/v1/webhooks/{endpoint}/rotate', { params, headers: intention(), body: {} }))).secret,
          }}
          remove={{
            title: 'Remove this address',
            what: 'Nothing is taken there any more, and the sender gets an error.',
            act: () => must(api.DELETE('/api/v1/webhooks/{endpoint}', { params })),
          }}
        />
      </header>
      <p className="quiet">The sender sends to:</p>
      <Command text={window.location.origin + endpoint.path} />
      <Loaded query={deliveries} rows={3}>
        {(found) => (found.deliveries.length === 0 ? <p className="quiet">Nothing has come in yet.</p> : <Deliveries of={found.deliveries} />)}
      </Loaded>
    </div>
  );
}

function Deliveries({ of }: { of: Delivery[] }) {
  return (
    <Table
      caption="Deliveries, newest first"
      rows={of}
      keyOf={(delivery) => `${delivery.delivery}${delivery.received_at}`}
      columns={[
        { title: 'Event', className: 'c-event', cell: (delivery) => <Text of={delivery.event} /> },
        { title: 'When', cell: (delivery) => <Ago at={delivery.received_at} /> },
        { title: 'State', cell: (delivery) => <span className={delivery.status === 'failed' ? 'tag bad' : 'tag'}>{delivery.status}</span> },
        {
          title: 'What became of it',
          cell: (delivery) => (
            <>
              {delivery.error != null && <Text of={delivery.error} />}
              {delivery.answer != null && (
                <details>
                  <summary>Answer</summary>
                  <JsonView value={delivery.answer} what="the answer" />
                </details>
              )}
            </>
          ),
        },
      ]}
    />
  );
}
