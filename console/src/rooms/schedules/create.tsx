import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { Area, FormDialog, Input, json, Select, text } from '../../parts/form';
import { at, go } from '../../route/router';
import { workflowNames } from '../runs/query';

export function CreateSchedule({ close }: { close: () => void }) {
  const workflows = useQuery(workflowNames);
  const queries = useQueryClient();
  const [key] = useState(intention);
  async function create(form: FormData) {
    const body = {
      name: text(form, 'name'),
      workflow: text(form, 'workflow'),
      cron: text(form, 'cron'),
      timezone: text(form, 'timezone'),
      overlap: text(form, 'overlap') as Schema['Overlap'],
      inputs: (json(form, 'inputs') ?? {}) as Schema['Json'],
    };
    const made = await must(api.POST('/api/v1/schedules', { headers: key, body }));
    void queries.invalidateQueries({ queryKey: ['schedules'] });
    go(at('schedules', made.name));
    return `It runs next ${made.next?.local ?? 'when it is resumed'}.`;
  }
  return (
    <FormDialog title="New schedule" verb="Make it" close={close} act={create}>
      <Input name="name" label="Name" required />
      <Select name="workflow" label="Workflow" required>
        {workflows.data?.workflows.map(({ workflow }) => (
          <option key={workflow}>{workflow}</option>
        ))}
      </Select>
      <Input name="cron" label="Cron" required placeholder="30 2 * * *" hint="Minute, hour, day of month, month, day of week." />
      <Input name="timezone" label="Time zone" required defaultValue={Intl.DateTimeFormat().resolvedOptions().timeZone} />
      <Select name="overlap" label="While the run before is still active" defaultValue="skip">
        <option value="skip">skip the slot</option>
        <option value="queue">queue behind it</option>
        <option value="allow">start beside it</option>
        <option value="cancel_previous">cancel it</option>
      </Select>
      <Area name="inputs" label="Inputs as JSON (optional)" rows={3} code />
    </FormDialog>
  );
}
