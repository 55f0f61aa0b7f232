/** Webhooks: addresses that start workflows from outside, endpoints that are told of events, and every delivery. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { useRowKeys } from '../../keyboard/rows';
import { Button } from '../../parts/button';
import { Loaded } from '../../parts/loaded';
import { Empty, Loading } from '../../parts/notes';
import { Room } from '../../parts/room';
import { Section } from '../../parts/section';
import { useSettled } from '../../parts/settled';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { at, Link } from '../../route/router';
import { CreateInbound, CreateOutbound } from './create';
import { DeadLetters } from './dead-letters';
import { InboundCard } from './inbound';
import { OutboundCard } from './outbound';

export function WebhooksRoom({ selected }: { selected: string | undefined }) {
  const outbound = useQuery({ queryKey: ['outbound'], queryFn: () => must(api.GET('/api/v1/webhook-endpoints')) });
  const inbound = useQuery({ queryKey: ['inbound'], queryFn: () => must(api.GET('/api/v1/webhooks')) });
  const defines = useMay('define');
  const [creating, setCreating] = useState<'in' | 'out'>();
  const toldOf = outbound.data?.endpoints.find((endpoint) => endpoint.endpoint_id === selected);
  const taken = inbound.data?.endpoints.find((endpoint) => endpoint.endpoint_id === selected);
  const isAbsent = selected !== undefined && outbound.data !== undefined && inbound.data !== undefined && toldOf === undefined && taken === undefined;
  const settled = useSettled(outbound.isPending, inbound.isPending);
  useRowKeys('Webhooks', 'endpoint');
  if (!settled) {
    return (
      <Room title="Webhooks">
        <Loading rows={8} />
      </Room>
    );
  }
  return (
    <Room title="Webhooks">
      {isAbsent && (
        <div className="problem" role="alert">
          <p>
            There is no endpoint or address <Text of={selected ?? ''} />. It may have been deleted, or belong to another tenant. <Link to="/webhooks">See all of them</Link>
          </p>
        </div>
      )}
      <Section title="Going out" action={defines && <Button onClick={() => setCreating('out')}>New endpoint …</Button>}>
        <Loaded query={outbound} rows={2}>
          {({ endpoints }) => <Outbound endpoints={endpoints} selected={selected} />}
        </Loaded>
        {toldOf !== undefined && <OutboundCard endpoint={toldOf} />}
      </Section>
      <Section title="Coming in" action={defines && <Button onClick={() => setCreating('in')}>New address …</Button>}>
        <Loaded query={inbound} rows={2}>
          {({ endpoints }) => <Inbound endpoints={endpoints} selected={selected} />}
        </Loaded>
        {taken !== undefined && <InboundCard endpoint={taken} />}
      </Section>
      <DeadLetters />
      {creating === 'in' && <CreateInbound close={() => setCreating(undefined)} />}
      {creating === 'out' && <CreateOutbound close={() => setCreating(undefined)} />}
    </Room>
  );
}

interface ListProps<T> {
  endpoints: T[];
  selected: string | undefined;
}

function Outbound({ endpoints, selected }: ListProps<Schema['OutboundView']>) {
  if (endpoints.length === 0) {
    return (
      <Empty title="No endpoints yet" command="interlock webhook out create https://hooks.example.org/interlock">
        <p>An endpoint of yours gets a signed message for each event that it wants (Standard Webhooks).</p>
      </Empty>
    );
  }
  return (
    <Table
      caption="Endpoints that are told of events"
      rows={endpoints}
      keyOf={(endpoint) => endpoint.endpoint_id}
      isHere={(endpoint) => endpoint.endpoint_id === selected}
      columns={[
        {
          title: 'Endpoint',
          cell: (endpoint) => (
            <>
              <EndpointLink id={endpoint.endpoint_id} name={endpoint.name ?? endpoint.url} />
              {endpoint.description != null && <span className="quiet"> <Text of={endpoint.description} /></span>}
            </>
          ),
        },
        { title: 'Events', className: 'quiet', cell: (endpoint) => <Text of={endpoint.events == null ? 'all' : endpoint.events.join(', ')} /> },
        {
          title: 'State',
          cell: (endpoint) => (
            <>
              <span className={endpoint.state === 'enabled' ? 'tag' : 'tag warn'}>{endpoint.state}</span>
              {endpoint.failing_since != null && <span className="tag bad">failing since <Ago at={endpoint.failing_since} /></span>}
            </>
          ),
        },
      ]}
    />
  );
}

function Inbound({ endpoints, selected }: ListProps<Schema['InboundView']>) {
  if (endpoints.length === 0) {
    return (
      <Empty title="No address takes webhooks" command="interlock webhook in create github --source github">
        <p>An address takes signed messages of GitHub, Slack, ServiceNow or your own systems, and starts workflows that want them.</p>
      </Empty>
    );
  }
  return (
    <Table
      caption="Addresses at which webhooks are taken"
      rows={endpoints}
      keyOf={(endpoint) => endpoint.endpoint_id}
      isHere={(endpoint) => endpoint.endpoint_id === selected}
      columns={[
        {
          title: 'Address',
          cell: (endpoint) => (
            <>
              <EndpointLink id={endpoint.endpoint_id} name={endpoint.name} />
              {endpoint.paused && <span className="tag warn">paused</span>}
            </>
          ),
        },
        { title: 'From', cell: (endpoint) => endpoint.source },
        { title: 'Made', className: 'quiet', cell: (endpoint) => <Ago at={endpoint.created_at} /> },
      ]}
    />
  );
}

function EndpointLink({ id, name }: { id: string; name: string }) {
  return (
    <Link to={at('webhooks', id)} className="row-link">
      <Text of={name} />
    </Link>
  );
}
