/** Changes of the policy and of access that a second admin has to agree to. */

import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { again, api, must, type Schema } from '../../api/client';
import { useMe } from '../../api/session';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { Dialog } from '../../parts/dialog';
import { Area, Check, maybe, text } from '../../parts/form';
import { JsonView } from '../../parts/json';
import { Loaded } from '../../parts/loaded';
import { Empty } from '../../parts/notes';
import { Section } from '../../parts/section';
import { Ago, Id, Text } from '../../parts/text';
import { useParam } from '../../route/router';
import { deedsFor, isHidden, type Change, type ChangeDeed } from './change';

const HEADER = 'interlock-change';

const changesQuery = (all: boolean) => ({
  queryKey: ['changes', all],
  queryFn: () => must(api.GET('/api/v1/changes', { params: { query: { all, limit: 100 } } })),
  refetchInterval: 15_000,
});

export function Changes() {
  const me = useMe();
  const [shown, setShown] = useParam('all');
  // What is agreed to and not carried out yet stands among all of them.
  const list = useQuery(changesQuery(true));
  const [doing, setDoing] = useState<{ deed: ChangeDeed; change: Change }>();
  const [answer, setAnswer] = useState<unknown>();
  const close = () => setDoing(undefined);
  return (
    <Section about="Where the tenant asks for two keys, a change of the policy or of access waits here for another admin.">
      <Check label="Also those that are over" checked={shown === 'too'} onChange={(event) => setShown(event.target.checked ? 'too' : '')} />
      <Loaded query={list} rows={3}>
        {({ changes }) => {
          const some = changes.filter((change) => shown === 'too' || change.state === 'requested' || change.state === 'approved');
          if (some.length === 0) {
            return (
              <Empty title="No change waits" command="interlock tenant update TENANT --two-keys-for-policy true --two-keys-for-access true">
                <p>An admin who can change the rules, or make another approver, could undo what approvals guard. Two keys put that under two people:</p>
              </Empty>
            );
          }
          return (
            <ul className="changes">
              {some.map((change) => (
                <li key={change.change} className="pane">
                  <ChangeCard of={change} me={me.person ?? me.client} choose={(deed) => setDoing({ deed, change })} />
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
      {doing?.deed === 'carry out' && <CarryOut change={doing.change} told={setAnswer} close={close} />}
      {doing !== undefined && doing.deed !== 'carry out' && <Decide change={doing.change} approve={doing.deed === 'agree'} close={close} />}
      {answer !== undefined && (
        <Dialog title="It is carried out" close={() => setAnswer(undefined)}>
          <p>This is what the server answered. A secret in it is shown this once.</p>
          <JsonView value={answer} what="the answer" />
          <footer>
            <Button look="primary" onClick={() => setAnswer(undefined)}>
              I have it
            </Button>
          </footer>
        </Dialog>
      )}
    </Section>
  );
}

const VERBS: Record<ChangeDeed, string> = { agree: 'Agree …', reject: 'Reject …', 'carry out': 'Carry it out …' };

function ChangeCard({ of, me, choose }: { of: Change; me: string; choose: (deed: ChangeDeed) => void }) {
  return (
    <>
      <header className="pane-head">
        <h3>
          <code>
            <Text of={`${of.method} ${of.path}`} />
          </code>
        </h3>
        <span className={of.state === 'requested' ? 'tag warn' : 'tag'}>{of.state}</span>
        {deedsFor(of, me).map((deed) => (
          <Button key={deed} look={deed === 'carry out' ? 'primary' : 'plain'} onClick={() => choose(deed)}>
            {VERBS[deed]}
          </Button>
        ))}
      </header>
      <p className="quiet">
        <Id of={of.change} /> · asked for by <Text of={of.asked_by} /> <Ago at={of.asked_at} />
        {of.decided_by != null && of.decided_at != null && (
          <>
            {' '}
            · {of.state === 'rejected' ? 'rejected' : 'agreed to'} by <Text of={of.decided_by} /> <Ago at={of.decided_at} />
          </>
        )}
        {(of.state === 'requested' || of.state === 'approved') && (
          <>
            {' '}
            · lapses <Ago at={of.expires_at} />
          </>
        )}
      </p>
      {of.notes != null && (
        <p>
          <Text of={of.notes} lines />
        </p>
      )}
      {of.body !== null && <JsonView value={of.body} what="what is asked for" />}
      {of.state === 'requested' && of.asked_by === me && <p className="quiet">You have asked for it: another admin decides.</p>}
    </>
  );
}

function Decide({ change, approve, close }: { change: Change; approve: boolean; close: () => void }) {
  return (
    <Confirm
      title={approve ? 'Agree to the change' : 'Reject the change'}
      verb={approve ? 'Agree' : 'Reject'}
      danger={!approve}
      what={
        approve
          ? `Nothing happens by it yet: ${change.asked_by} carries out exactly this request, once, within an hour.`
          : 'The request is over. Who asked sees why, and can ask for something else.'
      }
      changes="changes"
      close={close}
      act={async (form) => {
        const body: Schema['DecideChange'] = { approve, notes: approve ? maybe(form, 'notes') : text(form, 'notes') };
        await must(api.POST('/api/v1/changes/{change}/decision', { params: { path: { change: change.change } }, body }));
        return approve ? 'You have agreed.' : 'It is rejected.';
      }}
    >
      <Area name="notes" label={approve ? 'Remark (optional)' : 'Why not?'} required={!approve} />
    </Confirm>
  );
}

function CarryOut({ change, told, close }: { change: Change; told: (answer: unknown) => void; close: () => void }) {
  const queries = useQueryClient();
  return (
    <Confirm
      title="Carry out the change"
      verb="Carry it out"
      danger
      what={`The request is made again exactly as ${change.decided_by ?? 'another admin'} has agreed to it, and counts at once.`}
      changes="changes"
      close={close}
      act={async () => {
        if (isHidden(change.body)) throw new Error(`The request holds a secret, which is not kept: make it again at the command line with --change ${change.change}.`);
        const answer = await again(change.method, change.path, change.body, { [HEADER]: change.change });
        // It may have changed anything of the tenant.
        void queries.invalidateQueries();
        told(answer ?? {});
      }}
    />
  );
}
