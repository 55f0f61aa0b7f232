import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { useMay, useMe } from '../../api/session';
import { Button } from '../../parts/button';
import { Facts } from '../../parts/facts';
import { Check, FormDialog, Input, text } from '../../parts/form';
import { Loading, ProblemNote } from '../../parts/notes';
import { Instant, Text } from '../../parts/text';

export function Tenant() {
  const me = useMe();
  const administers = useMay('administer');
  const params = { path: { tenant: me.tenant } };
  const one = useQuery({ queryKey: ['tenant'], queryFn: () => must(api.GET('/api/v1/tenants/{tenant}', { params })) });
  const queries = useQueryClient();
  const [changing, setChanging] = useState(false);
  if (one.data === undefined) return one.error === null ? <Loading rows={4} /> : <ProblemNote error={one.error} />;
  const tenant = one.data;
  const limit = (value: number | null | undefined) => (value == null ? 'no limit' : value.toLocaleString());
  return (
    <section className="pane narrow">
      <Facts
        of={[
          ['Name', <Text of={tenant.name} />],
          ['Steps at once', limit(tenant.max_concurrency)],
          ['Runs a minute', limit(tenant.max_runs_per_min)],
          ['Pending runs', limit(tenant.pending_runs_max)],
          ['Share', `${tenant.weight}, beside other tenants`],
          ['Own runs', tenant.settings.self_approval === true ? 'people may approve what they started, outside of production' : 'nobody approves what they started'],
          ['Made', <Instant at={tenant.created_at} />],
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
            const body: Schema['ChangeTenant'] = {
              max_concurrency: number('max_concurrency'),
              max_runs_per_min: number('max_runs_per_min'),
              pending_runs_max: number('pending_runs_max'),
              self_approval: form.has('self_approval'),
            };
            await must(api.PATCH('/api/v1/tenants/{tenant}', { params, body }));
            void queries.invalidateQueries({ queryKey: ['tenant'] });
            return 'The limits count from now on.';
          }}
        >
          <Input name="max_concurrency" label="Steps at once" type="number" min={0} defaultValue={tenant.max_concurrency ?? ''} hint="Empty for no limit. What is over waits." />
          <Input name="max_runs_per_min" label="Runs a minute" type="number" min={0} defaultValue={tenant.max_runs_per_min ?? ''} />
          <Input name="pending_runs_max" label="Pending runs" type="number" min={0} defaultValue={tenant.pending_runs_max ?? ''} hint="Starts past it are refused." />
          <Check name="self_approval" defaultChecked={tenant.settings.self_approval === true} label="People may approve what they started themselves, where one vote is enough and it is not production" />
        </FormDialog>
      )}
    </section>
  );
}
