import { useState } from 'react';
import { api, must } from '../../api/client';
import { signOut, useMe } from '../../api/session';
import { Button } from '../../parts/button';
import { Facts } from '../../parts/facts';
import { FormDialog, Input } from '../../parts/form';
import { Text } from '../../parts/text';
import { applyTheme, theme, type Theme } from '../../parts/theme';
import { TenantSwitch } from '../../tenant-switch';

const THEMES: [Theme, string][] = [
  ['system', 'As the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];

export function Account() {
  const me = useMe();
  const [chosen, setChosen] = useState(theme);
  const [doing, setDoing] = useState<'password' | 'tenant'>();
  const close = () => setDoing(undefined);
  return (
    <section className="pane narrow">
      <Facts
        of={[
          ['Name', <Text of={me.person ?? 'a key'} />],
          ['Tenant', <Text of={me.tenant_name} />],
          ['Roles', me.roles.join(', ')],
          ['Groups', me.groups === undefined || me.groups.length === 0 ? 'none' : <Text of={me.groups.join(', ')} />],
        ]}
      />
      <fieldset className="choice">
        <legend>Appearance</legend>
        {THEMES.map(([name, words]) => (
          <label key={name}>
            <input
              type="radio"
              name="theme"
              checked={chosen === name}
              onChange={() => {
                applyTheme(name);
                setChosen(name);
              }}
            />
            {words}
          </label>
        ))}
      </fieldset>
      <div className="row-of-buttons">
        <Button onClick={() => setDoing('password')}>Change my password …</Button>
        <Button onClick={() => setDoing('tenant')}>Another tenant …</Button>
        <a className="button plain" href="/docs">
          The API
        </a>
        <Button onClick={() => void signOut()}>Sign out</Button>
      </div>
      {doing === 'password' && (
        <FormDialog
          title="Change my password"
          verb="Change it"
          close={close}
          act={async (form) => {
            const password = String(form.get('password'));
            if (password !== form.get('again')) throw new Error('The two new passwords are not the same.');
            const body = { password, old_password: String(form.get('old')) };
            await must(api.POST('/api/v1/users/{user}/password', { params: { path: { user: me.client } }, body }));
            window.location.assign('/login');
          }}
        >
          <p>All your visits end, this one too: sign in again with the new one.</p>
          <Input name="old" type="password" label="The old one" autoComplete="current-password" required />
          <Input name="password" type="password" label="The new one" autoComplete="new-password" minLength={12} required hint="At least 12 characters." />
          <Input name="again" type="password" label="The new one again" autoComplete="new-password" required />
        </FormDialog>
      )}
      {doing === 'tenant' && <TenantSwitch close={close} />}
    </section>
  );
}
