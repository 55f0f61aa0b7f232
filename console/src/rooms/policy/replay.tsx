/** What a version would have decided where something was decided. */

import { useState } from 'react';
import { useMutation } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { Button } from '../../parts/button';
import { FormBox, Select, text } from '../../parts/form';
import { Empty, ProblemNote } from '../../parts/notes';
import { Table } from '../../parts/table';
import { Text } from '../../parts/text';
import { at, Link, useAddress } from '../../route/router';
import { Verdict } from './answer-view';
import { nameOf, type Policy, type PolicyVersion } from './query';
import { VersionChoice } from './version-choice';

type Found = Schema['PolicyReplay'];

export function Replay({ policy, versions }: { policy: Policy; versions: PolicyVersion[] }) {
  const { query } = useAddress();
  const asked = Number(query.get('version') ?? 0);
  const candidate = versions.find((each) => each.version === asked) ?? versions.find((each) => each.version !== policy.active);
  const [version, setVersion] = useState(candidate?.version ?? policy.active ?? 0);
  const replay = useMutation({
    mutationFn: async (form: FormData) => {
      const body = { version: version === 0 ? undefined : version, days: Number(text(form, 'days')) };
      return { version, found: await must(api.POST('/api/v1/policy/replay', { body })) };
    },
  });
  return (
    <>
      <p className="lead">Every decision that was kept is asked again under another version. Nothing happens by it.</p>
      <FormBox act={(form) => replay.mutate(form)}>
        <div className="bar-of-fields">
          <VersionChoice label="Which version" policy={policy} versions={versions} value={version} choose={setVersion} />
          <Select name="days" label="Decisions of" defaultValue="7">
            <option value="1">the last day</option>
            <option value="7">the last 7 days</option>
            <option value="30">the last 30 days</option>
            <option value="366">the last year</option>
          </Select>
          <Button type="submit" look="primary" busy={replay.isPending}>
            Replay
          </Button>
        </div>
      </FormBox>
      {replay.error !== null && <ProblemNote error={replay.error} />}
      {replay.data !== undefined && <Result of={replay.data.found} version={replay.data.version} />}
    </>
  );
}

/** Every outcome with its number, the dangerous ones first. */
export function outcomes(found: Found): [string, number, string][] {
  return [
    ['newly allowed', found.newly_allowed, 'asks'],
    ['newly denied', found.newly_denied, 'bad'],
    ['newly need approval', found.newly_gated, 'busy'],
    ['newly without an answer', found.newly_undecided, 'bad'],
    ['the same for other reasons', found.otherwise, 'idle'],
    ['the same', found.same, 'good'],
    ['not readable', found.unreadable, 'idle'],
  ];
}

function Result({ of, version }: { of: Found; version: number }) {
  if (of.decisions === 0) {
    return (
      <>
        <Empty title="Nothing was decided in that time">
          <p>Decisions are kept for actions on which the rules look at the run itself. What they allow for every run is asked once, and not kept.</p>
        </Empty>
        <Standing of={of.standing} />
      </>
    );
  }
  return (
    <section className="replayed" aria-label="Result of the replay">
      <p role="status">
        {nameOf(version)}, held against {of.decisions.toLocaleString()} decision{of.decisions === 1 ? '' : 's'}
        {of.more && ', and there are more than were looked at'}:
      </p>
      <ul className="tallies">
        {outcomes(of)
          .filter(([, count]) => count > 0)
          .map(([words, count, tone]) => (
            <li key={words} className={`tally ${tone}`}>
              <strong>{count.toLocaleString()}</strong> {words}
            </li>
          ))}
      </ul>
      {of.differences.length > 0 && (
        <Table
          caption="Decisions that would be others"
          rows={of.differences}
          keyOf={(each) => each.decision}
          columns={[
            {
              title: 'Action',
              cell: (each) => (
                <Link to={`${at('runs', each.run_id)}?step=${each.step}`} className="row-link">
                  <Text of={each.operation} />
                </Link>
              ),
            },
            { title: 'Was', cell: (each) => <Verdict of={each.before} /> },
            { title: 'Would be', cell: (each) => <Verdict of={each.after} /> },
            { title: 'Because', cell: (each) => <Text of={each.reasons.join('; ')} /> },
          ]}
        />
      )}
      <Standing of={of.standing} />
    </section>
  );
}

/** Steps that are allowed in every run so far: no decision is kept of them. */
function Standing({ of }: { of: Found['standing'] }) {
  if (of === undefined || of.steps === 0) return null;
  const changed = of.steps - of.same;
  return (
    <section aria-label="Steps that are allowed in every run">
      <p>
        {of.steps.toLocaleString()} step{of.steps === 1 ? '' : 's'} of workflows {of.steps === 1 ? 'is' : 'are'} allowed in every run so far.{' '}
        {changed === 0 ? 'Nothing would change.' : `${changed.toLocaleString()} would not be: ${of.may_change.toLocaleString()} would depend on the run.`}
        {of.more && ' Some workflows were not looked at.'}
      </p>
      {of.differences.length > 0 && (
        <Table
          caption="Steps that would not be allowed in every run"
          rows={of.differences}
          keyOf={(each) => `${each.workflow}/${each.step}`}
          columns={[
            { title: 'Workflow', cell: (each) => <Text of={`${each.workflow} v${each.version}`} /> },
            { title: 'Step', cell: (each) => <Text of={each.step} /> },
            { title: 'Would be', cell: (each) => <Verdict of={each.after} /> },
            { title: 'Because', cell: (each) => <Text of={each.reasons.join('; ')} /> },
          ]}
        />
      )}
    </section>
  );
}
