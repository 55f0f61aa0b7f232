import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { useMe } from '../../api/session';
import { Button } from '../../parts/button';
import { Check, FormDialog, Input, list as words, maybe, text } from '../../parts/form';
import { Loading, ProblemNote } from '../../parts/notes';
import { Ago, Text } from '../../parts/text';
import { SecretDialog } from '../webhooks/secret';
import { RoleChoice, rolesOf } from './roles';

const FOR_PEOPLE = ['viewer', 'operator', 'approver', 'admin'] as const;

type Person = Schema['UserView'];
type Doing = 'create' | { change: Person };

export function People() {
  const me = useMe();
  const list = useQuery({ queryKey: ['users'], queryFn: () => must(api.GET('/api/v1/users', { params: { query: { limit: 500 } } })) });
  const queries = useQueryClient();
  const [doing, setDoing] = useState<Doing>();
  const [link, setLink] = useState<string>();
  const [key] = useState(intention);
  const close = () => setDoing(undefined);
  const again = () => void queries.invalidateQueries({ queryKey: ['users'] });
  async function invite(user: string) {
    const made = await must(api.POST('/api/v1/users/{user}/invite', { params: { path: { user } }, headers: intention(), body: {} }));
    setLink(made.link);
  }
  if (list.data === undefined) return list.error === null ? <Loading /> : <ProblemNote error={list.error} />;
  return (
    <section>
      <header className="section-head">
        <p>People sign in, and only people vote.</p>
        <Button onClick={() => setDoing('create')}>New person …</Button>
      </header>
      <table className="rows">
        <caption className="unseen">People of the tenant</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Roles</th>
            <th scope="col">Groups</th>
            <th scope="col">Last signed in</th>
            <th scope="col">
              <span className="unseen">Action</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.data.users.map((person) => (
            <tr key={person.user}>
              <td>
                <Text of={person.name} /> {person.name === me.person && <span className="tag">you</span>}
                {person.disabled_at != null && <span className="tag bad">disabled</span>}
                {person.display_name != null && (
                  <span className="quiet">
                    {' '}
                    <Text of={person.display_name} />
                  </span>
                )}
              </td>
              <td>{person.roles.join(', ')}</td>
              <td>
                <Text of={person.groups.join(', ')} />
              </td>
              <td>{person.last_login_at == null ? 'never' : <Ago at={person.last_login_at} />}</td>
              <td className="row-actions">
                <Button look="quiet" onClick={() => setDoing({ change: person })}>
                  Change …
                </Button>
                {person.issuer == null && person.disabled_at == null && (
                  <Button look="quiet" onClick={() => void invite(person.user)}>
                    Invite
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {doing === 'create' && (
        <FormDialog
          title="New person"
          verb="Make the account"
          close={close}
          act={async (form) => {
            const body = {
              name: text(form, 'name'),
              display_name: maybe(form, 'display_name'),
              email: maybe(form, 'email'),
              roles: rolesOf(form),
              groups: words(form, 'groups'),
            };
            const made = await must(api.POST('/api/v1/users', { headers: key, body }));
            again();
            await invite(made.user);
          }}
        >
          <Input name="name" label="Name" required hint="Letters, digits and . _ - @ +. It stands in histories and does not change." />
          <Input name="display_name" label="Full name (optional)" />
          <Input name="email" label="E-mail (optional)" type="email" />
          <RoleChoice chosen={['viewer']} only={FOR_PEOPLE} />
          <Input name="groups" label="Groups (optional)" hint="Approvals name groups. Several with commas." />
        </FormDialog>
      )}
      {typeof doing === 'object' && (
        <FormDialog
          title={`Change ${doing.change.name}`}
          verb="Change"
          close={close}
          act={async (form) => {
            const body = { roles: rolesOf(form), groups: words(form, 'groups'), disabled: form.has('disabled') };
            await must(api.PATCH('/api/v1/users/{user}', { params: { path: { user: doing.change.user } }, body }));
            again();
          }}
        >
          <RoleChoice chosen={doing.change.roles} only={FOR_PEOPLE} />
          <Input name="groups" label="Groups" defaultValue={doing.change.groups.join(', ')} />
          <Check name="disabled" defaultChecked={doing.change.disabled_at != null} label="Disabled: cannot sign in, visits end, their keys are refused" />
        </FormDialog>
      )}
      {link !== undefined && (
        <SecretDialog title="The invitation" secret={link} close={() => setLink(undefined)}>
          <p>By this link the person chooses a password, once.</p>
        </SecretDialog>
      )}
    </section>
  );
}
