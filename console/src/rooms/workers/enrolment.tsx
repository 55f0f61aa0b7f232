/** Workers with a certificate of their own: who may enrol, who has, and within which bounds. For admins. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, intention, must } from '../../api/client';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { FormDialog, Input, list, text } from '../../parts/form';
import { Loaded } from '../../parts/loaded';
import { Command, Empty } from '../../parts/notes';
import { SecretDialog } from '../../parts/secret';
import { Section } from '../../parts/section';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { identitiesQuery, type Identity } from './query';
import { visible } from '../../text/visible';

export function Enrolment() {
  const identities = useQuery(identitiesQuery);
  const [letting, setLetting] = useState(false);
  const [revoked, setRevoked] = useState<Identity>();
  const [token, setToken] = useState<string>();
  return (
    <Section title="Enrolment" action={<Button onClick={() => setLetting(true)}>Let a worker enrol …</Button>}>
      <Loaded query={identities} rows={2}>
        {(found) =>
          found.length === 0 ? (
            <Empty title="No worker has a certificate">
              <p>A worker that enrols has a key of its own instead of a shared one, and takes steps of some environments and profiles only. The server needs HTTPS and an authority:</p>
              <Command text="interlock worker ca init" />
            </Empty>
          ) : (
            <Table
              caption="Workers that may enrol, or have"
              rows={found}
              keyOf={(each) => each.identity}
              columns={[
                { title: 'Worker', cell: (each) => <strong><Text of={each.name} /></strong> },
                { title: 'State', cell: (each) => <span className={each.state === 'revoked' ? 'tag warn' : 'tag'}>{each.state.replaceAll('_', ' ')}</span> },
                { title: 'Environments', cell: (each) => <Text of={named(each.terms.environments)} /> },
                { title: 'Segments', cell: (each) => <Text of={named(each.terms.segments)} /> },
                { title: 'Profiles', cell: (each) => <Text of={named(each.terms.profiles)} /> },
                { title: 'Certificate ends', cell: (each) => (each.certificate_expires_at == null ? <span className="nothing quiet">–</span> : <Ago at={each.certificate_expires_at} />) },
                {
                  title: 'Action',
                  bare: true,
                  className: 'row-actions',
                  cell: (each) =>
                    each.revoked_at == null && (
                      <Button look="quiet" onClick={() => setRevoked(each)}>
                        Revoke …
                      </Button>
                    ),
                },
              ]}
            />
          )
        }
      </Loaded>
      {letting && <LetEnrol told={setToken} close={() => setLetting(false)} />}
      {token !== undefined && (
        <SecretDialog title="The token" secret={token} close={() => setToken(undefined)}>
          <p>Put it into a file on the worker’s machine. It works once.</p>
          <Command text="interlock worker --server URL --ca ca.pem --identity FOLDER --enrol-token-file FILE --task NAME=PROGRAM" />
        </SecretDialog>
      )}
      {revoked !== undefined && (
        <Confirm
          title={`Revoke “${visible(revoked.name)}”`}
          verb="Revoke"
          danger
          what="Its certificate and its token count no more, within seconds. Steps that it has go to other workers as if it had died. To come back, it enrols anew."
          changes="workers"
          close={() => setRevoked(undefined)}
          act={async () => {
            await must(api.DELETE('/api/v1/worker-identities/{identity}', { params: { path: { identity: revoked.identity } } }));
            return 'It is revoked.';
          }}
        />
      )}
    </Section>
  );
}

function named(names: readonly string[] | undefined): string {
  if (names === undefined || names.length === 0) return '–';
  return names.map((name) => (name === '*' ? 'all' : name)).join(', ');
}

function LetEnrol({ told, close }: { told: (token: string) => void; close: () => void }) {
  const [key] = useState(intention);
  async function make(form: FormData) {
    const terms = { environments: list(form, 'environments'), segments: list(form, 'segments'), profiles: list(form, 'profiles') };
    const made = await must(api.POST('/api/v1/worker-identities', { headers: key, body: { name: text(form, 'name'), terms } }));
    if (made.token !== undefined) told(made.token);
  }
  return (
    <FormDialog title="Let a worker enrol" verb="Make the token" close={close} act={make}>
      <p>A token is made that works once, within an hour. The worker’s certificate says what stands here, and the worker cannot widen it.</p>
      <Input name="name" label="The worker’s name" required maxLength={64} />
      <Input name="environments" label="Environments" required hint="prod, staging, dev; none for workflows without a profile; * for all." />
      <Input name="segments" label="Network segments (optional)" />
      <Input name="profiles" label="Sandbox profiles (optional)" hint="Of the commands that it may run; * for all." />
    </FormDialog>
  );
}
