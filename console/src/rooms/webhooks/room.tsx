/** Webhooks: who may start workflows from outside, who is told of events, and what became of each message. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Empty, Loading, ProblemNote } from '../../parts/notes';
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
  return (
    <div className="room">
      <header className="room-head">
        <h1>Webhooks</h1>
      </header>
      <section>
        <header className="section-head">
          <h2>Going out</h2>
          {defines && <Button onClick={() => setCreating('out')}>New endpoint …</Button>}
        </header>
        {outbound.error !== null && <ProblemNote error={outbound.error} />}
        {outbound.data === undefined ? outbound.error === null && <Loading rows={2} /> : <Outbound endpoints={outbound.data.endpoints} selected={selected} />}
        {toldOf !== undefined && <OutboundCard endpoint={toldOf} />}
      </section>
      <section>
        <header className="section-head">
          <h2>Coming in</h2>
          {defines && <Button onClick={() => setCreating('in')}>New address …</Button>}
        </header>
        {inbound.error !== null && <ProblemNote error={inbound.error} />}
        {inbound.data === undefined ? inbound.error === null && <Loading rows={2} /> : <Inbound endpoints={inbound.data.endpoints} selected={selected} />}
        {taken !== undefined && <InboundCard endpoint={taken} />}
      </section>
      <DeadLetters />
      {creating === 'in' && <CreateInbound close={() => setCreating(undefined)} />}
      {creating === 'out' && <CreateOutbound close={() => setCreating(undefined)} />}
    </div>
  );
}

function Outbound({ endpoints, selected }: { endpoints: Schema['OutboundView'][]; selected: string | undefined }) {
  if (endpoints.length === 0) {
    return (
      <Empty title="Nobody is told of events" command="interlock webhook out create https://hooks.example.org/interlock">
        <p>An endpoint of yours gets a signed message for each event that it wants (Standard Webhooks).</p>
      </Empty>
    );
  }
  return (
    <table className="rows">
      <caption className="unseen">Endpoints that are told of events</caption>
      <thead>
        <tr>
          <th scope="col">Endpoint</th>
          <th scope="col">Events</th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        {endpoints.map((endpoint) => (
          <tr key={endpoint.endpoint_id} className={endpoint.endpoint_id === selected ? 'here' : ''}>
            <td>
              <Link to={at('webhooks', endpoint.endpoint_id)} className="row-link">
                <Text of={endpoint.url} />
              </Link>
              {endpoint.description != null && (
                <span className="quiet">
                  {' '}
                  <Text of={endpoint.description} />
                </span>
              )}
            </td>
            <td className="quiet">
              <Text of={endpoint.events == null ? 'all' : endpoint.events.join(', ')} />
            </td>
            <td>
              <span className={endpoint.state === 'enabled' ? 'tag' : 'tag warn'}>{endpoint.state}</span>
              {endpoint.failing_since != null && (
                <span className="tag bad">
                  failing since <Ago at={endpoint.failing_since} />
                </span>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Inbound({ endpoints, selected }: { endpoints: Schema['InboundView'][]; selected: string | undefined }) {
  if (endpoints.length === 0) {
    return (
      <Empty title="No address takes webhooks" command="interlock webhook in create github --source github">
        <p>An address takes signed messages of GitHub, Slack, ServiceNow or your own systems, and starts workflows that want them.</p>
      </Empty>
    );
  }
  return (
    <table className="rows">
      <caption className="unseen">Addresses at which webhooks are taken</caption>
      <thead>
        <tr>
          <th scope="col">Address</th>
          <th scope="col">From</th>
          <th scope="col">Made</th>
        </tr>
      </thead>
      <tbody>
        {endpoints.map((endpoint) => (
          <tr key={endpoint.endpoint_id} className={endpoint.endpoint_id === selected ? 'here' : ''}>
            <td>
              <Link to={at('webhooks', endpoint.endpoint_id)} className="row-link">
                <Text of={endpoint.name} />
              </Link>
              {endpoint.paused && <span className="tag warn">paused</span>}
            </td>
            <td>{endpoint.source}</td>
            <td className="quiet">
              <Ago at={endpoint.created_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
