/** From one tenant to another: an account belongs to one, so this leads to the sign-in there. */

import { useQuery } from '@tanstack/react-query';
import { api, must } from './api/client';
import { signOut, useMe } from './api/session';
import { knownTenants, tenantAddress } from './api/tenants';
import { FormDialog, Input, text } from './parts/form';
import { Text } from './parts/text';

export function TenantSwitch({ close }: { close: () => void }) {
  const me = useMe();
  // Administrators of the installation see all tenants, other people their own.
  const list = useQuery({ queryKey: ['tenants'], queryFn: () => must(api.GET('/api/v1/tenants')), enabled: me.installation, staleTime: 60_000 });
  const seen = (list.data?.tenants ?? []).filter((tenant) => tenant.disabled_at == null).map((tenant) => tenant.name);
  const others = [...new Set([...knownTenants(), ...seen])].filter((name) => name !== me.tenant_name);
  return (
    <FormDialog title="Another tenant" verb="Go there" close={close} act={(form) => signOut(tenantAddress(text(form, 'tenant')))}>
      <p>
        You are in <strong><Text of={me.tenant_name} /></strong>. An account belongs to one tenant: this signs you out here, and asks for your account there.
      </p>
      {others.length > 0 && (
        <ul className="tenant-list" aria-label="Tenants">
          {others.map((name) => (
            <li key={name}>
              <button type="button" className="chip" onClick={() => void signOut(tenantAddress(name))}>
                <Text of={name} />
              </button>
            </li>
          ))}
        </ul>
      )}
      <Input name="tenant" label="The tenant’s name" required />
    </FormDialog>
  );
}
