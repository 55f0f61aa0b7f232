import { useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { FormDialog, Input, list, maybe, Select, text } from '../../parts/form';
import { SecretDialog } from '../../parts/secret';

export function CreateOutbound({ close }: { close: () => void }) {
  const queries = useQueryClient();
  const [key] = useState(intention);
  const [secret, setSecret] = useState<string>();
  if (secret !== undefined) return <SecretDialog title="The endpoint’s secret" secret={secret} close={close} />;
  async function create(form: FormData) {
    const events = list(form, 'events');
    const workflows = list(form, 'workflows');
    const body = {
      url: text(form, 'url'),
      description: maybe(form, 'description'),
      events: events.length > 0 ? events : undefined,
      workflows: workflows.length > 0 ? workflows : undefined,
    };
    const made = await must(api.POST('/api/v1/webhook-endpoints', { headers: key, body }));
    void queries.invalidateQueries({ queryKey: ['outbound'] });
    if (made.secret === undefined) return 'The endpoint is made.';
    setSecret(made.secret);
    return false as const;
  }
  return (
    <FormDialog title="New endpoint" verb="Make it" close={close} act={create}>
      <Input name="url" label="Address" type="url" required placeholder="https://hooks.example.org/interlock" />
      <Input name="description" label="Description (optional)" />
      <Input name="events" label="Events (optional)" placeholder="approval.requested, session.failed" hint="All of them where nothing stands here." />
      <Input name="workflows" label="Workflows (optional)" hint="Events of all workflows where nothing stands here." />
    </FormDialog>
  );
}

export function CreateInbound({ close }: { close: () => void }) {
  const queries = useQueryClient();
  const [key] = useState(intention);
  const [made, setMade] = useState<Schema['InboundMade']>();
  if (made?.secret != null) {
    return (
      <SecretDialog title="The sender’s secret" secret={made.secret} close={close}>
        <p>
          The sender’s address is <code className="wrap">{window.location.origin + made.path}</code>
        </p>
      </SecretDialog>
    );
  }
  async function create(form: FormData) {
    const body = { name: text(form, 'name'), source: text(form, 'source') as Schema['Source'], secret: maybe(form, 'secret') };
    const answer = await must(api.POST('/api/v1/webhooks', { headers: key, body }));
    void queries.invalidateQueries({ queryKey: ['inbound'] });
    if (answer.secret == null) return 'The address is made.';
    setMade(answer);
    return false as const;
  }
  return (
    <FormDialog title="New address" verb="Make it" close={close} act={create}>
      <Input name="name" label="Name" required />
      <Select name="source" label="From" hint="It decides how the sender’s signature is checked.">
        <option value="github">GitHub</option>
        <option value="slack">Slack</option>
        <option value="servicenow">ServiceNow</option>
        <option value="standard">Standard Webhooks</option>
        <option value="generic">another system</option>
      </Select>
      <Input name="secret" label="The sender’s secret (optional)" type="password" hint="Some senders give you one. Otherwise one is made." />
    </FormDialog>
  );
}
