import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { Input, maybe, Select, text } from '../../parts/form';
import { Loaded } from '../../parts/loaded';
import { Empty } from '../../parts/notes';
import { SecretDialog } from '../../parts/secret';
import { Section } from '../../parts/section';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { RoleChoice, rolesOf } from './roles';

const DAY = 86_400_000;

type Key = Schema['KeyView'];
type Doing = 'create' | { rotate: Key } | { revoke: Key };

export function Keys() {
  const list = useQuery({ queryKey: ['keys'], queryFn: () => must(api.GET('/api/v1/keys', { params: { query: { limit: 200 } } })) });
  const [doing, setDoing] = useState<Doing>();
  const [made, setMade] = useState<string>();
  const close = () => setDoing(undefined);
  return (
    <Section about="Programs and workers use keys. Only a keyed hash of a key is kept here." action={<Button onClick={() => setDoing('create')}>New key …</Button>}>
      <Loaded query={list}>
        {({ keys }) => (keys.length === 0 ? <Empty title="No keys" command="interlock key create NAME --role worker" /> : <KeyTable keys={keys} choose={setDoing} />)}
      </Loaded>
      {doing === 'create' && <Create close={close} done={setMade} />}
      {typeof doing === 'object' && 'rotate' in doing && <Rotate of={doing.rotate} close={close} done={setMade} />}
      {typeof doing === 'object' && 'revoke' in doing && (
        <Confirm
          title={`Revoke ${doing.revoke.name}`}
          verb="Revoke"
          danger
          what="Clients that use it are refused at once. This cannot be taken back."
          changes="keys"
          act={async () => {
            await must(api.DELETE('/api/v1/keys/{key}', { params: { path: { key: doing.revoke.key } } }));
          }}
          close={close}
        />
      )}
      {made !== undefined && <SecretDialog title="The key" secret={made} close={() => setMade(undefined)} />}
    </Section>
  );
}

function KeyTable({ keys, choose }: { keys: Key[]; choose: (doing: Doing) => void }) {
  return (
    <Table
      caption="Keys, newest first"
      rows={keys}
      keyOf={(key) => key.key}
      columns={[
        { title: 'Key', cell: (key) => <><strong className="row-name"><Text of={key.name} /></strong> <code className="quiet">{key.begins}…</code></> },
        { title: 'Roles', cell: (key) => <>{key.roles.join(', ')} {key.workspace != null && <span className="tag">only <Text of={key.workspace} /></span>}</> },
        { title: 'Owner', cell: (key) => (key.owner == null ? <span className="nothing">–</span> : <Text of={key.owner} />) },
        { title: 'Last used', cell: (key) => <><span className="on-phone quiet">used </span>{key.last_used_at == null ? 'never' : <Ago at={key.last_used_at} />}</> },
        {
          title: 'Action',
          bare: true,
          className: 'row-actions',
          cell: (key) =>
            key.revoked_at != null ? (
              <span className="tag bad">revoked</span>
            ) : (
              <>
                <Button look="quiet" onClick={() => choose({ rotate: key })}>
                  Rotate …
                </Button>
                <Button look="quiet" onClick={() => choose({ revoke: key })}>
                  Revoke …
                </Button>
              </>
            ),
        },
      ]}
    />
  );
}

interface MakeProps {
  close: () => void;
  /** Takes the key's text, which is told once. */
  done: (text: string | undefined) => void;
}

function Rotate({ of, close, done }: MakeProps & { of: Key }) {
  async function rotate(form: FormData) {
    const body = { overlap_ms: Number(text(form, 'overlap')) };
    done((await must(api.POST('/api/v1/keys/{key}/rotate', { params: { path: { key: of.key } }, headers: intention(), body }))).text);
  }
  return (
    <Confirm title={`Rotate ${of.name}`} verb="Rotate" what="The key gets a new text, for the same client." changes="keys" act={rotate} close={close}>
      <Select name="overlap" label="The old text still works" defaultValue="0">
        <option value="0">not at all</option>
        <option value={DAY / 24}>for an hour</option>
        <option value={DAY}>for a day</option>
        <option value={7 * DAY}>for a week</option>
      </Select>
    </Confirm>
  );
}

function Create({ close, done }: MakeProps) {
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
    <Confirm title="New key" verb="Make it" what="Its text is shown once, when it is made." changes="keys" act={create} close={close}>
      <Input name="name" label="What it is for" required />
      <RoleChoice chosen={['viewer']} />
      <Input name="workspace" label="Only one workspace (optional)" />
      <Select name="days" label="It works" defaultValue="90">
        <option value="30">for 30 days</option>
        <option value="90">for 90 days</option>
        <option value="365">for a year</option>
        <option value="0">for ever</option>
      </Select>
    </Confirm>
  );
}
