import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { Button } from '../../parts/button';
import { FormDialog, Input, maybe, Select, text } from '../../parts/form';
import { Empty, Loading, ProblemNote } from '../../parts/notes';
import { Ago, Text } from '../../parts/text';
import { SecretDialog } from '../webhooks/secret';
import { RoleChoice, rolesOf } from './roles';

const DAY = 86_400_000;

type Key = Schema['KeyView'];
type Doing = 'create' | { rotate: Key } | { revoke: Key };

export function Keys() {
  const list = useQuery({ queryKey: ['keys'], queryFn: () => must(api.GET('/api/v1/keys', { params: { query: { limit: 200 } } })) });
  const queries = useQueryClient();
  const [doing, setDoing] = useState<Doing>();
  const [made, setMade] = useState<string>();
  const close = () => setDoing(undefined);
  const again = () => void queries.invalidateQueries({ queryKey: ['keys'] });
  if (list.data === undefined) return list.error === null ? <Loading /> : <ProblemNote error={list.error} />;
  return (
    <section>
      <header className="section-head">
        <p>Programs and workers use keys. Only a keyed hash of a key is kept here.</p>
        <Button onClick={() => setDoing('create')}>New key …</Button>
      </header>
      {list.data.keys.length === 0 ? (
        <Empty title="No keys" command="interlock key create NAME --role worker" />
      ) : (
        <table className="rows">
          <caption className="unseen">Keys, newest first</caption>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Roles</th>
              <th scope="col">Owner</th>
              <th scope="col">Last used</th>
              <th scope="col">
                <span className="unseen">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.data.keys.map((key) => (
              <tr key={key.key}>
                <td>
                  <Text of={key.name} /> <code className="quiet">{key.begins}…</code>
                </td>
                <td>
                  {key.roles.join(', ')} {key.workspace != null && <span className="tag">only <Text of={key.workspace} /></span>}
                </td>
                <td>{key.owner == null ? '–' : <Text of={key.owner} />}</td>
                <td>{key.last_used_at == null ? 'never' : <Ago at={key.last_used_at} />}</td>
                <td className="row-actions">
                  {key.revoked_at != null ? (
                    <span className="tag bad">revoked</span>
                  ) : (
                    <>
                      <Button look="quiet" onClick={() => setDoing({ rotate: key })}>
                        Rotate …
                      </Button>
                      <Button look="quiet" onClick={() => setDoing({ revoke: key })}>
                        Revoke …
                      </Button>
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {doing === 'create' && <Create close={close} done={(secret) => (again(), setMade(secret))} />}
      {typeof doing === 'object' && 'rotate' in doing && (
        <FormDialog
          title={`Rotate ${doing.rotate.name}`}
          verb="Rotate"
          close={close}
          act={async (form) => {
            const params = { path: { key: doing.rotate.key } };
            const answer = await must(api.POST('/api/v1/keys/{key}/rotate', { params, headers: intention(), body: { overlap_ms: Number(text(form, 'overlap')) } }));
            again();
            setMade(answer.text);
          }}
        >
          <p>The key gets a new text, for the same client.</p>
          <Select name="overlap" label="The old text still works" defaultValue="0">
            <option value="0">not at all</option>
            <option value={DAY / 24}>for an hour</option>
            <option value={DAY}>for a day</option>
            <option value={7 * DAY}>for a week</option>
          </Select>
        </FormDialog>
      )}
      {typeof doing === 'object' && 'revoke' in doing && (
        <FormDialog
          title={`Revoke ${doing.revoke.name}`}
          verb="Revoke"
          danger
          close={close}
          act={async () => {
            await must(api.DELETE('/api/v1/keys/{key}', { params: { path: { key: doing.revoke.key } } }));
            again();
          }}
        >
          <p>Whoever uses it is refused at once. This cannot be taken back.</p>
        </FormDialog>
      )}
      {made !== undefined && <SecretDialog title="The key" secret={made} close={() => setMade(undefined)} />}
    </section>
  );
}

function Create({ close, done }: { close: () => void; done: (text: string | undefined) => void }) {
  const [intended] = useState(intention);
  async function create(form: FormData) {
    const days = Number(text(form, 'days'));
    const body = {
      name: text(form, 'name'),
      roles: rolesOf(form),
      workspace: maybe(form, 'workspace'),
      expires_in_ms: days === 0 ? undefined : days * DAY,
    };
    done((await must(api.POST('/api/v1/keys', { headers: intended, body }))).text);
  }
  return (
    <FormDialog title="New key" verb="Make it" close={close} act={create}>
      <Input name="name" label="What it is for" required />
      <RoleChoice chosen={['viewer']} />
      <Input name="workspace" label="Only one workspace (optional)" />
      <Select name="days" label="It works" defaultValue="90">
        <option value="30">for 30 days</option>
        <option value="90">for 90 days</option>
        <option value="365">for a year</option>
        <option value="0">for ever</option>
      </Select>
    </FormDialog>
  );
}
