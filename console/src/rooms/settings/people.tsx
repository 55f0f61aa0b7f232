import { useState } from 'react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { useMe } from '../../api/session';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { Check, Input, list as words, maybe, text } from '../../parts/form';
import { Loaded } from '../../parts/loaded';
import { ProblemNote } from '../../parts/notes';
import { SecretDialog } from '../../parts/secret';
import { Section } from '../../parts/section';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { peopleQuery } from './query';
import { RoleChoice, rolesOf } from './roles';

const FOR_PEOPLE = ['viewer', 'operator', 'approver', 'admin'] as const;

type Person = Schema['UserView'];
type Doing = 'create' | { change: Person };

export function People() {
  const list = useQuery(peopleQuery);
  const [doing, setDoing] = useState<Doing>();
  const close = () => setDoing(undefined);
  const invitation = useMutation({
    mutationFn: async (user: string) =>
      (await must(api.POST('/api/v1/users/{user}/invite', { params: { path: { user } }, headers: intention(), body: {} }))).link,
  });
  return (
    <Section about="People sign in, and only people vote." action={<Button onClick={() => setDoing('create')}>New person …</Button>}>
      {invitation.error !== null && <ProblemNote error={invitation.error} />}
      <Loaded query={list}>
        {({ users }) => <PersonTable people={users} change={(person) => setDoing({ change: person })} invite={invitation.mutate} />}
      </Loaded>
      {doing === 'create' && <Create close={close} invite={invitation.mutateAsync} />}
      {typeof doing === 'object' && <Change of={doing.change} close={close} />}
      {invitation.data !== undefined && (
        <SecretDialog title="The invitation" secret={invitation.data} close={invitation.reset}>
          <p>By this link the person chooses a password, once.</p>
        </SecretDialog>
      )}
    </Section>
  );
}

function PersonTable({ people, change, invite }: { people: Person[]; change: (person: Person) => void; invite: (user: string) => void }) {
  const me = useMe();
  return (
    <Table
      caption="People of the tenant"
      rows={people}
      keyOf={(person) => person.user}
      columns={[
        {
          title: 'Name',
          cell: (person) => (
            <>
              <strong className="row-name"><Text of={person.name} /></strong> {person.name === me.person && <span className="tag">you</span>}
              {person.disabled_at != null && <span className="tag bad">disabled</span>}
              {person.display_name != null && <span className="quiet"> <Text of={person.display_name} /></span>}
            </>
          ),
        },
        { title: 'Roles', cell: (person) => person.roles.join(', ') },
        { title: 'Groups', cell: (person) => (person.groups.length === 0 ? <span className="nothing quiet">–</span> : <Text of={person.groups.join(', ')} />) },
        { title: 'Last signed in', cell: (person) => <><span className="on-phone quiet">signed in </span>{person.last_login_at == null ? 'never' : <Ago at={person.last_login_at} />}</> },
        {
          title: 'Action',
          bare: true,
          className: 'row-actions',
          cell: (person) => (
            <>
              <Button look="quiet" onClick={() => change(person)}>
                Change …
              </Button>
              {person.issuer == null && person.disabled_at == null && (
                <Button look="quiet" onClick={() => invite(person.user)}>
                  Invite
                </Button>
              )}
            </>
          ),
        },
      ]}
    />
  );
}

function Create({ close, invite }: { close: () => void; invite: (user: string) => Promise<unknown> }) {
  const [key] = useState(intention);
  async function create(form: FormData) {
    const body = {
      name: text(form, 'name'),
      display_name: maybe(form, 'display_name'),
      email: maybe(form, 'email'),
      roles: rolesOf(form),
      groups: words(form, 'groups'),
    };
    await invite((await must(api.POST('/api/v1/users', { headers: key, body }))).user);
  }
  return (
    <Confirm title="New person" verb="Make the account" what="You get a link for them, by which they choose a password." changes="users" act={create} close={close}>
      <Input name="name" label="Name" required hint="Letters, digits and . _ - @ +. It stands in histories and does not change." />
      <Input name="display_name" label="Full name (optional)" />
      <Input name="email" label="E-mail (optional)" type="email" />
      <RoleChoice chosen={['viewer']} only={FOR_PEOPLE} />
      <Input name="groups" label="Groups (optional)" hint="Approvals name groups. Several with commas." />
    </Confirm>
  );
}

function Change({ of, close }: { of: Person; close: () => void }) {
  async function change(form: FormData) {
    const body = { roles: rolesOf(form), groups: words(form, 'groups'), disabled: form.has('disabled') };
    await must(api.PATCH('/api/v1/users/{user}', { params: { path: { user: of.user } }, body }));
  }
  return (
    <Confirm title={`Change ${of.name}`} verb="Change" what="It counts from their next request on." changes="users" act={change} close={close}>
      <RoleChoice chosen={of.roles} only={FOR_PEOPLE} />
      <Input name="groups" label="Groups" defaultValue={of.groups.join(', ')} />
      <Check name="disabled" defaultChecked={of.disabled_at != null} label="Disabled: cannot sign in, visits end, their keys are refused" />
    </Confirm>
  );
}
