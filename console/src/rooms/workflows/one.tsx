/** One workflow: its steps, its file, its versions, and how to start it. */

import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, must, Refusal } from '../../api/client';
import { useMay } from '../../api/session';
import { useKeys } from '../../keyboard/keys';
import { Button } from '../../parts/button';
import { FormDialog } from '../../parts/form';
import { Empty, Loading, ProblemNote } from '../../parts/notes';
import { Source } from '../../parts/source';
import { Tabs } from '../../parts/tabs';
import { Ago, Text } from '../../parts/text';
import { Link, useParam } from '../../route/router';
import { definitionQuery, runQuery, type Definition } from '../run/query';
import { ApplyDialog } from './apply';
import { Diagnostics, validationQuery } from './diagnostics';
import { StartDialog } from './start';
import { StepList } from './steps';
import { Versions } from './versions';

const TABS = [
  { id: 'steps', title: 'Steps' },
  { id: 'source', title: 'Source' },
  { id: 'versions', title: 'Versions' },
];

export function WorkflowRoom({ name }: { name: string }) {
  const newest = useQuery({
    queryKey: ['workflow', name],
    queryFn: () => must(api.GET('/api/v1/workflows/{workflow}', { params: { path: { workflow: name } } })),
  });
  const [asked] = useParam('version');
  const number = Number(asked) || newest.data?.version;
  const pinned = useQuery({ ...definitionQuery(name, number ?? 1), enabled: number !== undefined && number !== newest.data?.version });
  const [tab, setTab] = useParam('tab');
  const shown = TABS.find((each) => each.id === tab)?.id ?? 'steps';
  const [like, setLike] = useParam('like');
  const model = useQuery({ ...runQuery(like), enabled: like !== '' });
  const rights = { operate: useMay('operate'), define: useMay('define') };
  const [doing, setDoing] = useState<'start' | 'apply' | 'disable'>();
  const version = number === newest.data?.version ? newest.data : pinned.data;
  const startable = rights.operate && newest.data?.disabled === false;
  useKeys('This workflow', startable ? [{ press: 's', does: 'Start a run', run: () => setDoing('start') }] : []);
  if (newest.data === undefined) {
    if (newest.error === null) return <Loading />;
    const absent = newest.error instanceof Refusal && newest.error.problem.status === 404;
    return absent ? <NoSuchWorkflow name={name} /> : <ProblemNote error={newest.error} />;
  }
  const definition = (version?.definition ?? {}) as Definition;
  const close = () => {
    setDoing(undefined);
    // Not where the start has led to the new run already.
    if (new URLSearchParams(window.location.search).has('like')) setLike('');
  };
  return (
    <div className="room">
      <header className="room-head tall">
        <div>
          <p className="crumbs">
            <Link to="/workflows">Workflows</Link>
          </p>
          <h1>
            <Text of={name} />
          </h1>
          <p className="quiet">
            version {number} {number !== newest.data.version && `(the newest is ${newest.data.version})`} · applied{' '}
            {version != null && <Ago at={version.applied_at} />} {version?.applied_by != null && <>by <Text of={version.applied_by} /></>}
            {newest.data.disabled && <span className="tag warn">disabled: takes no starts</span>}
          </p>
        </div>
        <div className="room-actions">
          {startable && (
            <Button look="primary" press="s" onClick={() => setDoing('start')}>
              Start a run …
            </Button>
          )}
          {rights.define && <Button onClick={() => setDoing('apply')}>New version …</Button>}
          {rights.define && <Button onClick={() => setDoing('disable')}>{newest.data.disabled ? 'Enable …' : 'Disable …'}</Button>}
          <Link className="button plain" to={`/runs?workflow=${encodeURIComponent(name)}`}>
            Its runs
          </Link>
        </div>
      </header>
      {definition.description !== undefined && (
        <p className="lead">
          <Text of={definition.description} />
        </p>
      )}
      <Tabs tabs={TABS} shown={shown} show={setTab} />
      <div role="tabpanel" aria-label={TABS.find((each) => each.id === shown)?.title}>
        {version === null ? (
          <Empty title={`There is no version ${number}`} />
        ) : version === undefined ? (
          <Loading />
        ) : (
          <>
            {shown === 'steps' && <StepList definition={definition} />}
            {shown === 'source' && <CheckedSource source={version.source} />}
            {shown === 'versions' && <Versions name={name} shown={version} />}
          </>
        )}
      </div>
      {startable && (doing === 'start' || model.data !== undefined) && (
        <StartDialog name={name} definition={newest.data.definition as Definition} inputs={model.data?.inputs as Record<string, unknown>} close={close} />
      )}
      {doing === 'apply' && <ApplyDialog source={newest.data.source} close={close} />}
      {doing === 'disable' && <DisableDialog name={name} disabled={newest.data.disabled} close={close} />}
    </div>
  );
}

function NoSuchWorkflow({ name }: { name: string }) {
  return (
    <Empty title="There is no such workflow" command={`interlock workflow apply ${/^[\w.-]+$/.test(name) ? name : 'workflow'}.yaml`}>
      <p>
        It may belong to another tenant, or never have been applied. <Link to="/workflows">See all workflows</Link>, or apply its file:
      </p>
    </Empty>
  );
}

/** The file, and what the server of today finds in it: an old version may use what is no longer advised. */
function CheckedSource({ source }: { source: string }) {
  const found = useQuery(validationQuery(source)).data;
  return (
    <>
      {found !== undefined && found.diagnostics.length > 0 && <Diagnostics of={found} />}
      <Source text={source} />
    </>
  );
}

function DisableDialog({ name, disabled, close }: { name: string; disabled: boolean; close: () => void }) {
  const queries = useQueryClient();
  async function act() {
    const asked = { params: { path: { workflow: name } }, body: {} };
    await must(disabled ? api.POST('/api/v1/workflows/{workflow}/enable', asked) : api.POST('/api/v1/workflows/{workflow}/disable', asked));
    void queries.invalidateQueries({ queryKey: ['workflow', name] });
    void queries.invalidateQueries({ queryKey: ['workflows'] });
    return disabled ? 'It takes starts again.' : 'It takes no more starts.';
  }
  return (
    <FormDialog title={disabled ? 'Enable this workflow' : 'Disable this workflow'} verb={disabled ? 'Enable' : 'Disable'} danger={!disabled} close={close} act={act}>
      <p>{disabled ? 'It takes starts again: by hand, by schedules and by webhooks.' : 'It takes no more starts: not by hand, by schedules or by webhooks. Runs that are under way go on.'}</p>
    </FormDialog>
  );
}
