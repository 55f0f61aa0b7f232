import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { useMay, useMe } from '../../api/session';
import { Button } from '../../parts/button';
import { Facts } from '../../parts/facts';
import { Check, FormDialog, Input, text } from '../../parts/form';
import { Loading, ProblemNote } from '../../parts/notes';
import { Instant, Text } from '../../parts/text';
import { Used, useUsage } from './usage';

export function Tenant() {
  const me = useMe();
  const administers = useMay('administer');
  const params = { path: { tenant: me.tenant } };
  const one = useQuery({ queryKey: ['tenant'], queryFn: () => must(api.GET('/api/v1/tenants/{tenant}', { params })) });
  const queries = useQueryClient();
  const [changing, setChanging] = useState(false);
  const usage = useUsage();
  if (one.data === undefined) return one.error === null ? <Loading rows={4} /> : <ProblemNote error={one.error} />;
  const tenant = one.data;
  return (
    <section className="pane narrow">
      <Facts
        of={[
          ['Name', <Text of={tenant.name} />],
          ['Steps at once', <Used limit="max_concurrency" of={tenant} now={usage.max_concurrency} />],
          ['Runs a minute', <Used limit="max_runs_per_min" of={tenant} now={usage.max_runs_per_min} />],
          ['Pending runs', <Used limit="pending_runs_max" of={tenant} now={usage.pending_runs_max} />],
          ['Runs not ended', usage.active?.toLocaleString() ?? '…'],
          ['Share', `${tenant.weight}, beside other tenants`],
          ['Self-approval', tenant.settings.self_approval === true ? 'people may approve what they started, outside of production' : 'people may not approve what they started'],
          ['Created', <Instant at={tenant.created_at} />],
        ]}
      />
      {administers && <Button onClick={() => setChanging(true)}>Change …</Button>}
      {changing && (
        <FormDialog
          title="Limits and settings"
          verb="Change"
          close={() => setChanging(false)}
          act={async (form) => {
            const number = (name: string) => Number(text(form, name)) || 0;
            const limits = { max_concurrency: number('max_concurrency'), max_runs_per_min: number('max_runs_per_min'), pending_runs_max: number('pending_runs_max') };
            const body: Schema['ChangeTenant'] = { ...(me.installation && limits), self_approval: form.has('self_approval') };
            await must(api.PATCH('/api/v1/tenants/{tenant}', { params, body }));
            void queries.invalidateQueries({ queryKey: ['tenant'] });
            return 'It counts from now on.';
          }}
        >
          {me.installation ? (
            <>
              <Input name="max_concurrency" label="Steps at once" type="number" min={0} defaultValue={tenant.max_concurrency ?? ''} hint="Empty for no limit. What is over waits." />
              <Input name="max_runs_per_min" label="Runs a minute" type="number" min={0} defaultValue={tenant.max_runs_per_min ?? ''} />
              <Input name="pending_runs_max" label="Pending runs" type="number" min={0} defaultValue={tenant.pending_runs_max ?? ''} hint="Starts past it are refused." />
            </>
          ) : (
            <p className="quiet">The limits are set by whoever manages the installation.</p>
          )}
          <Check name="self_approval" defaultChecked={tenant.settings.self_approval === true} label="People may approve what they started themselves, where one vote is enough and it is not production" />
        </FormDialog>
      )}
    </section>
  );
}
